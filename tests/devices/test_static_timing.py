"""Arrival and required times over a netlist of two clocks."""

import numpy as np
import pytest

from onnxhw.devices.sdf import Delays, Pin
from onnxhw.devices.static_timing import NEVER, StaticTiming

CLOCK, OTHER = 1, 2


def register(name: str, clock: int) -> dict[str, dict]:
    return {name: {"connections": {"CLK": [clock], "D": [9], "Q": [9]}}}


CELLS = {**register("a", CLOCK), **register("b", CLOCK), **register("slow", OTHER), "table": {"connections": {}}}


def delays() -> Delays:
    """a -> table -> b in 100 + 20 + 200, and from a register of another clock over the table in 5,000."""
    return Delays(
        wires={
            Pin("table", "A"): (Pin("a", "Q"), 100.0),
            Pin("table", "B"): (Pin("slow", "Q"), 5000.0),
            Pin("b", "D"): (Pin("table", "F"), 200.0),
            Pin("slow", "D"): (Pin("table", "F"), 7000.0),
            Pin("a", "CLK"): (Pin("pll", "O"), 900.0),
        },
        paths={
            Pin("table", "F"): [(Pin("table", "A"), 20.0), (Pin("table", "B"), 20.0)],
            **{Pin(name, "Q"): [(Pin(name, "CLK"), 500.0)] for name in ("a", "b", "slow")},
        },
        setups={Pin(name, "D"): ("CLK", 30.0) for name in ("a", "b", "slow")},
    )


def test_only_ways_between_registers_of_the_clock_count() -> None:
    timing = StaticTiming(delays(), CELLS)
    assert timing.clock == CLOCK, "the one with more ends"
    total = dict(zip([timing.pins[end].cell for end in timing.ends], timing.totals(), strict=True))
    assert total["b"] == 500 + 100 + 20 + 200 + 30
    assert total["a"] < NEVER / 2, "nothing comes there"
    assert set(total) == {"a", "b"}
    assert [timing.pins[pin] for pin in timing.path(timing.number[Pin("b", "D")])] == [
        Pin("a", "CLK"), Pin("a", "Q"), Pin("table", "A"), Pin("table", "F"), Pin("b", "D"),
    ]  # fmt: skip


def test_of_the_other_clock_the_other_ways_count() -> None:
    timing = StaticTiming(delays(), CELLS, OTHER)
    assert [timing.pins[end] for end in timing.ends] == [Pin("slow", "D")]
    assert timing.totals()[0] == 500 + 5000 + 20 + 7000 + 30


def test_arrival_less_required_is_the_slowest_way_through_a_pin() -> None:
    timing = StaticTiming(delays(), CELLS)
    for pin in (Pin("a", "Q"), Pin("table", "A"), Pin("table", "F"), Pin("b", "D")):
        number = timing.number[pin]
        assert timing.arrival[number] - timing.required[number] == 850
    timing.delay[timing.sink == timing.number[Pin("b", "D")]] = 1200.0
    timing.run()
    assert timing.totals().max() == 1850


def test_a_loop_has_no_arrival_and_hinders_nothing() -> None:
    found = delays()
    for name, other in (("x", "y"), ("y", "x")):
        found.wires[Pin(name, "A")] = Pin(other, "F"), 10.0
        found.paths[Pin(name, "F")] = [(Pin(name, "A"), 10.0)]
    timing = StaticTiming(found, CELLS)
    assert timing.totals().max() == 850
    assert timing.arrival[timing.number[Pin("x", "F")]] == NEVER


@pytest.mark.parametrize("seed", range(5))
def test_times_are_those_of_all_ways(seed: int) -> None:
    """A random network of tables without loops, against the longest path found by walking every one."""
    rng = np.random.default_rng(seed)
    found, inputs = delays(), {}
    for n in range(12):
        sources = [Pin(f"t{k}", "F") for k in rng.choice(n, size=min(n, 2), replace=False)] or [Pin("a", "Q")]
        for port, source in zip("AB", sources, strict=False):
            found.wires[Pin(f"t{n}", port)] = source, float(rng.integers(1, 1000))
            found.paths.setdefault(Pin(f"t{n}", "F"), []).append((Pin(f"t{n}", port), float(rng.integers(1, 300))))
        inputs[n] = sources
    found.wires[Pin("a", "D")] = Pin("t11", "F"), 1.0

    def longest(pin: Pin) -> float:
        if pin == Pin("a", "Q"):
            return 500.0
        paths = []
        for before, through in found.paths[pin]:
            source, wire = found.wires[before]
            paths.append(longest(source) + wire + through)
        return max(paths)

    timing = StaticTiming(found, CELLS)
    end = timing.ends.tolist().index(timing.number[Pin("a", "D")])
    assert timing.totals()[end] == longest(Pin("t11", "F")) + 1 + 30
