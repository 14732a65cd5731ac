"""The static scheduler: tile, order, place, emit, check."""

from .check import check
from .refusals import TooLargeError, causes
from .schedule import check_capacity, fastest, map_operations, schedule
from .tables import beyond, tables_of

__all__ = [
    "TooLargeError",
    "beyond",
    "causes",
    "check",
    "check_capacity",
    "fastest",
    "map_operations",
    "schedule",
    "tables_of",
]
