"""Simulation engines behind one interface: the same program, the same inputs, on each rung of the exactness ladder."""

from .engine import NAMES, Engine, open, require_able

__all__ = ["NAMES", "Engine", "open", "require_able"]
