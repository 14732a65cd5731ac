"""`compile` and `compile_mixed`: a model file onto one accelerator."""

from collections.abc import Mapping
from pathlib import Path

from . import sched
from .config import HwConfig
from .errors import UnsupportedError
from .frontend import MixedModel, Source, load, read, refuse
from .frontend.reading.limits import Limits
from .ir.graph import Graph
from .ir.parts import HostPart
from .passes import variants
from .program.mixed import MixedProgram
from .program.model import Program

Model = str | Path | bytes | Graph
"""A path, the bytes of an ONNX file, or a graph."""


def compile(model: Model, config: HwConfig) -> Program:
    """The checked program of a model that runs on the hardware as a whole.

    `InvalidModelError` (E3xxx), `UnsupportedError` (E4xxx) and `DoesNotFitError` (E5xxx) say what is in
    the way; what comes back has passed `onnxhw.sched.check`.
    """
    graph = model if isinstance(model, Graph) else load(model)
    return sched.fastest(variants(graph), config)


def compile_mixed(
    source: Source, config: HwConfig, *, limits: Limits | None = None, shapes: Mapping[str, int] | None = None
) -> tuple[MixedModel, MixedProgram]:
    """A model placed on hardware and host, and its program.

    What the frontend places on the hardware but the scheduler cannot map (no constant proved, say) goes to the host
    too. `UnsupportedError` E4401 names nodes that nothing can run; `DoesNotFitError` (E5xxx) what is too large.
    """
    excluded: dict[str, str] = {}
    while True:
        mixed = read(source, limits=limits, shapes=shapes, excluded=excluded)
        refuse(mixed)
        try:
            return mixed, schedule(mixed, config)
        except UnsupportedError as error:
            named = unmapped(mixed, error)
            if not named.keys() - excluded.keys():
                raise
            excluded |= named


def schedule(mixed: MixedModel, config: HwConfig) -> MixedProgram:
    """The program of every hardware part."""
    parts = [part if isinstance(part, HostPart) else compile(part.graph, config) for part in mixed.parts]
    return MixedProgram(mixed.name, mixed.inputs, mixed.outputs, parts)


def unmapped(mixed: MixedModel, error: UnsupportedError) -> dict[str, str]:
    """The ONNX nodes of the operations that a scheduler's error names, and why."""
    found: dict[str, str] = {}
    for part in mixed.hardware:
        for op in part.graph.ops:
            if f"node {op.name!r} (" in error.text():
                found |= dict.fromkeys(op.nodes, error.what.splitlines()[0])
    return found
