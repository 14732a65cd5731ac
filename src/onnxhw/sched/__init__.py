"""The static scheduler: tile, order, place, emit, check."""

from .check import check
from .schedule import fastest, schedule

__all__ = ["check", "fastest", "schedule"]
