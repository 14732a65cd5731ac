"""`predicted_mhz`: the clock of a configuration, of the part of the device that it takes."""

from ..board import Board

CLOCK = {"ecp5": (117.2, 0.3)}
"""By family, MHz of an empty device of grade -6 and what of it a full one loses (by these routes little), as
`bench/cost_model.py` fits them to the presets in bench/routed and to points of fronts (the error of each by a fit to
the others: docs/explore.md)."""


def predicted_mhz(board: Board, lut: int) -> float:
    """MHz that a design of so many LUT4 is expected to reach; the board's own clock for a family of which nothing has
    been routed. Routes of one design differ more than those of different sizes: it orders points of equal cycles."""
    if board.family not in CLOCK:
        return board.core_hz / 1e6
    empty, loss = CLOCK[board.family]
    return empty - loss * min(1.0, lut / board.resources.lut4)
