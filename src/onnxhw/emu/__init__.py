"""The emulator: executes a program instruction by instruction, from the definitions in `isa`."""

from .emulator import Emulator, run
from .machine import Machine

__all__ = ["Emulator", "Machine", "run"]
