"""`resolve_open_batch`: shapes of a model with an open first dimension, whose size the rest of the model may tell.

    fits 1              1, the batch
    fits one size       that one: every other would be an error of a node, or contradict a declaration
    fits several        it stays open: nodes that depend on it have the size of what a run is fed

Sessions place the model anew for every other size that they are fed, so none of this forbids any (`session`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod

import onnx
from onnx import numpy_helper

from ..batch import Batch
from ..errors import InvalidModelError
from ..onnxfile.limits import LimitError, Limits
from .batch_analysis import open_batch
from .in_worker import CrashError
from .shapes import Shape, specialise
from .specification.findings import Findings

TRIED = 16
"""Most sizes that are tried."""
NODES = 2000
"""Most nodes of a model whose sizes are tried: each takes an inference."""
PROBES = (2, 3)
"""Sizes that are tried too: a model that takes these does not say which it has."""
LONGEST = 8
"""Elements of a constant that may be a shape."""


@dataclass(frozen=True)
class ResolvedModel:
    """A specialised model, its static shapes, and the batch of one whose open first dimension cannot be 1."""

    model: onnx.ModelProto
    shapes: dict[str, Shape]
    batch: Batch | None = None


def resolve_open_batch(
    model: onnx.ModelProto, where: str, shapes: Mapping[str, int], limits: Limits, findings: Findings
) -> ResolvedModel:
    """`specialise`, with the size of an open first dimension that cannot be 1.

    The size is what fits, of the sizes that the model has elsewhere, if it is the only one (W3400 says so). Where
    others fit, none was found, or there are several such dimensions, they stay open (W3460). A model that contradicts
    itself with the dimension left open is read leniently: where only declarations are wrong, they are warned of.
    """
    noted = Findings()
    try:
        fixed, known = specialise(model, where, shapes, limits, noted)
    except (LimitError, CrashError):
        raise
    except InvalidModelError as error:
        names = open_batch(model, shapes)
        keys = _keys(model, names)
        if not keys or not _fits(model, shapes, limits, batch=None):
            return ResolvedModel(*specialise(model, where, shapes, limits, findings, lenient=True))
        why = error.what.splitlines()[0]
        sizes = _found(model, shapes, limits, names, keys)
        if len(sizes) == 1:
            return _only(model, where, shapes, limits, findings, names, keys[0], sizes[0])
        return _open(model, where, shapes, limits, findings, names, keys, sizes, why)
    findings.found.extend(noted.found)
    return ResolvedModel(fixed, known)


def _keys(model: onnx.ModelProto, names: Collection[str]) -> list[str]:
    """The open first dimensions of these inputs, as `specialise` calls them."""
    opened = (value for value in model.graph.input if value.name in names)
    dims = ((value.name, value.type.tensor_type.shape.dim[0].dim_param) for value in opened)
    return list(dict.fromkeys(variable or f"{name}:0" for name, variable in dims))


def _only(
    model: onnx.ModelProto, where: str, shapes: Mapping[str, int], limits: Limits, findings: Findings,
    names: frozenset[str], key: str, size: int,
) -> ResolvedModel:  # fmt: skip
    """The model with the only size that was found to fit."""
    fixed, known = specialise(model, where, {**shapes, key: size}, limits, findings)
    findings.info(
        "W3400",
        f"dimension {key!r}",
        f"this open first dimension is taken as {size}, the only size found that the rest of the model fits",
        f"--shape {key}=SIZE sets another",
    )
    return ResolvedModel(fixed, known, Batch(0, names, mixing=f"{key!r} is {size}, the only size found that fits"))


def _open(
    model: onnx.ModelProto, where: str, shapes: Mapping[str, int], limits: Limits, findings: Findings,
    names: frozenset[str], keys: list[str], sizes: list[int], why: str,
) -> ResolvedModel:  # fmt: skip
    """The model with its first dimensions left open."""
    fixed, known = specialise(model, where, shapes, limits, findings, batch=None)
    fitting = f"; {', '.join(map(str, sorted(sizes)[:4]))} would fit" if sizes else ""
    hint = f"say it: {' '.join(f'--shape {key}=SIZE' for key in keys)}{fitting}"
    what = f"an open first dimension cannot be 1 here, and its size is not known ({why})"
    findings.info("W3460", f"dimension {', '.join(map(repr, keys))}", what, hint)
    return ResolvedModel(fixed, known, Batch(0, names, mixing=what, unsized=hint))


def _found(
    model: onnx.ModelProto, shapes: Mapping[str, int], limits: Limits, names: Collection[str], keys: list[str]
) -> list[int]:
    """Sizes that a single open first dimension may have, of those that are worth a try.

    Where one fits, so do its multiples and what is larger, unless a node takes no other: what nodes demand of a size
    is that it is a certain one, that something divides it, or that it is not below something.
    """
    if len(keys) != 1 or len(model.graph.node) > NODES:
        return []
    opened = [value.type.tensor_type.shape.dim for value in model.graph.input if value.name in names]
    rows = [prod(dim.dim_value or 1 for dim in dims) for dims in opened]
    asked = dict.fromkeys(size for size in _sizes(model, rows) if 1 < size <= limits.tensor_elements)
    tried = dict.fromkeys([*PROBES, *islice(asked, TRIED)])

    def fit(sizes: Iterable[int]) -> list[int]:
        return [size for size in sizes if _fits(model, {**shapes, keys[0]: size}, limits)]

    sizes = fit(tried)
    return sizes + fit([2 * sizes[0], 3 * sizes[0], sizes[0] + 1]) if len(sizes) == 1 else sizes


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
