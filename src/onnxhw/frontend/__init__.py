"""From an ONNX file to the integer graph.

load         file or bytes -> ir.graph.Graph
read_model   file or bytes -> checked onnx.ModelProto      (load.py)
specialise   batch 1, static shapes                        (shapes.py)
convert      quantized nodes -> IR operations              (convert.py, ops/, quant/)
remove_dead  without what no output needs                  (dead.py)
"""

from typing import TYPE_CHECKING

from ..ir.graph import Graph
from ..ir.verify import verify
from .blockers import Blocker, UnsupportedNodesError
from .convert import convert
from .dead import remove_dead
from .load import read_model
from .shapes import specialise

if TYPE_CHECKING:
    from .load import Source

__all__ = ["Blocker", "UnsupportedNodesError", "load", "read_model", "specialise"]


def load(source: "Source") -> Graph:
    """The integer graph of a quantized ONNX model, from a path or from bytes.

    Raises `InvalidModelError` (E30xx) for what is not a valid model and `UnsupportedError` (E40xx; E4001 lists every
    node that cannot be mapped) for what this release cannot run.
    """
    where = "model" if isinstance(source, bytes) else str(source)
    model, shapes = specialise(read_model(source), where)
    graph = convert(model, shapes, where)
    verify(graph)
    graph = remove_dead(graph)
    verify(graph)
    return graph
