"""`read`: from a file or bytes to a model whose every tensor, name and count was checked."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from ..diagnostics import Diagnostic
from ..errors import InvalidModelError
from ..onnxfile.container import parse, read_file
from ..onnxfile.external import load_external
from ..onnxfile.large_constants import LargeConstants
from ..onnxfile.limits import DEFAULT, Limits
from ..onnxfile.payload import check, finite, title
from ..onnxfile.sparse import check_sparse, fill_in
from ..onnxfile.survey import Survey, survey
from ..onnxfile.textual import binary
from .legacy_domains import adopt
from .node_order import sort_nodes
from .normal_form import normalise
from .specification import diagnose, raise_errors

if TYPE_CHECKING:
    Source = str | os.PathLike[str] | bytes

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelFile:
    """A model that was read, its data complete but for `large_constants`, and what is unusual about it."""

    model: onnx.ModelProto
    warnings: tuple[Diagnostic, ...]
    large_constants: LargeConstants = field(default_factory=LargeConstants)


def read(source: "Source", limits: Limits = DEFAULT, separate_large: bool = False) -> ModelFile:
    """The model in a file or in bytes, external data loaded, sparse initializers made dense; large constants stay
    outside the message if `separate_large`.

    Checked are the container, names, counts and tensors: what must hold before any other code may look at them. What
    the graph means is not. Raises `InvalidModelError` E3001 to E3008 and E31xx (docs/errors.md), `LimitError` among
    them; warnings are also logged.
    """
    where = "model" if isinstance(source, bytes) else str(Path(source))
    try:
        reading = _read(source, where, limits, separate_large)
    except MemoryError as error:
        raise InvalidModelError("E3171", "needs more memory than there is", where=where) from error
    for warning in reading.warnings:
        log.warning("%s", warning.text())
    return reading


def _read(source: "Source", where: str, limits: Limits, separate_large: bool) -> ModelFile:
    if isinstance(source, bytes):
        data, folder = source, None
    else:
        path = Path(source)
        data, folder = binary(read_file(source, limits), path, limits), path.parent
    model, warnings = parse(data, where, limits)
    del data
    found = survey(model, limits, where)
    kept = LargeConstants(found.main if separate_large else range(0))
    warnings += load_external(list(found.stored()), folder, limits, where, kept)
    warnings += _tensors(found, kept, limits, where)
    for graph in found.with_sparse:
        fill_in(graph)
    return ModelFile(model, tuple(warnings), kept)


def read_model(source: "Source", limits: Limits = DEFAULT) -> onnx.ModelProto:
    """The model of `read`, held against the specification: errors as `spec.raise_errors` raises them."""
    model = read(source, limits).model
    where = "model" if isinstance(source, bytes) else str(Path(source))
    adopt(model, where)
    sort_nodes(model)
    raise_errors(diagnose(model, where), where)
    normalise(model)
    return model


def _tensors(found: Survey, large: LargeConstants, limits: Limits, where: str) -> list[Diagnostic]:
    """Check every tensor; E3115 if all together are beyond the limit, W3150 for NaN and infinity."""
    total, warnings = 0, []
    odd: list[str] = []
    for index, (tensor, name) in enumerate(found.tensors):
        away = index in large.indices
        total += large.arrays[tensor.name].nbytes if away else check(tensor, limits, name)
        limits.check("E3115", "total_bytes", total, "bytes in all tensors:", where)
        if not (large.finite(tensor) if away else finite(tensor)):
            odd.append(name or title(tensor))
    for sparse, name in found.sparse:
        total += check_sparse(sparse, limits, name)
        limits.check("E3115", "total_bytes", total, "bytes in all tensors:", where)
    if odd:
        shown = ", ".join(odd[:5]) + (f" and {len(odd) - 5} more" if len(odd) > 5 else "")
        warnings.append(Diagnostic("W3150", "warning", where, f"NaN or infinity in {shown}"))
    return warnings
