"""The static scheduler: tile, order, place, emit, check."""

from .check import check
from .refusals import TooLargeError, causes
from .schedule import check_capacity, fastest, map_operations, schedule

__all__ = ["TooLargeError", "causes", "check", "check_capacity", "fastest", "map_operations", "schedule"]
