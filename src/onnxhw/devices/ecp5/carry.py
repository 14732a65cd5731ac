"""Carry cells between Yosys and nextpnr: lookup tables that only they read are made part of them, and chains end.

Each half of a carry cell (CCU2C) begins with a lookup table of four inputs. Yosys uses two of them for what is added,
and puts into tables of their own what the operands are made of, be it the choice of one of two. Where all of that has
four inputs at most it fits the half: one table, one level of logic and one wire less. And for each carry that Yosys
has named, nextpnr adds a cell that leads it out of its chain, whether anything reads it or not.
"""

import json
from collections import defaultdict, deque
from functools import cache
from itertools import permutations
from typing import Any

from ..identity import identity
from ..netlist import top_module

INPUTS = "ABCD"
MOST_READERS = 2
"""Halves that a table is absorbed by. With more of them its inputs would get more wires than it had."""
IDENTITY = identity(__file__)
"""Of this file: a result is of the netlist that it made."""


class _Half:
    """One half of a carry cell, as a function of the nets that it reads.

    `nets` are at most four; `propagates` and `generates` are tables of two to the power of their number: the first net
    is the lowest bit of the index.
    """

    def __init__(self, nets: tuple[int, ...], propagates: tuple[int, ...], generates: tuple[int, ...]) -> None:
        self.nets, self.propagates, self.generates = nets, propagates, generates

    @classmethod
    def of(cls, pins: list[int | str], table: int) -> "_Half":
        nets = tuple(sorted({pin for pin in pins if isinstance(pin, int)}))
        propagates, generates = [], []
        for values in _values(nets):
            at = [values[pin] if isinstance(pin, int) else int(pin == "1") for pin in pins]
            propagates.append(_look(table, at))
            generates.append(_look(table, [*at[:2], 0, 0]))
        return cls(nets, tuple(propagates), tuple(generates))

    def with_table(self, net: int, table: "_Table") -> "_Half | None":
        """The same with what makes `net` inside; None if it has no place."""
        nets = tuple(sorted({*self.nets, *table.nets} - {net}))
        if len(nets) > len(INPUTS):
            return None
        propagates, generates = [], []
        for values in _values(nets):
            at = [values[one] if one != net else table.value(values) for one in self.nets]
            index = sum(value << bit for bit, value in enumerate(at))
            propagates.append(self.propagates[index])
            generates.append(self.generates[index])
        found = _Half(nets, tuple(propagates), tuple(generates))
        return found if found.pins() else None

    def pins(self) -> "tuple[dict[str, int], int] | None":
        """The net of each pin that has one (the others are high), and the table."""
        placed = _place(len(self.nets), self.propagates, self.generates)
        return placed and ({pin: self.nets[number] for number, pin in enumerate(placed[0])}, placed[1])


class _Table:
    """A LUT4: what it makes of the `nets` it reads."""

    def __init__(self, pins: list[int | str], table: int) -> None:
        self._pins, self._table = pins, table
        self.nets = {pin for pin in pins if isinstance(pin, int)}

    def value(self, values: dict[int, int]) -> int:
        return _look(self._table, [values[pin] if isinstance(pin, int) else int(pin == "1") for pin in self._pins])


def _values(nets: tuple[int, ...]) -> list[dict[int, int]]:
    return [{net: index >> bit & 1 for bit, net in enumerate(nets)} for index in range(1 << len(nets))]


def _look(table: int, pins: list[int]) -> int:
    return table >> sum(value << bit for bit, value in enumerate(pins)) & 1


@cache
def _place(count: int, propagates: tuple[int, ...], generates: tuple[int, ...]) -> tuple[tuple[str, ...], int] | None:
    """The pins of `count` nets and the table of a half that behaves so; None if there are none.

    Where it does not propagate the carry, the half's carry is its table's entry for A and B with C and D low.
    """
    for pins in permutations(INPUTS, count):
        entries: dict[int, int] = {}
        wanted: dict[int, int] = {}
        fits = True
        for index in range(1 << count):
            at = dict.fromkeys(INPUTS, 1) | {pin: index >> bit & 1 for bit, pin in enumerate(pins)}
            entries[sum(at[pin] << bit for bit, pin in enumerate(INPUTS))] = propagates[index]
            if not propagates[index]:
                carry = at["A"] + 2 * at["B"]
                fits &= wanted.setdefault(carry, generates[index]) == generates[index]
        if fits and all(entries.setdefault(entry, value) == value for entry, value in wanted.items()):
            return pins, sum(value << entry for entry, value in entries.items())
    return None


