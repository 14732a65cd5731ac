"""The simulated board: the complete RTL of a device behind a pseudo-terminal or a TCP port."""

from .board import SimulatedBoard
from .server import serve

__all__ = ["SimulatedBoard", "serve"]
