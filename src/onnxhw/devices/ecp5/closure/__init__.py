"""Timing closure: a routed design that misses its clock by little is changed where it is late, and routed again there.

nextpnr places by estimated wires and routes by real ones; between the two it goes no way back. Here, round by round,
cells on the latest ways of the routed design are moved to free sites near by, or wires on them that go a long way round
are taken up, and nextpnr routes what is missing.

Its router (router1) lets a wire take others' places the more, the longer the way is that it lies on. Of a design most
of whose ways are nearly as long as the longest every wire so takes up others, which take up others: for 66 wires that
were missing in a `mini` 15,000 were routed again, and other ways were late. So in a round only the registers on late
ways have their clock. Ways between others have no time to keep for nextpnr, their wires make room and take none. What
they then take is looked at here, by the delays that nextpnr writes.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ....errors import ToolError
from ....garbage import collection_paused
from ... import sdf, static_timing
from ...identity import identity
from ...report import RouteReport
from . import figures, moves, pins, placed, rounds, routes, slices
from .rounds import CONSTRAINTS, DELAYS, MOVED, REPORT, Closure, Route, Tick

__all__ = ["CONSTRAINTS", "DELAYS", "IDENTITY", "MOVED", "REPORT", "close_timing"]

IDENTITY = identity(
    __file__,
    *(str(module.__file__) for module in (figures, moves, pins, placed, rounds, routes, slices, sdf, static_timing)),
)
"""Of all that decides over what a route that misses its clock becomes."""
ROUNDS, IN_VAIN = 12, 4
"""Rounds at most, and those that bring nothing one after the other: each takes a part of the time of a route, and knows
what was late in those before it."""
GOALS = (0.985, 0.97, 0.955, 0.99)
"""Of the clock's period, what ways are to take by estimate: estimates are off, and wires that make room become longer.
The next one is for a round behind one that brought nothing."""


def close_timing(
    directory: Path, lpf: str, report: RouteReport, route: Route, kept: Iterable[str], say: Tick
) -> bool:
    """Bring the routed design in `directory` (`ROUTED`, `DELAYS`) nearer to the clock of `report` that is missed most:
    whether it was. Then `directory` has the files `kept` that `route` has left of the better design."""
    with collection_paused(), suppress(ToolError, OSError):  # what was routed is there
        say("late ways are looked for")
        closure = Closure(directory, lpf, report)
        if not closure.possible:
            return False
        first, best, state, goals = closure.worst, closure.worst, closure.design.state(), 0
        for _ in range(ROUNDS):
            if closure.round(GOALS[goals] * closure.period, route, directory, say):
                goals = 0
                if closure.worst < best:
                    best, state = closure.worst, closure.design.state()
                if best <= closure.period:
                    break
            else:
                goals += 1
                if goals == IN_VAIN:
                    break
        if best < first:
            closure.design.restore(state)
            with TemporaryDirectory(dir=directory) as scratch:
                closure.finish(route, Path(scratch))
                if closure.margin(Path(scratch)) > report.margin:
                    for name in kept:
                        (Path(scratch) / name).replace(directory / name)
                    return True
    return False
