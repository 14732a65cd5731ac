"""The static scheduler: tile, order, place, emit, check."""

from .alloc import Occupied
from .checker import check
from .input_release import input_free
from .reaching_definitions import check_reaching_definitions
from .refusals import TooLargeError, causes, combined
from .rewrite import same_operand
from .scheduler import (
    BegunProgram,
    InitialSchedule,
    begin,
    check_capacity,
    entries,
    executed,
    fastest,
    initial_cycles,
    initial_schedule,
    map_operations,
    require_capacity,
    schedule,
    unnamed,
)
from .search import ScheduledCandidate, build
from .table_limit import over_table_limit, tables_of

__all__ = [
    "BegunProgram",
    "InitialSchedule",
    "Occupied",
    "ScheduledCandidate",
    "TooLargeError",
    "begin",
    "build",
    "causes",
    "check",
    "check_capacity",
    "check_reaching_definitions",
    "combined",
    "entries",
    "executed",
    "fastest",
    "initial_cycles",
    "initial_schedule",
    "input_free",
    "map_operations",
    "over_table_limit",
    "require_capacity",
    "same_operand",
    "schedule",
    "tables_of",
    "unnamed",
]
