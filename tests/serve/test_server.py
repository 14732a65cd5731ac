"""The loop between a client and the board, with a board that echoes and a client that follows a script."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from onnxhw.serve import server
from onnxhw.serve.server import serve


class Echo:
    """A board that sends back what it gets, ten bytes a turn; idle three turns after the last."""

    clock_hz = 1_000_000

    def __init__(self) -> None:
        self.model = SimpleNamespace(baud=1_000_000, cycles=0)
        self.heard: list[tuple[int, bytes]] = []
        self.turns_since, self.rested = 0, 0.0

    @property
    def idle(self) -> bool:
        return self.turns_since >= 3

    def advance(self, data: bytes) -> tuple[int, bytes]:
        self.model.cycles += 1000
        self.turns_since = 0 if data else self.turns_since + 1
        if data:
            self.heard.append((self.model.baud, data[:10]))
        return len(data[:10]), data[:10]

    def rest(self, seconds: float) -> None:
        self.rested += seconds

    def seconds(self) -> float:
        return self.model.cycles / self.clock_hz + self.rested


class Script:
    """An endpoint whose client does one step per call of `receive`, then interrupts the server."""

    address = "nowhere"

    def __init__(self, *steps: Callable[["Script"], bytes | None]) -> None:
        self.steps = list(steps)
        self.connected, self.sessions, self.speed, self.room = False, 0, 1_000_000, 1 << 20
        self.said = self.got = b""
        self.lost = self.active = 0
        self.waits: list[float] = []

    def receive(self, timeout: float, most: int) -> bytes:
        self.waits.append(timeout)
        if not self.steps and not self.said:
            raise KeyboardInterrupt
        self.said += self.steps.pop(0)(self) or b"" if self.steps else b""
        data, self.said = self.said[:most], self.said[most:]
        return data

    def send(self, data: bytes) -> int:
        if not self.connected:
            self.lost += len(data)
            return len(data)
        taken = data[: self.room]
        self.room -= len(taken)
        self.got += taken
        return len(taken)

    def note_activity(self) -> None:
        self.active += 1

    def baud(self) -> int | None:
        return self.speed

    def close(self) -> None: ...


def come(script: Script) -> None:
    script.connected = True
    script.sessions += 1


def go(script: Script) -> None:
    script.connected = False


def stop(script: Script) -> None:
    raise KeyboardInterrupt


def say(data: bytes) -> Callable[[Script], bytes]:
    return lambda script: data


def change(**values: Any) -> Callable[[Script], None]:
    return lambda script: vars(script).update(values)


PASS = [lambda script: None] * 12


def play(*steps: Any) -> tuple[Echo, Script, list[str], list[float]]:
    board, script, told, times = Echo(), Script(*steps), [], []
    clock: Any = SimpleNamespace(set=times.append)
    with pytest.raises(KeyboardInterrupt):
        serve(board, script, clock, told.append)  # type: ignore[arg-type]  # mocks
    return board, script, told, times


TEXT = bytes(range(100))


def test_bytes_go_to_the_board_and_back() -> None:
    board, script, told, times = play(come, say(TEXT), *PASS, *PASS)
    assert b"".join(data for _, data in board.heard) == TEXT
    assert script.got == TEXT
    assert times == sorted(times)
    assert told == ["client 1 is here"]


def test_an_idle_board_is_not_simulated_and_its_time_goes_on() -> None:
    board, script, _, times = play(come, say(TEXT), *PASS, *PASS)
    assert board.model.cycles < 1000 * 24
    assert script.waits[-1] == server.PAUSE
    assert set(script.waits[1:10]) == {0.0}
    assert board.rested > 0
    assert times[-1] == board.seconds()


def test_a_new_client_gets_nothing_of_the_one_before() -> None:
    _, script, told, _ = play(come, change(room=20), say(TEXT), *PASS, go, come, change(room=1000), say(b"new"), *PASS)
    assert script.got == TEXT[:20] + b"new"
    assert [line.split(":")[0] for line in told] == ["client 1 is here", "client 1 has gone", "client 2 is here"]
    assert told[1].startswith("client 1 has gone: 100 bytes sent, 100 received, ")


def test_clients_that_change_places_unseen_are_two() -> None:
    def take_over(script: Script) -> None:
        come(script)
        script.room = 1000

    _, script, told, _ = play(come, change(room=20), say(TEXT), *PASS, take_over, say(b"new"), *PASS)
    assert script.got == TEXT[:20] + b"new"
    assert [line.split(":")[0] for line in told][1:] == ["client 1 has gone", "client 2 is here"]


def test_without_a_client_the_boards_bytes_are_lost() -> None:
    board, script, _, _ = play(come, say(TEXT), go, *PASS)
    assert b"".join(data for _, data in board.heard) == TEXT, "what was sent is on its way"
    assert len(script.got) <= 20
    assert script.lost > 50


def test_a_client_that_does_not_read_stops_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "AHEAD", 30)
    monkeypatch.setattr(server, "BLOCKED", 0.0)
    board, script, _, _ = play(come, change(room=0), say(TEXT), *PASS, *PASS, stop)
    assert sum(len(data) for _, data in board.heard) == 40
    assert len(script.said) == 100 - 40 - 30, "and the client is not read for ever"
    board, script, _, _ = play(come, change(room=0), say(TEXT), *PASS, change(room=1000), *PASS, *PASS)
    assert script.got == TEXT, "and nothing is lost"


def test_the_line_has_the_clients_speed() -> None:
    slower, unknown = change(speed=115_200), change(speed=None)
    board, _, _, _ = play(come, say(b"a"), *PASS, slower, say(b"b"), *PASS, unknown, say(b"c"))
    assert board.heard == [(1_000_000, b"a"), (115_200, b"b"), (115_200, b"c")]


def test_what_a_client_left_does_not_reach_the_board_after_the_next_has_come() -> None:
    """The echo takes ten bytes a turn: most of the first client's are still waiting when the second one comes."""
    board, _script, told, _ = play(come, say(b"a" * 100), go, come, say(b"b" * 10), *PASS, *PASS)
    heard = b"".join(data for _, data in board.heard)
    assert heard == heard.replace(b"b", b"") + b"b" * 10
    assert heard.count(b"a") < 60
    assert told[0] == "client 1 is here"
    assert told[-1] == "client 2 is here"


def test_simulated_work_counts_as_activity() -> None:
    _, script, _, _ = play(come, say(TEXT), *PASS, *PASS)
    assert script.active >= 10
