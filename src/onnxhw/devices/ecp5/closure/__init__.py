"""Timing closure: a routed design that misses its clock by little is changed where it is late, and routed again there.

nextpnr places by estimated wires and routes by real ones, and does not place again. Here, round by round, cells on the
latest paths of the routed design are moved to free sites near by, or wires on them that go a long way round are ripped
up, and nextpnr routes what is missing.

Its router (router1) lets a wire take others' places the more, the longer the path is that it lies on. Of a design most
of whose paths are nearly as long as the longest every wire so rips up others, which rip up others: for 66 wires that
were missing in a `mini` 15,000 were routed again, and other paths were late. So in a round only the registers on late
paths have their clock. Paths between others have no time to keep for nextpnr, their wires make room and take none. What
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

__all__ = ["CONSTRAINTS", "DELAYS", "IDENTITY", "MOVED", "REPORT", "Closure", "close_timing"]

IDENTITY = identity(
    __file__,
    *(str(module.__file__) for module in (figures, moves, pins, placed, rounds, routes, slices, sdf, static_timing)),
)
"""Of all that decides over what a route that misses its clock becomes."""
ROUNDS = 12
"""Rounds at most: each takes a part of the time of a route."""
GOALS = (0.985, 0.97, 0.955, 0.99)
"""Of the clock's period, what paths are to take by estimate: estimates are off, and wires that make room become longer.
The next one is for a round behind one that brought nothing, as often as there are any."""


def close_timing(
    directory: Path, lpf: str, report: RouteReport, route: Route, kept: Iterable[str], say: Tick
) -> bool:
    """Bring the routed design in `directory` (`ROUTED`, `DELAYS`) nearer to the clock of `report` that is missed most:
    whether it was. Then `directory` has the files `kept` that `route` has left of the better design."""
    with collection_paused(), suppress(ToolError, OSError):  # what was routed is there
        say("late paths are looked for")
        closure = Closure(directory, lpf, report)
        if not closure.possible:
            return False
        nearer, in_vain = False, 0
        for _ in range(ROUNDS):
            if closure.round(GOALS[in_vain] * closure.period, route, directory, say):
                nearer, in_vain = True, 0
            else:
                in_vain += 1
            if in_vain == len(GOALS) or closure.worst <= closure.period:
                break
        if nearer:
            with TemporaryDirectory(dir=directory) as scratch:
                closure.finish(route, Path(scratch))
                if closure.margin(Path(scratch)) > report.margin:
                    for name in kept:
                        (Path(scratch) / name).replace(directory / name)
                    return True
    return False
