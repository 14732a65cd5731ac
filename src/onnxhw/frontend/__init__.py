"""From an ONNX file to the integer graph.

load            file or bytes -> ir.graph.Graph
read_model      file or bytes -> checked onnx.ModelProto      (load.py)
specialise      batch 1, static shapes                        (shapes.py)
convert         quantized nodes -> IR operations              (convert.py, ops/, quant/)
passes.PIPELINE rewrites of the IR, verified after each
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.graph import Graph
from ..ir.verify import verify
from .blockers import Blocker, UnsupportedNodesError
from .constant_channels import constant_channels
from .convert import convert
from .dead import remove_dead
from .load import read_model
from .shapes import specialise
from .two_valued_channels import two_valued_channels

if TYPE_CHECKING:
    from .load import Source

__all__ = ["Blocker", "UnsupportedNodesError", "load", "read_model", "specialise"]


PIPELINE: tuple[Callable[[Graph], Graph], ...] = (remove_dead, constant_channels, two_valued_channels)
"""The rewrites that every model goes through; none changes the values of a tensor that an output needs."""


def load(source: "Source") -> Graph:
    """The integer graph of a quantized ONNX model, from a path or from bytes.

    Raises `InvalidModelError` (E30xx) for what is not a valid model and `UnsupportedError` (E40xx; E4001 lists every
    node that cannot be mapped) for what this release cannot run.
    """
    where = "model" if isinstance(source, bytes) else str(source)
    model, shapes = specialise(read_model(source), where)
    graph = convert(model, shapes, where)
    verify(graph)
    for rewrite in PIPELINE:
        graph = rewrite(graph)
        verify(graph)
    return graph
