"""`states_in_place`: states whose new value may be stored over the old one."""

from collections.abc import Sequence

from ..ir.states import State
from .placed_segment import PlacedSegment


def states_in_place(states: Sequence[State], placed: Sequence[PlacedSegment]) -> list[State]:
    """Those of which all loads of the old value stand before the first store of the new one, and which nobody loads
    once they are stored: then both are the same words of external memory, and nothing is copied at the end of a run.

    A load of a segment never waits for what a later segment makes, so stores can wait for these loads.
    """
    return [state for state in states if _ordered(state, placed)]


def _ordered(state: State, placed: Sequence[PlacedSegment]) -> bool:
    loads = {name: [n for n, each in enumerate(placed) for region, _ in each.loads if region.tensor == name]
             for name in (state.made, state.read)}  # fmt: skip
    made = [n for n, each in enumerate(placed) for region in each.results if region.tensor == state.made]
    return bool(made) and not loads[state.made] and max(loads[state.read], default=-1) <= made[0]
