"""Rewrites of the IR graph, one per file. `simplify` runs them in order and verifies the graph after each."""

from collections.abc import Callable

from ..ir.graph import Graph
from ..ir.verify import verify
from .constant_channels import constant_channels
from .dead import remove_dead

PIPELINE: tuple[Callable[[Graph], Graph], ...] = (remove_dead, constant_channels)
"""The passes that every model goes through; none changes a tensor's values."""


def simplify(graph: Graph) -> Graph:
    """The graph after the whole pipeline."""
    verify(graph)
    for rewrite in PIPELINE:
        graph = rewrite(graph)
        verify(graph)
    return graph


__all__ = ["PIPELINE", "constant_channels", "remove_dead", "simplify"]
