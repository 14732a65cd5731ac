"""The static scheduler: tile, order, place, emit, check."""

from .check import check
from .schedule import schedule

__all__ = ["check", "schedule"]
