"""The static scheduler: tile, order, place, emit, check."""

from .checker import check
from .refusals import TooLargeError, causes
from .scheduler import check_capacity, draft_cycles, fastest, map_operations, require_room, schedule
from .tables import beyond, tables_of

__all__ = [
    "TooLargeError",
    "beyond",
    "causes",
    "check",
    "check_capacity",
    "draft_cycles",
    "fastest",
    "map_operations",
    "require_room",
    "schedule",
    "tables_of",
]
