"""Paths of a small placed netlist: where they begin, what cells and wires take, and which are left out."""

from typing import Any

import placed_paths
import pytest
from placed_paths import Design, wire_ns


def cell(kind: str, at: tuple[int, int], inputs: dict[str, int], outputs: dict[str, int]) -> dict[str, Any]:
    ports = {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output")}
    bits = {port: [net] for port, net in {**inputs, **outputs}.items()}
    attributes = {"NEXTPNR_BEL": f"X{at[0]}/Y{at[1]}/SLICEA"}
    return {"type": kind, "attributes": attributes, "port_directions": ports, "connections": bits}


@pytest.fixture
def design() -> Design:
    """A register, a lookup table twenty columns on, and beside it the register that takes its value."""
    cells = {
        "first_7": cell("TRELLIS_FF", (10, 10), {"CLK": 1, "DI": 4}, {"Q": 2}),
        "logic": cell("TRELLIS_COMB", (30, 10), {"A": 2}, {"F": 3}),
        "second_9": cell("TRELLIS_FF", (30, 10), {"CLK": 1, "DI": 3}, {"Q": 4}),
    }
    names = {"clk": [1], "from_7": [2], "made": [3], "back": [4]}
    module = {"cells": cells, "netnames": {name: {"bits": bits} for name, bits in names.items()}}
    return Design({"modules": {"top": module}})


def test_wires_take_longer_the_further_they_reach() -> None:
    assert wire_ns((10, 10), (10, 10)) == pytest.approx(0.72)
    assert wire_ns((10, 10), (30, 12)) == pytest.approx(0.120 * (6 + 15 + 2 * (5 + 2)))
    assert wire_ns(None, (30, 12)) == 0


def test_a_path_goes_through_logic_and_ends_at_registers(design: Design) -> None:
    (late, end, net), (back, other, _) = design.ends()
    assert (end, other) == ("second_9", "first_7")  # later by the lookup table; the tile connects F and DI itself
    assert late == pytest.approx(0.53 + wire_ns((10, 10), (30, 10)) + 0.24)
    assert back == pytest.approx(0.53 + wire_ns((30, 10), (10, 10)))
    assert [design.names[at] for at in design.path(net)] == ["made", "from_7"]


def test_kinds_leave_numbers_out() -> None:
    assert placed_paths._kind("core.bits_12_TRELLIS_FF_Q_3") == placed_paths._kind("core.bits_4_LUT4_Z")
