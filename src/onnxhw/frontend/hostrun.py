"""`evaluate`: what the host computes of a model, with numpy.

Quantized operators run on `onnxhw.fixed`, others in onnx's reference implementation with our own operators where it is
missing, incomplete or wrong (`hostops`); all of it in onnxruntime only if asked for.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError

from ..errors import OnnxhwError, UnsupportedError, UsageError
from .hostops import implementations, sizes
from .hostops.control import IterationsError
from .hostops.quantized import NotANumberError

Engine = Literal["numpy", "onnxruntime"]
CACHED = 64
"""How many prepared models are kept."""
EXACT = ("session.x64quantprecision", "1")
"""What keeps onnxruntime from adding pairs of uint8 * int8 products in 16 bits, on processors without VNNI."""

_prepared: "OrderedDict[bytes, Any]" = OrderedDict()


def known_engine(name: str) -> Engine:
    """The name as an engine of `evaluate`; `UsageError` E2703 if it is none, E2700 if onnxruntime is not installed."""
    if name not in get_args(Engine):
        raise UsageError("E2703", f"nothing called {name!r} runs host nodes", hint=" or ".join(get_args(Engine)))
    if name == "onnxruntime" and find_spec("onnxruntime") is None:
        raise _missing()
    return "onnxruntime" if name == "onnxruntime" else "numpy"


def parsed(model: bytes, engine: Engine = "numpy") -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """`evaluate` of a serialized model, as a function of its inputs."""
    proto = onnx.ModelProto.FromString(model)
    return lambda feeds: evaluate(proto, feeds, engine)


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Any], engine: Engine = "numpy") -> dict[str, Any]:
    """The outputs of a model by name, from its inputs by name.

    Tensors are arrays, sequences are lists, maps are dicts, an empty optional is None. An input with an initializer
    may be left out. `UnsupportedError` E4750 for an operator without an implementation, E4751 for a node that cannot be
    prepared, E4752 for one that fails on its operands; `UsageError` E2701 for inputs that do not fit, E2702 for a NaN
    that is to be quantized, E2700 if onnxruntime is asked for and not installed.
    """
    defaults = {tensor.name for tensor in model.graph.initializer}
    defaults |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    known = {value.name for value in model.graph.input}
    missing, unknown = known - defaults - set(feeds), set(feeds) - known - defaults
    if missing or unknown:
        what = f"input {min(missing)!r} is missing" if missing else f"there is no input {min(unknown)!r}"
        raise UsageError("E2701", what, hint=f"inputs: {', '.join(sorted(known - defaults)) or 'none'}")
    if engine == "onnxruntime":
        return _onnxruntime(model, feeds)
    evaluator = _kept(model, engine, _evaluator)
    with np.errstate(all="ignore"):  # infinities and NaN are results like others
        results = evaluator.run(None, {name: _packed(value) for name, value in feeds.items()})
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
    """The reference evaluator with our operators, also in subgraphs and functions, and errors that name the node."""

    def __init__(self, proto: Any, opsets: dict[str, int] | None = None, functions: Any = None, **more: Any) -> None:
        imports = {entry.domain: entry.version for entry in getattr(proto, "opset_import", ())}
        more["new_ops"] = implementations(opsets or imports)
        super().__init__(proto, opsets=opsets, functions=functions, **more)

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        try:
            return super()._load_impl(node, input_types)
        except (RuntimeContextError, OnnxhwError):
            raise
        except Exception as error:
            domain = f" of domain {node.domain!r}" if node.domain else ""
            raise UnsupportedError(
                "E4750",
                f"operator {node.op_type}{domain} has no implementation on the host",
                where=label(node),
                hint="replace the node, or run the model's host part in onnxruntime",
            ) from error

    def run(
        self,
        output_names: Any,
        feed_inputs: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        intermediate: bool = False,
        check_shape_annotations: bool | None = None,
        _bindings: Any = None,
    ) -> list[Any]:
        """The outputs asked for, or all, in order."""
        values = {"": None, **self.rt_inits_, **feed_inputs}
        for node in self.rt_nodes_:
            operands = [values[name] for name in node.input]
            more: dict[str, Any] = {"linked_attributes": attributes} if node.has_linked_attribute and attributes else {}
            if node.need_context():
                more["context"] = values
            try:
                _bounded(node.onnx_node, operands)
                results = node.run(*operands, **more)
            except OnnxhwError:
                raise
            except NotANumberError as error:
                hint = "replace NaN before running the model"
                raise UsageError("E2702", str(error), where=label(node.onnx_node), hint=hint) from error
            except IterationsError as error:
                raise UnsupportedError("E4753", str(error), where=label(node.onnx_node)) from error
            except Exception as error:
                raise _failed(node.onnx_node, operands, error) from error
            values.update(zip(node.output, results))  # noqa: B905 - outputs that nobody names are dropped
        return [values[name] for name in output_names or self.output_names]


@cache
def implemented(domain: str, op_type: str, version: int) -> bool:
    """Whether `evaluate` has the operator, in a version of its domain's operator set."""
    domain = "" if domain == "ai.onnx" else domain
    empty = Evaluator(onnx.GraphProto(name="empty"), opsets={"": onnx.defs.onnx_opset_version(), domain: version})
    try:
        empty._load_impl(helper.make_node(op_type, [], [], domain=domain))
    except RuntimeContextError:  # a function whose body depends on its inputs
        return True
    except UnsupportedError:
        return False
    return True


