"""Simulation engines behind one interface: the same program, the same inputs, on each rung of the exactness ladder."""

from .engine import NAMES, Engine, open
from .run_setup import WITHOUT_MEMORY, require_able

__all__ = ["NAMES", "WITHOUT_MEMORY", "Engine", "open", "require_able"]
