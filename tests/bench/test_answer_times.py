"""When bytes pass: which are the input's last and the answer's first and last."""

from types import SimpleNamespace

import pytest
from answer_times import TimedByte, frames, to_answer

from onnxhw.driver.framing import Frame
from onnxhw.isa.link import Command, Header
from onnxhw.isa.memory import Space


def passed(*commands, begun):
    """A byte a second, frame behind frame, a delimiter before the first."""
    data = b"\0" + b"".join(Frame(Header(command, 0, space, 0, 1), b"\1\2\3\4").encode() for command, space in commands)
    return [TimedByte(byte, begun + at, begun + at + 1.0) for at, byte in enumerate(data)]


SIZE = len(Frame(Header(0, 0, 0, 0, 1), b"\1\2\3\4").encode())


def test_frames_have_the_times_of_their_first_and_last_bytes():
    found = frames(passed((Command.RUN, 0), (Command.POLL, 0), begun=100.0))
    assert [(frame.header.kind, begun, ended) for frame, begun, ended in found] == [
        (Command.RUN, 101.0, 101.0 + SIZE), (Command.POLL, 101.0 + SIZE, 101.0 + 2 * SIZE),
    ]  # fmt: skip


@pytest.mark.parametrize("space", [Space.INPUT, Space.EXTERNAL_INPUT])
def test_the_wait_is_from_the_last_input_to_the_answers_of_reads(space):
    write, step = (Command.WRITE | 6 << 4, space | 1 << 4), 1.0 + SIZE
    sent = passed((Command.RUN, 0), write, write, (Command.WRITE, Space.PARAM), (Command.READ, Space.ACT), begun=0.0)
    reply = 0x80 | 6 << 4
    kinds = Command.RUN, Command.WRITE, Command.POLL, Command.READ, Command.READ
    received = passed(*((kind | reply, 0) for kind in kinds), begun=1000.0)
    first, last = to_answer(SimpleNamespace(sent=sent, received=received))
    given = step + 2 * SIZE
    assert (first, last) == (1001.0 + 3 * SIZE - given, 1001.0 + 5 * SIZE - given)