def label(node: onnx.NodeProto) -> str:
    """The node's name, or one made of its operator and first output."""
    return f"node {node.name!r}" if node.name else f"{node.op_type}({', '.join(node.output[:1])})"


def _bounded(node: onnx.NodeProto, operands: list[Any]) -> None:
    """E4755 for a result beyond `sizes.LARGEST`, before it is allocated."""
    if node.op_type not in sizes.RULES or node.domain not in ("", "ai.onnx"):
        return
    asked = sizes.elements(node.op_type, operands)
    if asked > sizes.LARGEST:
        what = f"its operands ask for {asked:,} elements, the host makes at most {sizes.LARGEST:,}"
        raise UnsupportedError("E4755", what, where=label(node), hint="run the model with smaller inputs")


def _failed(node: onnx.NodeProto, operands: list[Any], error: Exception) -> UnsupportedError:
    reason = error.__cause__ if isinstance(error, TypeError) and error.__cause__ is not None else error
    shapes = ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__ for x in operands)
    text = " ".join(str(reason).split())[:300]
    return UnsupportedError("E4752", f"{node.op_type} cannot be computed of ({shapes}): {text}", where=label(node))


def _kept(model: onnx.ModelProto, engine: Engine, prepare: Callable[[onnx.ModelProto], Any]) -> Any:
    """The model as `engine` has it prepared, from the cache if it was used lately."""
    key = hashlib.sha256(engine.encode() + model.SerializeToString(deterministic=True)).digest()
    if key in _prepared:
        _prepared.move_to_end(key)
        return _prepared[key]
    _prepared[key] = prepare(model)
    while len(_prepared) > CACHED:
        _prepared.popitem(last=False)
    return _prepared[key]


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
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for entry in plain.opset_import:
        entry.domain = "" if entry.domain == "ai.onnx" else entry.domain
    _rename(plain.graph.node)
    for function in plain.functions:
        _rename(function.node)
    return plain


def _rename(nodes: Any) -> None:
    for node in nodes:
        node.domain = "" if node.domain == "ai.onnx" else node.domain
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                _rename(graph.node)


def _missing() -> UsageError:
    return UsageError("E2700", "onnxruntime is not installed", hint="pip install 'onnxhw[ort]'")


def _session(model: onnx.ModelProto) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise _missing() from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it refuses is said by E4754
    options.add_session_config_entry(*EXACT)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    try:
        session = _kept(model, "onnxruntime", _session)
        results = session.run(None, dict(feeds))
    except OnnxhwError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise UnsupportedError("E4754", f"onnxruntime refuses the model: {text}", where=model.graph.name) from error
    return {value.name: result for value, result in zip(session.get_outputs(), results, strict=True)}
