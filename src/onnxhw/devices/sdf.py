"""`read`: the delays of a routed design, from the SDF file that nextpnr writes."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_TIMES = r"\([^:()]*:[^:()]*:([\d.e+-]+)\)"
_WIRE = re.compile(rf"\(INTERCONNECT (\S+) (\S+) {_TIMES} {_TIMES}\)")
_PATH = re.compile(rf"\(IOPATH (\S+) (\S+) {_TIMES} {_TIMES}\)")
_CHECK = re.compile(rf"\(SETUPHOLD \(posedge (\S+)\) \(\w+ (\S+)\) {_TIMES}")


class Pin(NamedTuple):
    """A pin of a cell."""

    cell: str
    port: str


@dataclass
class Delays:
    """What an SDF tells, in picoseconds at the slowest: of wires, by sink; through cells, by output; and the setup time
    of registers' inputs, with their clock's pin."""

    wires: dict[Pin, tuple[Pin, float]]
    paths: dict[Pin, list[tuple[Pin, float]]]
    setups: dict[Pin, tuple[str, float]]


def read(lines: Iterable[str]) -> Delays:
    """The delays of an SDF file as nextpnr writes it, a statement per line."""
    found = Delays({}, defaultdict(list), {})
    cell = ""
    for line in map(str.strip, lines):
        if match := _WIRE.match(line):
            driver, sink = (Pin(*_name(match[k]).rsplit("/", 1)) for k in (1, 2))
            found.wires[sink] = driver, max(float(match[3]), float(match[4]))
        elif line.startswith("(INSTANCE "):
            cell = _name(line[len("(INSTANCE ") : -1])
        elif match := _PATH.match(line):
            delay = max(float(match[3]), float(match[4]))
            found.paths[Pin(cell, _name(match[2]))].append((Pin(cell, _name(match[1])), delay))
        elif match := _CHECK.match(line):
            found.setups[Pin(cell, _name(match[1]))] = _name(match[2]), float(match[3])
    return found


def _name(text: str) -> str:
    """A name without its escapes."""
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text
