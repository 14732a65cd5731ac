"""`evaluate`: what the host computes of a model, node by node.

Quantized operators run on `onnxhw.fixed`, others in onnxruntime, and what it has no kernel for in operators of ours or
onnx's reference (`nodes`). Every result is compared with what the model says of its type and shape (`expected`).
"""

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpFunctionContextDependant, RuntimeContextError

from ..errors import DeclaredShapeWarning, OnnxhwError, UnsupportedError, UsageError
from ..onnxmodel.specification.functions import every_node
from ..onnxmodel.specification.signatures import canonical
from .nodes import HostNode, is_native
from .onnxruntime_node import has_kernel
from .operators import implementations, sizes
from .operators.control import IterationsError
from .operators.quantized import NotANumberError
from .value_checks import SIZES, Expected, Sizes

SCALES = ("scales", "width_scale", "height_scale")
"""Attributes of Upsample that say by how much."""
CACHED = 64
"""How many prepared models are kept."""

_prepared: "OrderedDict[bytes, Evaluator]" = OrderedDict()


def parsed(model: bytes) -> Callable[[Mapping[str, Any], Sizes], dict[str, Any]]:
    """`evaluate` of a serialized model, as a function of its inputs and of the sizes of dimension variables."""
    proto = onnx.ModelProto.FromString(model)
    return lambda feeds, sizes: evaluate(proto, feeds, sizes)


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Any], sizes: Sizes | None = None) -> dict[str, Any]:
    """The outputs of a model by name, from its inputs by name.

    Tensors are arrays, sequences are lists, maps are dicts, an empty optional is None. An input with an initializer
    may be left out. `sizes`: those of dimension variables that are known already; those that are met are put there.

    `UnsupportedError` E4750 for an operator without an implementation, E4751 for a node that cannot be prepared, E4752
    for one that fails on its operands, E4756 for a value that is not what the model says; `UsageError` E2701 for inputs
    that do not fit, E2702 for a NaN that is to be quantized.
    """
    defaults = {tensor.name for tensor in model.graph.initializer}
    defaults |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    known = {value.name for value in model.graph.input}
    missing, unknown = known - defaults - set(feeds), set(feeds) - known - defaults
    if missing or unknown:
        what = f"input {min(missing)!r} is missing" if missing else f"there is no input {min(unknown)!r}"
        raise UsageError("E2701", what, hint=f"inputs: {', '.join(sorted(known - defaults)) or 'none'}")
    evaluator = _kept(model)
    with np.errstate(all="ignore"):  # infinities and NaN are results like others
        results = evaluator.run(None, {name: _packed(value) for name, value in feeds.items()}, sizes=sizes)
    return dict(zip(evaluator.output_names, map(_objects, results), strict=True))


def _objects(value: Any) -> Any:
    """A result; text as onnxruntime gives it, Python strings in an array of objects."""
    if isinstance(value, list):
        return [_objects(one) for one in value]
    return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind == "U" else value


def _packed(value: Any) -> Any:
    """An array in C order: in which order numpy adds, and so what float32 sums are, depends on the strides."""
    return np.asarray(value, order="C") if isinstance(value, np.ndarray) else value


