"""The small program of the engines."""

from ..engines.conftest import graph, inputs, program, small

__all__ = ["graph", "inputs", "program", "small"]
