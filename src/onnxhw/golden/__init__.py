"""The golden model: each IR operation in numpy, exact integers, written for reading."""

from . import host
from .model import evaluate, run

__all__ = ["evaluate", "host", "run"]
