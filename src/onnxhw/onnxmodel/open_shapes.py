"""`open_shapes`: the sizes of a model's inputs and outputs that every run has, open dimensions left open."""

from collections.abc import Mapping

import onnx

from ..errors import OnnxhwError
from ..onnxfile.limits import DEFAULT
from .batch_analysis import without_declarations
from .declared_shapes import INVENTED
from .inline import inline
from .shapes import specialise
from .unroll import unroll

Dim = int | str | None


def open_shapes(model: onnx.ModelProto, shapes: Mapping[str, int] | None = None) -> dict[str, list[Dim]]:
    """The dimensions of inputs and outputs of known rank, by name.

    model : as `read_model` gives it; shapes : values of dynamic dimensions, as of `specialise`.

    A number is the size in every run: that of an input is declared, or in `shapes`, and that of an output follows from
    those. Else it is the variable that the model declares, or for an output that is declared without one, that of the
    inputs if it follows; else None.
    """
    declared = {value.name: _dims(value) for value in model.graph.output}
    try:
        whole = without_declarations(unroll(inline(model, DEFAULT), DEFAULT))
        _forget_defaults(whole.graph)
        known = specialise(whole, shapes=shapes, batch=None)[0].graph
    except OnnxhwError:  # contradictions that a size of the batch resolves: only what is declared of inputs is sure
        symbols: dict[str, list[Dim]] = {}
        for name, dims in declared.items():
            if dims is not None:
                symbols[name] = [dim if isinstance(dim, str) else None for dim in dims]
        given = {value.name: _dims(value) for value in model.graph.input}
        return {**symbols, **{name: dims for name, dims in given.items() if dims is not None}}
    found = {value.name: _dims(value) for value in (*known.output, *known.input)}
    return {name: _merged(dims, declared.get(name)) for name, dims in found.items() if dims is not None}


def _merged(inferred: list[Dim], declared: list[Dim] | None) -> list[Dim]:
    """What is inferred; where that is no number, the variable that is declared."""
    said = declared if declared is not None and len(declared) == len(inferred) else [None] * len(inferred)
    return [
        one if isinstance(one, int) or not isinstance(other, str) else other
        for one, other in zip(inferred, said, strict=True)
    ]


def _dims(value: onnx.ValueInfoProto) -> list[Dim] | None:
    """The dimensions of a tensor, without names that inference invents; None for what has no rank."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.HasField("dim_value")
        else dim.dim_param if dim.dim_param and not dim.dim_param.startswith(INVENTED) else None
        for dim in kind.shape.dim
    ]  # fmt: skip


def _forget_defaults(graph: onnx.GraphProto) -> None:
    """Leave only what is declared of inputs that have a default value: a run may give them another."""
    inputs = {value.name for value in graph.input}
    for place in reversed([place for place, tensor in enumerate(graph.initializer) if tensor.name in inputs]):
        del graph.initializer[place]


def has_open(model: onnx.ModelProto) -> bool:
    """Whether an input has a dimension without a size, or a default value, on which sizes may depend."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return any(
        value.name in constants or any(not isinstance(dim, int) for dim in _dims(value) or ())
        for value in model.graph.input
    )


def batch_variable(model: onnx.ModelProto, name: str) -> str | None:
    """The variable that the model declares as an input's first dimension, None if there is none."""
    first = next((dims[0] for value in model.graph.input if value.name == name and (dims := _dims(value))), None)
    return first if isinstance(first, str) else None
