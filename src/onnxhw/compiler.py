"""`compile`: a model file onto one accelerator."""

from pathlib import Path

from . import sched
from .config import HwConfig
from .frontend import load
from .ir.graph import Graph
from .program.model import Program

Model = str | Path | bytes | Graph
"""A path, the bytes of an ONNX file, or a graph."""


def compile(model: Model, config: HwConfig) -> Program:
    """The checked program of a model.

    `InvalidModelError` (E3xxx), `UnsupportedError` (E4xxx) and `DoesNotFitError` (E5xxx) say what is in
    the way; what comes back has passed `onnxhw.sched.check`.
    """
    graph = model if isinstance(model, Graph) else load(model)
    return sched.schedule(graph, config)
