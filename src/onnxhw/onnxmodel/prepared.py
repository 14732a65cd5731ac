"""`prepare`: a model as it is read, checked and specialised: all that does not depend on the hardware."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import onnx

from ..batch import Batch
from ..diagnostics import Diagnostic
from ..onnxfile.large_constants import LargeConstants
from ..onnxfile.limits import DEFAULT, Limits
from ..worker import worker_scope
from .batch_analysis import OneSample, at_sizes, one_sample, open_batch, prove_open
from .dynamic_batch import resolve_open_batch
from .endless_loops import refuse_endless
from .inline import inline
from .legacy_domains import adopt
from .node_order import sort_nodes
from .normal_form import normalise
from .quantizers import quantizes
from .read import read
from .shapes import Shape
from .specification import Findings, diagnose, raise_errors
from .unroll import unroll

Source = str | os.PathLike[str] | bytes | onnx.ModelProto
"""A path, the bytes of an ONNX file, or a model in memory."""


def name_of(source: Source) -> str:
    """What messages call a model."""
    return "model" if isinstance(source, (bytes, onnx.ModelProto)) else str(source)


@dataclass(frozen=True)
class Prepared:
    """A model that was read, checked and specialised: all that does not depend on which nodes shall run on the host.

    shapes : static shapes of the values of `model`.
    batch : of a model that leaves it open.
    one_sample : the model of one sample, of a quantized model with a batch of more in the file.
    others : gives the static shapes at other sizes of a batch that is open; None where it is not.
    """

    where: str
    limits: Limits
    large_constants: LargeConstants
    diagnostics: tuple[Diagnostic, ...]
    model: onnx.ModelProto
    shapes: Mapping[str, Shape]
    batch: Batch | None = None
    one_sample: OneSample | None = None
    others: Callable[[], list[Mapping[str, Shape]]] | None = None


@worker_scope()
def prepare(source: Source, limits: Limits | None = None, shapes: Mapping[str, int] | None = None) -> Prepared:
    """The model, ready to be placed.

    Parameters
    ----------
    limits : how large a model may be.
    shapes : values of dynamic dimensions by name.

    `InvalidModelError` (E3xxx) for what is not a valid model, `UnsupportedError` E4780 for a Loop that no run ends.
    """
    where, limits, shapes = name_of(source), limits or DEFAULT, shapes or {}
    file = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
    reading = read(file, limits, separate_large=True)
    diagnostics = [*reading.warnings, *adopt(reading.model, where), *sort_nodes(reading.model)]
    diagnostics += diagnose(reading.model, where)
    raise_errors(diagnostics, where)
    normalise(reading.model)
    model = unroll(inline(reading.model, limits, where), limits)
    refuse_endless(model, where)
    noted = Findings()
    found = resolve_open_batch(model, where, shapes, limits, noted)
    static, known, batch = found.model, found.shapes, found.batch
    quantized = any(quantizes(node.op_type) for node in static.graph.node)
    one, others = None, None
    if batch is not None:
        pass  # its size is not 1, so that nothing can be proved of one sample
    elif opened := open_batch(model, shapes):
        others = partial(at_sizes, model, shapes, opened)
        unproved = Batch(0, opened, mixing="the model is not quantized")
        batch = prove_open(model, known, shapes, opened) if quantized else unproved
        if quantized and batch.mixing:
            _mixing(noted, batch.mixing, "a session places the model anew for each batch that it is fed")
    elif quantized:
        one = one_sample(static, known)  # or why there is none
        if isinstance(one, str) and one:
            _mixing(noted, one, "its batch stays whole, and but for matrices on the host")
    sample = one if isinstance(one, OneSample) else None
    return Prepared(
        where, limits, reading.large_constants, (*diagnostics, *noted.found), static, known, batch, sample, others
    )


def _mixing(noted: Findings, reason: str, what: str) -> None:
    noted.info("W3401", "model", f"samples of the batch may meet: {reason}; {what}")
