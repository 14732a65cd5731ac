"""Branches of a route: what leads to an end and to no other is taken up."""

import pytest

from onnxhw.devices.ecp5.closure.routes import source_of, without_branches

ROOT = "X3/Y4/Q0_SLICE;;1"
TRUNK = "X3/Y4/Q0;X3/Y4/0_0_Q0_SLICE->0_0_Q0;1"
FORK = "X3/Y1/V06N0003;X3/Y4/0_0_Q0->0_-3_V06N0003;1"
LEFT = "X3/Y1/A0_SLICE;X3/Y1/0_0_V06N0003->0_0_A0_SLICE;1"
FAR = "X9/Y1/H06E0003;X3/Y1/0_0_V06N0003->6_0_H06E0003;1"
RIGHT = "X12/Y1/CE1_SLICE;X12/Y1/-3_0_H06E0003->0_0_CE1_SLICE;1"


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ([], [ROOT, TRUNK, FORK, LEFT, FAR, RIGHT]),
        (["X3/Y1/A0_SLICE"], [ROOT, TRUNK, FORK, FAR, RIGHT]),
        (["X12/Y1/CE1_SLICE"], [ROOT, TRUNK, FORK, LEFT]),
        (["X12/Y1/CE1_SLICE", "X3/Y1/A0_SLICE"], [ROOT]),
        (["X1/Y1/A0_SLICE"], [ROOT, TRUNK, FORK, LEFT, FAR, RIGHT]),
    ],
)
def test_only_the_branch_is_taken_up(ends: list[str], left: list[str]) -> None:
    order = [RIGHT, LEFT, FAR, ROOT, FORK, TRUNK]  # nextpnr's is any
    found = without_branches(";".join(order), ends)
    assert found == ";".join(wire for wire in order if wire in left)


def test_the_source_of_a_switch_is_counted_from_its_tile() -> None:
    assert source_of("X48/Y25/-3_0_H06E0303->0_-3_V06N0303") == "X45/Y25/H06E0303"
    assert source_of("X12/Y9/0_2_V02S0101->0_0_D3") == "X12/Y11/V02S0101"
