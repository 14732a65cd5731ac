"""`settled`: shapes of a model whose open first dimension may have a size that only the rest of the model tells."""

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod

import onnx
from onnx import numpy_helper

from ..errors import InvalidModelError, UsageError
from .batch import open_batch
from .confined import CrashError
from .reading.limits import LimitError, Limits
from .shapes import Shape, specialise
from .spec.findings import Findings

TRIED = 16
"""Most sizes that are tried."""
NODES = 2000
"""Most nodes of a model whose sizes are tried: each takes an inference."""
PROBES = (2, 3)
"""Sizes that are tried too: a model that takes these does not say which it has."""
LONGEST = 8
"""Elements of a constant that may be a shape."""


def settled(
    model: onnx.ModelProto, where: str, shapes: Mapping[str, int], limits: Limits, findings: Findings
) -> tuple[onnx.ModelProto, dict[str, Shape], Mapping[str, int]]:
    """`specialise`, and `shapes` with the size of an open first dimension that cannot be 1.

    The size is what fits, of the sizes that the model has elsewhere, if it is the only one (W3400 says so).
    `UsageError` E2542 if there is none or several, or several such dimensions. A model that contradicts itself with
    the dimension left open is read leniently: where only declarations are wrong, they are warned of.
    """
    noted = Findings()
    try:
        fixed, known = specialise(model, where, shapes, limits, noted)
    except (LimitError, CrashError):
        raise
    except InvalidModelError as error:
        found = _found(model, where, shapes, limits, error)
        if found is None:
            return *specialise(model, where, shapes, limits, findings, lenient=True), shapes
        key, size = found
        fixed, known = specialise(model, where, {**shapes, key: size}, limits, findings)
        findings.info(
            "W3400",
            f"dimension {key!r}",
            f"this open first dimension is taken as {size}, the only size found that the rest of the model fits",
            f"--shape {key}=SIZE sets another",
        )
        return fixed, known, {**shapes, key: size}
    findings.found.extend(noted.found)
    return fixed, known, shapes


def _found(
    model: onnx.ModelProto, where: str, shapes: Mapping[str, int], limits: Limits, error: InvalidModelError
) -> tuple[str, int] | None:
    """The dimension that cannot be 1, as `specialise` calls it, and its size; `error` is what 1 gives.

    None if that is not the fault: the model contradicts itself with the dimension left open too.
    """
    names = open_batch(model, shapes)
    opened = {
        value.name: value.type.tensor_type.shape.dim for value in model.graph.input if value.name in names
    }
    keys = list(dict.fromkeys(dims[0].dim_param or f"{name}:0" for name, dims in opened.items()))
    if not keys or not _fits(model, shapes, limits, batch=None):
        return None
    sizes: list[int] = []
    if len(keys) == 1 and len(model.graph.node) <= NODES:
        rows = [prod(dim.dim_value or 1 for dim in dims) for dims in opened.values()]
        asked = dict.fromkeys(size for size in _sizes(model, rows) if 1 < size <= limits.tensor_elements)
        tried = dict.fromkeys([*PROBES, *islice(asked, TRIED)])
        sizes = [size for size in tried if _fits(model, {**shapes, keys[0]: size}, limits)]
    if len(sizes) == 1:
        return keys[0], sizes[0]
    fitting = f"; {', '.join(map(str, sorted(sizes)[:4]))} would fit" if sizes else ""
    raise UsageError(
        "E2542",
        f"an open first dimension cannot be 1 here, and its size is not known ({error.what.splitlines()[0]})",
        where=where,
        hint=f"say it: {' '.join(f'--shape {key}=SIZE' for key in keys)}{fitting}",
    ) from error


def _fits(model: onnx.ModelProto, shapes: Mapping[str, int], limits: Limits, batch: int | None = 1) -> bool:
    try:
        specialise(model, "model", shapes, limits, Findings(), batch)
    except InvalidModelError:
        return False
    return True


def _sizes(model: onnx.ModelProto, others: list[int]) -> Iterator[int]:
    """Sizes that the dimension may have: those of other tensors, and those that a shape in a constant leaves for it.

    `others` : the elements of one row, of each input with the dimension.
    """
    graph = model.graph
    tensors = [*graph.initializer]
    constants = (node for node in graph.node if node.op_type == "Constant")
    tensors += [one.t for node in constants for one in node.attribute if one.name == "value"]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.INT64 and prod(tensor.dims) <= LONGEST:
            values = [int(value) for value in numpy_helper.to_array(tensor).ravel()]
            yield from (prod(values) // row for row in others if prod(values) % row == 0)
            yield from values
    for value in [*graph.output, *graph.value_info]:
        yield from (dim.dim_value for dim in value.type.tensor_type.shape.dim)
    for tensor in tensors:
        yield from tensor.dims
