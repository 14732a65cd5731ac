"""The golden model: each IR operation in numpy, exact integers, written for reading."""

from . import host
from .model import evaluate, run
from .stateful import StatefulRuns

__all__ = ["StatefulRuns", "evaluate", "host", "run"]
