"""The static scheduler: tile, order, place, emit, check."""

from .checker import check
from .refusals import TooLargeError, causes
from .scheduler import check_capacity, fastest, initial_cycles, map_operations, require_capacity, schedule
from .table_limit import over_table_limit, tables_of

__all__ = [
    "TooLargeError",
    "causes",
    "check",
    "check_capacity",
    "fastest",
    "initial_cycles",
    "map_operations",
    "over_table_limit",
    "require_capacity",
    "schedule",
    "tables_of",
]