def finish(netlist: str) -> str:
    """Yosys' netlist (JSON of one flat module) with these tables in their carry cells, and no carry that nobody
    reads."""
    record = json.loads(netlist)
    module = top_module(record)
    cells: dict[str, Any] = module["cells"]
    halves, tables = dict[tuple[str, int], _Half](), dict[int, tuple[str, _Table]]()
    readers: dict[int, set[tuple[str, int]]] = defaultdict(set)
    outside = {bit for port in module["ports"].values() for bit in port["bits"]}
    for name, cell in cells.items():
        if _carries(cell):
            for number in (0, 1):
                halves[name, number] = half = _Half.of(_pins(cell, str(number)), _init(cell, f"INIT{number}"))
                for net in half.nets:
                    readers[net].add((name, number))
            outside.update(_inputs(cell, ("CIN",)))
            continue
        if cell["type"] == "LUT4" and isinstance(net := cell["connections"]["Z"][0], int):
            tables[net] = name, _Table(_pins(cell), _init(cell, "INIT"))
        for net in _inputs(cell):
            readers[net].add((name, -1))
    gone, changed = set[int](), set[tuple[str, int]]()
    waiting = deque(tables)
    while waiting:
        net = waiting.popleft()
        name, table = tables[net]
        users = sorted(readers[net])
        if net in gone or net in outside or not 0 < len(users) <= MOST_READERS:
            continue
        if any(user not in halves for user in users):
            continue
        made = [one for user in users if (one := halves[user].with_table(net, table))]
        if len(made) < len(users):
            continue
        halves.update(zip(users, made, strict=True))
        changed.update(users)
        gone.add(net)
        del cells[name]
        for leaf in sorted(table.nets):  # what makes these may have a place now
            readers[leaf] = readers[leaf] - {(name, -1)} | set(users)
            waiting.extend([leaf] if leaf in tables else [])
    for name, number in sorted(changed):
        _rewrite(cells[name], number, halves[name, number])
    _end_chains(cells, outside)
    for named in module["netnames"].values():
        named["bits"] = ["x" if bit in gone else bit for bit in named["bits"]]
    return json.dumps(record)


def _end_chains(cells: dict[str, Any], outside: set[int]) -> None:
    """Leave out carries that nobody reads, behind the last cell of a chain: what leads them out is a twelfth of all
    logic."""
    read = outside.union(*(_inputs(cell) for cell in cells.values()))
    for cell in cells.values():
        if cell["type"] == "CCU2C" and not read.intersection(cell["connections"].get("COUT", [])):
            cell["connections"]["COUT"] = ["x"]


def _carries(cell: dict[str, Any]) -> bool:
    """A carry cell whose halves both add."""
    return cell["type"] == "CCU2C" and all(cell["parameters"][f"INJECT1_{half}"].strip() == "NO" for half in (0, 1))


def _pins(cell: dict[str, Any], half: str = "") -> list[int | str]:
    return [cell["connections"].get(f"{pin}{half}", ["0"])[0] for pin in INPUTS]


def _init(cell: dict[str, Any], name: str) -> int:
    return int(cell["parameters"][name].replace("x", "0"), 2)


def _inputs(cell: dict[str, Any], ports: tuple[str, ...] = ()) -> list[int]:
    """The nets that a cell reads, by these ports or any."""
    ways = cell["port_directions"]
    return [
        bit
        for port, bits in cell["connections"].items()
        if ways[port] != "output" and (not ports or port in ports)
        for bit in bits
        if isinstance(bit, int)
    ]


def _rewrite(cell: dict[str, Any], number: int, half: _Half) -> None:
    placed = half.pins()
    assert placed, "a half is changed to what has a place"
    pins, table = placed
    for pin in INPUTS:
        cell["connections"][f"{pin}{number}"] = [pins.get(pin, "1")]
    cell["parameters"][f"INIT{number}"] = f"{table:016b}"