class Evaluator(ReferenceEvaluator):
    """The nodes of a graph in order, also of subgraphs and functions, with errors that name the node."""

    def __init__(self, proto: Any, opsets: dict[str, int] | None = None, functions: Any = None, **more: Any) -> None:
        imports = {entry.domain: entry.version for entry in getattr(proto, "opset_import", ())}
        more["new_ops"] = implementations(opsets or imports)
        super().__init__(proto, opsets=opsets, functions=functions, **more)
        graph = self.onnx_graph_
        self._expected = Expected([] if graph is None else [*graph.input, *graph.value_info, *graph.output])

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        domain, version = canonical(node.domain), self.opsets.get(node.domain)
        called = (node.domain, node.op_type) in self.functions_
        if input_types is not None:  # the reference asks for the body of a function of these types
            return self._others(node, input_types)
        if called or version is None or not is_native(node, version):
            return self._others(node, input_types)
        if not has_kernel(domain, node.op_type, version):  # it may have a body: but it must exist
            with suppress(RuntimeContextError):
                self._others(node, None)
        known = self.all_types_ or {}
        types = [known.get(name) for name in node.input]

        def made(node: onnx.NodeProto, settings: dict[str, Any]) -> HostNode:
            return HostNode(node, version, lambda: self._instance(node, settings, types), types)

        return made

    def _instance(self, node: onnx.NodeProto, settings: dict[str, Any], types: list[Any]) -> Any:
        """The operator of ours or of the reference for a node."""
        try:
            made = self._others(node, None)
        except RuntimeContextError:  # a function whose body depends on its inputs
            if None in types:
                return OpFunctionContextDependant(node, settings, parent=self)
            made = self._others(node, types)
        return made(node, settings)

    def _others(self, node: onnx.NodeProto, input_types: Any) -> Any:
        try:
            return super()._load_impl(node, input_types)
        except (RuntimeContextError, OnnxhwError):
            raise
        except Exception as error:
            domain = f" of domain {node.domain!r}" if node.domain else ""
            what = f"operator {node.op_type}{domain} has no implementation on the host"
            raise UnsupportedError("E4750", what, where=label(node), hint="replace the node") from error

    def run(
        self,
        output_names: Any,
        feed_inputs: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        intermediate: bool = False,
        check_shape_annotations: bool | None = None,
        _bindings: Any = None,
        sizes: Sizes | None = None,
    ) -> list[Any]:
        """The outputs asked for, or all, in order. E4756 for a value that is not what the model says.

        `sizes`: as of `evaluate`. Of a nested graph `feed_inputs` has, as `SIZES`, those of the graph around; those
        that only a nested graph has are its own in each of its runs.
        """
        if sizes is None:
            sizes = dict(feed_inputs.get(SIZES, ()))
        values = {"": None, **self.rt_inits_, **feed_inputs}
        values[SIZES] = sizes
        for name in self.input_names_:
            self._hold(None, name, values.get(name), sizes)
        for node in self.rt_nodes_:
            operands = [values[name] for name in node.input]
            more: dict[str, Any] = {"linked_attributes": attributes} if node.has_linked_attribute and attributes else {}
            if node.need_context():
                more["context"] = values
            results = _computed(node, operands, more)
            if len(results) < len(node.output):
                what = f"gives {len(results)} results, the model names {len(node.output)}"
                raise UnsupportedError("E4752", what, where=label(node.onnx_node))
            for name, value in zip(node.output, results):  # noqa: B905 - outputs that nobody names are dropped
                if name:
                    self._hold(node, name, value, sizes)
                    values[name] = value
        return [values[name] for name in output_names or self.output_names]

    def _hold(self, node: Any, name: str, value: Any, sizes: Sizes) -> None:
        """E4756 for a value that is not what the model says; a warning where that is only declared."""
        if fault := self._expected.fault(name, value, sizes):
            raise UnsupportedError(
                "E4756",
                f"value {name!r} is {fault}",
                where=label(node.onnx_node) if node is not None else f"input {name!r}",
                hint="correct the types and shapes that the model declares, or remove them, or export it again",
            )
        if name in self._expected.loose and (remark := self._expected.remark(name, value)):
            text = f"value {name!r} {remark}, which nothing else confirms"
            warnings.warn(DeclaredShapeWarning("W3391", text), stacklevel=2)


def _computed(node: Any, operands: list[Any], more: dict[str, Any]) -> Any:
    """The results of a node, or the error that names it."""
    try:
        _bounded(node.onnx_node, operands)
        return node.run(*operands, **more)
    except OnnxhwError:
        raise
    except NotANumberError as error:
        hint = "replace NaN before running the model"
        raise UsageError("E2702", str(error), where=label(node.onnx_node), hint=hint) from error
    except IterationsError as error:
        raise UnsupportedError("E4753", str(error), where=label(node.onnx_node)) from error
    except Exception as error:
        raise _failed(node.onnx_node, operands, error) from error


def label(node: onnx.NodeProto) -> str:
    """The node's name, or one made of its operator and first output."""
    return f"node {node.name!r}" if node.name else f"{node.op_type}({', '.join(node.output[:1])})"


def _bounded(node: onnx.NodeProto, operands: list[Any]) -> None:
    """E4755 for a result beyond `sizes.LARGEST`, before it is allocated."""
    if node.op_type not in sizes.RULES or node.domain not in ("", "ai.onnx"):
        return
    scales = [one.floats if one.floats else [one.f] for one in node.attribute if one.name in SCALES]
    given = [np.concatenate(scales)] if scales and len(operands) == 1 else []  # of Upsample, before version 9
    asked = sizes.elements(node.op_type, [*operands, *given])
    if asked > sizes.LARGEST:
        what = f"its operands ask for {asked:,} elements, the host makes at most {sizes.LARGEST:,}"
        raise UnsupportedError("E4755", what, where=label(node), hint="run the model with smaller inputs")


def _failed(node: onnx.NodeProto, operands: list[Any], error: Exception) -> UnsupportedError:
    reason = error.__cause__ if isinstance(error, TypeError) and error.__cause__ is not None else error
    shapes = ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__ for x in operands)
    text = " ".join(str(reason).split())[:300]
    return UnsupportedError("E4752", f"{node.op_type} cannot be computed of ({shapes}): {text}", where=label(node))


def _kept(model: onnx.ModelProto) -> "Evaluator":
    """The model prepared, from the cache if it was used lately."""
    key = hashlib.sha256(model.SerializeToString(deterministic=True)).digest()
    found = _prepared.pop(key, None) or _evaluator(model)
    _prepared[key] = found
    while len(_prepared) > CACHED:
        _prepared.popitem(last=False)
    return found


def _evaluator(model: onnx.ModelProto) -> Evaluator:
    try:
        return Evaluator(_plain(model))
    except OnnxhwError:
        raise
    except Exception as error:
        text = " ".join(str(error.__cause__ or error).split())[:300]
        raise UnsupportedError("E4751", f"the host cannot prepare the model: {text}", where=model.graph.name) from error


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the default domain written as the empty string everywhere."""
    if all(entry.domain != "ai.onnx" for entry in model.opset_import):
        return model
    plain = deepcopy(model)
    for entry in plain.opset_import:
        entry.domain = canonical(entry.domain)
    for owner in (plain.graph, *plain.functions):
        for node in every_node(owner.node):
            node.domain = canonical(node.domain)
    return plain
