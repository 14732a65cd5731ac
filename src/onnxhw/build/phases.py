"""What nextpnr is doing, from its log: a phase, and how far it is."""

import re
from pathlib import Path

PATTERNS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), phase, detail)
    for pattern, phase, detail in (
        (r"Packing \w", "pack", ""),
        (r"Creating initial analytic placement for (\d+) cells", "place", "{0} cells"),
        (r"Running Static placer", "place", ""),
        (r"overlap: COMB=([\d.]+)%", "place", "{0} % of the logic overlaps"),
        (r"at iteration #(\d+), type .*wirelen solved", "place", "iteration {0}"),
        (r"Strict legalising (\d+) cells", "legalise", "{0} cells"),
        (r"Running simulated annealing placer", "refine", ""),
        (r"at iteration #(\d+): temp", "refine", "iteration {0}"),
        (r"Routing globals", "route", "clocks"),
        (r"Running router", "route", ""),
        (r"iter=(\d+) wires=\d+ overused=(\d+)", "route", "iteration {0}, {1} wires used twice"),
        (r"^Info:\s+\d+ \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s+(\d+)\s*\|", "route", "{0} connections left"),
        (r"Critical path report", "time", ""),
    )
)  # fmt: skip
"""Lines of nextpnr's placers ("static", "heap") and routers (router1, router2), the phase, and what to tell of them."""
STEP = re.compile(r"^Info: iter=(\d+) steplen=")
"""Of the placer "static", which step it is at."""
ITERATION = re.compile(r"^Info:\s+(\d+) \|")
"""Of router1, how many connections it has routed, those that it ripped up again among them."""
UTILISATION = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%")
"""Of a kind of cell, how many the packed design has and how many there are on the device."""


class RouteLog:
    """Follows a log while it is written. `phase` is empty before the first that is known, `detail` where nothing is
    to be told. `too_many` are cells of the packed design, by kind, of which the device has fewer: (used, there);
    `steps` are those of the placer "static", `iterations` those of router1."""

    def __init__(self, path: Path) -> None:
        self.path, self.phase, self.detail = path, "", ""
        self.too_many: dict[str, tuple[int, int]] = {}
        self.steps = self.iterations = 0
        self._read, self._rest = 0, ""

    def look(self) -> str:
        """Read what has come since; phase and detail in words."""
        try:
            with self.path.open("rb") as log:
                log.seek(self._read)
                new = log.read()
        except OSError:
            return self.text
        self._read += len(new)
        *lines, self._rest = (self._rest + new.decode(errors="replace")).split("\n")
        for line in lines:
            if (cells := UTILISATION.match(line)) and int(cells[2]) > int(cells[3]):
                self.too_many[cells[1]] = int(cells[2]), int(cells[3])
            if step := STEP.match(line):
                self.steps = int(step[1])
            if iteration := ITERATION.match(line):
                self.iterations = int(iteration[1])
            for pattern, phase, detail in PATTERNS:
                if found := pattern.search(line):
                    self.phase, self.detail = phase, detail.format(*(f"{number}" for number in found.groups()))
                    break
        return self.text

    @property
    def text(self) -> str:
        """Phase and detail in words."""
        return f"{self.phase}: {self.detail}" if self.detail else self.phase
