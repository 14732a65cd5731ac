"""Changes of a whole model: operator sets, operators, other models in it, it in a subgraph; see `node_mutants`."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from node_changes import SMALL_OPSETS, Work, data, untold
from onnx import TensorProto, helper, numpy_helper


def _opset(work: Work) -> None:
    entry = work.rng.choice(list(work.model.opset_import))
    entry.version = work.rng.choice((*SMALL_OPSETS, entry.version - 1, entry.version - 2, 1, 5, 26))


def _operator(work: Work) -> None:
    """Another operator in the place of a node's: one of the suite's with its attributes, or only its name."""
    node, rng = work.node(), work.rng
    other = rng.choice(list(work.other(rng).graph.node))
    node.op_type, node.domain = other.op_type, other.domain
    if rng.random() < 0.6:
        del node.attribute[:]
        node.attribute.extend(other.attribute)


def _renamed(model: onnx.ModelProto, prefix: str) -> onnx.GraphProto:
    """The model's graph with other names, as far as no subgraphs are in it."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    for node in graph.node:
        node.input[:] = [f"{prefix}{name}" if name else "" for name in node.input]
        node.output[:] = [f"{prefix}{name}" if name else "" for name in node.output]
        node.name = f"{prefix}{node.name}" if node.name else ""
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = f"{prefix}{value.name}"
    return graph


def _spliced(work: Work) -> None:
    """Another model behind this one, or beside it."""
    rng, other = work.rng, work.other(work.rng)
    graph = _renamed(other, "b_")
    have = {entry.domain for entry in work.model.opset_import}
    work.model.opset_import.extend(entry for entry in other.opset_import if entry.domain not in have)
    names = [name for node in work.graph.node for name in node.output if name]
    taken = ""
    if graph.input and names and rng.random() < 0.8:
        taken = graph.input[0].name
        for node in graph.node:
            node.input[:] = [names[-1] if name == taken else name for name in node.input]
    work.graph.node.extend(graph.node)
    work.graph.initializer.extend(graph.initializer)
    work.graph.input.extend(value for value in graph.input if value.name != taken)
    work.graph.output.extend(graph.output)


def _wrapped(work: Work) -> None:
    """The whole graph in an If, a Loop or a function."""
    rng, graph = work.rng, work.graph
    body = onnx.GraphProto(name="body")
    body.node.extend(graph.node)
    body.output.extend(graph.output)
    outputs = [value.name for value in graph.output]
    if rng.random() < 0.4:
        function = helper.make_function(
            "local", "Whole", work.names()[: len(graph.input) + len(graph.initializer)], outputs, list(graph.node),
            list(work.model.opset_import),
        )  # fmt: skip
        inputs = list(function.input)
        del graph.node[:]
        graph.node.append(helper.make_node("Whole", inputs, outputs, domain="local"))
        work.model.functions.append(function)
        work.model.opset_import.add(domain="local", version=1)
        return
    del graph.node[:]
    if rng.random() < 0.5:
        graph.initializer.append(numpy_helper.from_array(np.array(rng.random() < 0.5), "cond"))
        other = onnx.GraphProto()
        other.CopyFrom(body)
        node = helper.make_node("If", ["cond"], outputs, then_branch=body, else_branch=other)
    else:
        count = rng.choice((0, 1, 2, 3, 5, 1000, 1 << 40))
        graph.initializer.append(numpy_helper.from_array(np.int64(count), "trips"))
        body.input.append(helper.make_tensor_value_info("iteration", TensorProto.INT64, []))
        body.input.append(helper.make_tensor_value_info("going", TensorProto.BOOL, []))
        body.node.add(op_type="Identity", input=["going"], output=["going_on"])
        results = list(body.output)
        del body.output[:]
        body.output.append(helper.make_tensor_value_info("going_on", TensorProto.BOOL, []))
        body.output.extend(results)
        node = helper.make_node("Loop", ["trips", ""], outputs, body=body)
    graph.node.append(node)
    for value in graph.output:
        value.ClearField("type")


def _doubled(work: Work) -> None:
    """A node once more, with other results; or in the same place."""
    node, rng = work.node(), work.rng
    other = work.graph.node.add()
    other.CopyFrom(node)
    if rng.random() < 0.9:
        other.output[:] = [f"{name}_again" if name else "" for name in other.output]
        other.name = f"{other.name}_again" if other.name else ""
        if rng.random() < 0.7 and other.input and node.output[0]:
            other.input[0] = node.output[0]
        work.graph.output.append(untold(work, other.output[0]))


def _value_info(work: Work) -> None:
    rng = work.rng
    name = rng.choice([name for node in work.graph.node for name in node.output])
    shape = [rng.choice(("N", 1, 2, 3, 4, 5)) for _ in range(rng.randrange(5))]
    work.graph.value_info.append(helper.make_tensor_value_info(name, rng.choice((1, 3, 6, 7, 9)), shape))


def _between(work: Work) -> None:
    """A harmless operator, or an activation, between a node and who reads it."""
    node, rng = work.node(), work.rng
    inner = [name for other in work.graph.node for name in other.input if name in node.output]
    if inner:
        name = inner[0]
        for other in work.graph.node:
            other.input[:] = [f"{name}_seen" if one == name else one for one in other.input]
        kind = rng.choice(("Identity", "Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Flatten", "HardSwish", "Sqrt"))
        nodes = list(work.graph.node)
        place = nodes.index(node)
        nodes.insert(place + 1, helper.make_node(kind, [name], [f"{name}_seen"]))
        del work.graph.node[:]
        work.graph.node.extend(nodes)


CHANGES: Sequence[tuple[Callable[[Work], None], int]] = (
    (_opset, 5), (_operator, 6), (_spliced, 6), (_wrapped, 5), (_doubled, 6), (_value_info, 2),
    (data, 6), (_between, 8),
)  # fmt: skip
"""The changes, and how often each is chosen."""
