"""`node_placements`: a row per node that says where it runs and why."""

from collections.abc import Mapping
from typing import Any

import onnx

from ..convert.conversion import Conversion
from ..convert.values import Const, QuantConst
from ..ir.graph import Graph, Port
from ..ir.steps import SHAPE
from ..onnxmodel.nodes import Node
from ..onnxmodel.specification.signatures import canonical
from .partitioned import NodePlacement, Where
from .refusals import refusal
from .stages import GOLDEN, KINDS, Constraints, Stages
from .trials import Trials

APPROXIMATE = "computed in integers, which may differ from float32 by a step of its result"
HINT = "--exact-softmax leaves a Softmax to the host"
"""What is said of a Softmax on the hardware."""
PARTS = "weights less their zero point leave int8, so it is computed in {} parts, each as dear as one of int8 weights"
PARTS_HINT = "quantize weights symmetrically to int8"
"""What is said of a node with such weights."""

MEAN = "the mean is of values of 15 bits at most, so it may differ from that of float32 by a step of its result"
MEAN_HINT = "quantize what the pool reads (QDQ form), and the mean is that of these integers"
"""What is said of the mean of a function that is not quantized."""
ROUNDED = "its bias is rounded to a multiple of input scale * weight scale: by {:.2g} steps of the result at most"
ROUNDED_HINT = "quantize biases to int32 with scale input scale * weight scale and zero point 0"
"""What is said of a node with such a bias."""
ALONG = "it moves values for an operation on the host", ""
"""Why, and what to do, of what goes to the host with others."""


def node_placements(
    made: Conversion, found: Stages, graphs: Mapping[int, Graph], numbers: Mapping[int, int], constraints: Constraints
) -> list[NodePlacement]:
    """The rows, in the model's order. `numbers`: index of each stage's part."""
    operations: dict[str, int] = {}
    to_host: dict[str, tuple[int, str, str]] = {}
    for stage, graph in graphs.items():
        for op in graph.ops:
            if stage % KINDS == GOLDEN:
                why = constraints.to_host.get(op.output, ALONG)
                to_host |= dict.fromkeys(op.nodes, (stage, *why))
            else:
                operations |= dict.fromkeys(op.nodes, stage)
    edges = {
        str(step["name"]): stage
        for stage, graph in graphs.items()
        for port in [*graph.inputs, *graph.outputs]
        for step in _own_steps(port)
    }
    wanted = _wanted(made)
    known = Implemented(made.static.model, made.context.dtypes)
    trials = Trials(made.static, made.context)
    rows = []
    for index, node in enumerate(made.host.nodes):
        name = node.label
        where, code, reason, hint, at = _row(
            made, found, index, name, operations, to_host, edges, wanted, known, trials
        )
        part = None if at is None else numbers.get(at)
        rows.append(NodePlacement(name, node.op_type, node.domain, where, code, reason, hint, part))
    return rows


def _row(
    made: Conversion,
    found: Stages,
    index: int,
    name: str,
    operations: Mapping[str, int],
    to_host: Mapping[str, tuple[int, str, str]],
    edges: Mapping[str, int],
    wanted: set[int],
    known: "Implemented",
    trials: Trials,
) -> tuple[Where, str, str, str, int | None]:
    node, why = made.host.nodes[index], made.reasons.get(index)
    values = [made.context.values.get(output) for output in made.host.nodes[index].results]
    if index in found.nodes and index in made.host.hosted and (why is not None or name not in operations):
        if (why_not := refusal(node)) is not None:
            return "refused", "E4401", why_not[0], why_not[1], found.nodes[index]
        if (missing := known.missing(node)) is not None:
            hint = "remove it, replace it by standard operators, or give its definition as a function of the model"
            return "refused", "E4401", f"{_named(node)} is implemented nowhere{missing}", hint, found.nodes[index]
        if failed := trials.refused(node):
            return "refused", "E4401", failed, "", found.nodes[index]
        reason, hint = (why.reason, why.hint) if why else ("", "")
        if name in operations:
            reason = f"{reason}; the hardware computes it as well, for its quantized result"
        return "host", "E4001", reason, hint, found.nodes[index]
    if index not in wanted:
        return "free", "", "no output needs it", "", None
    if values and all(isinstance(value, (Const, QuantConst)) for value in values):
        return "folded", "", "its result is a constant", "", None
    if name in operations:
        reason, hint = "", ""
        if name in made.context.integer_softmax:
            reason, hint = APPROXIMATE, HINT
        elif count := made.context.parts.get(name):
            reason, hint = PARTS.format(count), PARTS_HINT
        elif name in to_host:
            _, reason, hint = to_host[name]
            reason = f"part of it runs on the host: {reason}"
        return "hardware", "", reason, hint, operations[name]
    if name in to_host:
        return "host", "E4001", to_host[name][1], to_host[name][2], to_host[name][0]
    if name in edges:
        return "host", "", "at the edge: the host prepares inputs and finishes outputs", "", edges[name]
    return "free", "", "layout only, or part of its neighbours", "", None


LOOKED = 200
"""Most kinds of nodes of a model for which a session of onnxruntime is made to see whether it has a kernel: a tenth of
a second. Of the others only the operator is looked up."""


class Implemented:
    """Which nodes of a model the host can run; `dtypes`: element types of its values. Each is looked up once."""

    def __init__(self, model: onnx.ModelProto, dtypes: Mapping[str, str]) -> None:
        self.versions = {canonical(one.domain): one.version for one in model.opset_import}
        self.functions = {(function.domain, function.name) for function in model.functions}
        self.dtypes, self.known, self.looked = dtypes, dict[tuple[str, str], bool](), dict[tuple[Any, ...], str]()

    def missing(self, node: Node) -> str | None:
        """None if the host can run this node; else for which types it cannot, empty if for none."""
        domain, op_type = operator = node.key
        if operator not in self.known:
            from ..hostops.single_node import implemented  # only here: it takes long to import

            version = self.versions.get(domain, 1)
            self.known[operator] = operator in self.functions or implemented(domain, op_type, version)
        if not self.known[operator]:
            return ""
        if operator in self.functions or not all(name in self.dtypes for name in node.input if name):
            return None
        return self._of_types(node, tuple(self.dtypes[name] if name else "" for name in node.input)) or None

    def _of_types(self, node: Node, types: tuple[str, ...]) -> str:
        from ..hostops.single_node import missing_kernel

        proto = node.proto
        key = node.key, types, tuple(map(bool, node.output)), *(one.SerializeToString() for one in proto.attribute)
        if key not in self.looked:
            if len(self.looked) >= LOOKED:
                return ""
            reason = missing_kernel(proto, self.versions.get(node.key[0], 1), types)
            self.looked[key] = f" for {', '.join(filter(None, types))}: {reason}" if reason else ""
        return self.looked[key]


def _own_steps(port: Port) -> list[dict[str, Any]]:
    """The steps of a port that compute something."""
    return [step for step in port.steps if step["op"] not in SHAPE]


def _named(node: Node) -> str:
    return f"operator {node.op_type!r} of domain {node.domain!r}" if node.domain else f"operator {node.op_type!r}"


def _wanted(made: Conversion) -> set[int]:
    """The nodes that an output depends on."""
    names = {value.name for value in made.static.model.graph.output}
    found = set()
    for index in reversed(range(len(made.host.nodes))):
        if not names.isdisjoint(made.host.nodes[index].results):
            found.add(index)
            names.update(made.host.operands[index])
    return found
