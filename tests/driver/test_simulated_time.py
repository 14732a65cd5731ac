"""Simulated time: published by a board, counted by the timeouts of what talks to it."""

import os
import time
from pathlib import Path

import pytest

from onnxhw.driver import simulated_time
from onnxhw.driver.simulated_time import PacedTransport, RunningBoard, find, follow, running
from onnxhw.errors import UsageError
from onnxhw.serve.clock import ClockFile

BOARD = RunningBoard("tcp:127.0.0.1:4321", "ulx3s-85f", "mini", 8_000_000, 1_000_000, os.getpid())

pytestmark = pytest.mark.usefixtures("boards_folder")


class Silence:
    """A transport on which nothing comes; each read lets `step` simulated seconds pass, if it may wait."""

    baud, latency = 1_000_000, 0.1

    def __init__(self, clock: ClockFile, step: float) -> None:
        self.clock, self.step, self.time, self.reads = clock, step, 0.0, 0

    def write(self, data: bytes) -> None: ...

    def read(self, timeout: float) -> bytes:
        self.reads += 1
        self.time += self.step if timeout else 0.0
        self.clock.set(self.time)
        return b""

    def now(self) -> float:
        raise AssertionError("the board's clock counts, not this one")

    def close(self) -> None: ...


def test_a_running_board_is_found_with_its_time() -> None:
    with ClockFile(BOARD) as clock:
        clock.set(12.5)
        assert list(running()) == [BOARD]
        for address in ("tcp:127.0.0.1:4321", "tcp:localhost:4321"):
            found = find(address)
            assert found is not None
            assert found.board == BOARD
            assert found.now() == 12.5
            clock.set(12.75)
            assert found.now() == 12.75
            clock.set(12.5)
            found.close()
        assert find("tcp:localhost:4322") is None
        assert find("tcp:no such host:4321") is None
    assert list(running()) == []
    assert find(BOARD.address) is None


def test_a_pseudo_terminal_is_found_by_its_link(tmp_path: Path) -> None:
    link = tmp_path / "board"
    link.symlink_to("/dev/pts/77")
    with ClockFile(RunningBoard("/dev/pts/77", "b", "mini", 1, 1, 1)):
        for address in ("/dev/pts/77", str(link)):
            found = find(address)
            assert found is not None
            found.close()
        assert find("/dev/pts/7") is None


def test_one_board_per_address_and_a_killed_one_leaves_it_free() -> None:
    with ClockFile(BOARD) as clock:
        with pytest.raises(UsageError, match=r"E2580 .*runs at tcp:127\.0\.0\.1:4321"):
            ClockFile(BOARD)
        left = clock.path.read_bytes()
    clock.path.write_bytes(left)  # as after a kill: the file is there, its lock is not
    assert find(BOARD.address) is None
    assert list(running()) == []
    with ClockFile(BOARD):
        assert list(running()) == [BOARD]


def test_a_damaged_file_is_no_board() -> None:
    with ClockFile(BOARD) as clock:
        os.pwrite(os.open(clock.path, os.O_RDWR), b"{]", simulated_time.TEXT)
        assert find(BOARD.address) is None


def test_a_folder_of_someone_else_is_refused(boards_folder: Path) -> None:
    (boards_folder / f"onnxhw-boards-{os.getuid()}").symlink_to(boards_folder)
    with pytest.raises(UsageError, match=r"E2581 .*belongs to someone else"):
        ClockFile(BOARD)


def test_timeouts_count_simulated_seconds() -> None:
    with ClockFile(BOARD) as clock:
        line = Silence(clock, 0.125)
        transport = follow(line, BOARD.address)
        assert isinstance(transport, PacedTransport)
        assert transport.read(1.0) == b""
        assert line.reads == 8
        assert transport.now() == 1.0
        assert transport.read(0.0) == b""
        assert line.reads == 9
    assert follow(line, BOARD.address) is line, "no board, no change"


def test_a_board_that_stands_still_times_out_in_our_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: ours[0])
    with ClockFile(BOARD) as clock:
        clock.set(5.0)
        found = find(BOARD.address)
        assert found is not None
        ours[0] += simulated_time.STANDSTILL
        assert found.now() == 5.0
        ours[0] += 3
        assert found.now() == 8.0
        ours[0] += 1
        assert found.now() == 9.0
        clock.set(5.5)  # it goes on: nothing that was counted is taken back
        assert found.now() == 9.5
        ours[0] += simulated_time.STANDSTILL
        assert found.now() == 9.5
