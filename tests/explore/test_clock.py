"""The predicted clock: less, the fuller the device; the board's own where nothing is known."""

import dataclasses

from onnxhw.board import find
from onnxhw.explore.clock import CLOCK, predicted_mhz


def test_a_fuller_device_is_slower_by_what_the_fit_says(monkeypatch):
    monkeypatch.setitem(CLOCK, "ecp5", (120.0, 8.0))
    board = find("ulx3s-25f")
    assert [predicted_mhz(board, board.resources.lut4 * part // 2) for part in (0, 1, 2, 4)] == [120, 116, 112, 112]


def test_of_another_family_it_is_the_board_s_clock():
    board = dataclasses.replace(find("ulx3s-25f"), family="other")
    assert predicted_mhz(board, 1000) == board.core_hz / 1e6
