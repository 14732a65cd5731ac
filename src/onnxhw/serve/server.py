"""`serve`: bytes between an endpoint and a simulated board, and the board's time."""

import time
from collections.abc import Callable

from .board import SimulatedBoard
from .clock import ClockFile
from .endpoint import Endpoint

AHEAD = 65536
"""Bytes of the client that wait for the line, and bytes of the board that wait for the client, at most each."""
AT_ONCE = 4096
"""Bytes offered to the line in one turn; more than a turn can send."""
PAUSE = 0.05
"""Seconds between looks at an idle board's client."""
BLOCKED = 0.005
"""Seconds between attempts to hand bytes to a client that does not read."""
IDLE_RATE = 0.25
"""Simulated seconds per second of ours while the board is idle. Less than one: a machine that is busy simulating
runs the client late, too."""

Tell = Callable[[str], None]


def serve(board: SimulatedBoard, endpoint: Endpoint, clock: ClockFile, tell: Tell) -> None:
    """Connect clients with the board until an exception (such as an interrupt) ends it.

    The board is simulated only while something happens in it or on its line. A client that does not read stops
    the simulated time, and loses nothing; without a client the board's bytes are lost, as on a board, and what a client
    sent is dropped when the next one is here before it was on the line. On a pseudo-terminal the host's end of the line
    has the speed that the client has set.

    `tell` is told, in one line each, who comes and goes.
    """
    sending, received = bytearray(), bytearray()
    sessions, there = endpoint.sessions, False
    visit, looked = _Visit(board), time.monotonic()
    while True:
        wait = 0.0 if sending or not board.idle else BLOCKED if received else PAUSE
        data = endpoint.receive(wait, min(AT_ONCE, max(0, AHEAD - len(sending))))
        sending += data
        visit.from_client += len(data)
        if there and (not endpoint.connected or endpoint.sessions != sessions):
            tell(f"client {sessions} has gone: {visit.account()}")
            received.clear()
            there = False
        if endpoint.connected and not there:
            there, sessions = True, endpoint.sessions
            del sending[: len(sending) - len(data)]  # what is left of the client before
            visit = _Visit(board, len(data))
            tell(f"client {sessions} is here")
        if data and (speed := endpoint.baud()) not in (None, board.model.baud):
            board.model.baud = speed
        if received:
            taken = endpoint.send(bytes(received))
            del received[:taken]
        now = time.monotonic()
        if len(received) > AHEAD:
            time.sleep(BLOCKED)
        elif sending or not board.idle:
            begun, came = board.advance(bytes(sending[:AT_ONCE]))
            endpoint.note_activity()
            del sending[:begun]
            received += came
            visit.to_client += len(came)
        else:
            board.rest(IDLE_RATE * (now - looked))
        looked = time.monotonic()
        clock.set(board.seconds())


class _Visit:
    """What one client has brought about."""

    def __init__(self, board: SimulatedBoard, from_client: int = 0) -> None:
        self.board, self.from_client, self.to_client = board, from_client, 0
        self._cycles, self._start = board.model.cycles, time.monotonic()

    def account(self) -> str:
        """In words."""
        cycles, seconds = self.board.model.cycles - self._cycles, time.monotonic() - self._start
        return (
            f"{self.from_client:,} bytes sent, {self.to_client:,} received, {cycles:,} cycles "
            f"({1e3 * cycles / self.board.clock_hz:,.1f} ms of the board) in {seconds:.1f} s"
        )
