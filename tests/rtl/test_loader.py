"""The loader before a core made of memory: every command, and noise that must never write."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from link_bench import CLOCK, SPAN, Bench, NoisyLine

from onnxhw.config import preset
from onnxhw.errors import LinkError
from onnxhw.host.client import Client
from onnxhw.host.framing import Frame, FrameReader, cobs_encode, crc32c
from onnxhw.host.transport import SimulationTransport
from onnxhw.isa.link import MAX_WORDS, VERSION, Command, Header, Info, Status, command_kind
from onnxhw.isa.memory import Control, Space

INFO = Info.of(preset("mini"), clock_hz=CLOCK, baud=CLOCK, build_id=0x0123456789ABCDEF)


@pytest.fixture
def bench():
    return Bench(INFO)


def connect(bench, line=None):
    return Client(SimulationTransport(line or bench.line, CLOCK))


def send(bench, *lines):
    """Send raw bytes; the frames that come back."""
    reader, got = FrameReader(), []
    for line in lines:
        got += reader.feed(bench.line.exchange(line))
    while received := bench.line.exchange(b""):
        got += reader.feed(received)
    assert reader.damaged == 0
    return got


def write_frame(seq, address, words, space=Space.ACT, **changes):
    fields = {"kind": command_kind(Command.WRITE), "seq": seq, "space": space, "address": address, "count": len(words)}
    return Frame(Header(**{**fields, **changes}), np.array(words, "<u4").tobytes()).encode()


def test_info_describes_the_device(bench):
    assert connect(bench).info() == INFO


def test_what_was_written_is_read_back(bench):
    client, rng = connect(bench), np.random.default_rng(0)
    wanted = np.zeros((16, SPAN), np.uint32)
    for space in (Space.ACT, Space.WEIGHT, Space.PARAM, Space.TABLE, Space.LOAD_UCODE, Space.VECTOR_UCODE):
        words = rng.integers(0, 1 << 32, 200, dtype=np.uint32)
        words[rng.integers(0, 200, 100)] &= 0xFF00FF00  # many zero bytes
        client.write(space, 7, words)
        wanted[space, 7:207] = words
    for count in (1, 2, MAX_WORDS, MAX_WORDS + 1):
        assert np.array_equal(client.read(Space.ACT, 5, count), wanted[Space.ACT, 5 : 5 + count])
    assert np.array_equal(bench.contents(), wanted)
    assert bench.peek(bench.core.wild) == 0
    assert client.counters.retries == 0


def test_answer_repeats_the_sequence_number_and_address(bench):
    for seq in (0, 1, 255):
        (answer,) = send(bench, write_frame(seq, 9, [1, 2, 3]))
        assert answer.header == Header(0x80 | command_kind(Command.WRITE), seq, Status.OK, 9, 0)
    (answer,) = send(bench, Frame(Header(command_kind(Command.READ), 4, Space.ACT, 10, 2)).encode())
    assert (answer.header.seq, answer.header.count, answer.payload) == (4, 2, np.array([2, 3], "<u4").tobytes())


def test_a_repeated_write_is_performed_once(bench):
    start = write_frame(5, Control.RUN, [1], Space.CONTROL)
    for _ in range(3):
        (answer,) = send(bench, start)
        assert answer.header.space == Status.OK
    assert bench.peek(bench.core.runs) == 1
    # Anything in between makes it a new command: another WRITE, or one with another number.
    send(bench, write_frame(6, 0, [0, 0], Space.TABLE))
    bench.line.run(4000)
    send(bench, start)
    bench.line.run(4000)
    send(bench, write_frame(7, Control.RUN, [1], Space.CONTROL))
    assert bench.peek(bench.core.runs) == 3
    bench.line.run(4000)
    send(bench, Frame(Header(command_kind(Command.READ), 8, Space.CONTROL, 1, 1)).encode())
    send(bench, write_frame(7, Control.RUN, [1], Space.CONTROL))
    assert bench.peek(bench.core.runs) == 4


def test_memories_are_out_of_reach_during_a_run(bench):
    client = connect(bench)
    client.write(Space.ACT, 0, [11])
    client.write(Space.CONTROL, Control.RUN, [1])
    assert client.status() == 1
    for attempt in (lambda: client.write(Space.ACT, 0, [12]), lambda: client.read(Space.ACT, 0, 1)):
        with pytest.raises(LinkError, match=r"E9111 .*ACT cannot be reached"):
            attempt()
    client.write(Space.CONTROL, Control.BUDGET, [77])
    assert client.control(Control.BUDGET) == 77
    bench.line.run(3000)
    assert client.status() == 2
    assert client.read(Space.ACT, 0, 1) == [11]
    assert bench.peek(bench.core.wild) == 0


@pytest.mark.parametrize(
    "header",
    [
        Header(0, 1, Space.ACT, 0, 0),
        Header(Command.READ | (VERSION + 1) << 4, 1, Space.ACT, 0, 1),
        Header(command_kind(Command.READ) + 2, 1, Space.ACT, 0, 1),
        Header(command_kind(Command.READ), 1, Space.WEIGHT, 0, 1),
        Header(command_kind(Command.READ), 1, Space.ACT, 0, MAX_WORDS + 1),
        Header(command_kind(Command.WRITE), 1, Space.ACT, 0, 2),
        Header(command_kind(Command.WRITE), 1, Space.EXTERNAL, 0, 1),
        Header(command_kind(Command.WRITE), 1, 0x11, 0, 1),
        Header(0x80 | command_kind(Command.WRITE), 1, Space.ACT, 0, 1),
    ],
)
def test_intact_nonsense_is_refused_by_number(bench, header):
    payload = b"" if header.kind & 15 != Command.WRITE else b"abcd"
    (answer,) = send(bench, Frame(header, payload).encode())
    assert (answer.header.space, answer.header.seq, answer.header.count) == (Status.BAD_COMMAND, 1, 0)
    assert bench.peek(bench.core.writes) == 0


def short(body):
    return cobs_encode(body + crc32c(body).to_bytes(4, "little")) + b"\0"


LONG = Header(command_kind(Command.WRITE), 1, Space.ACT, 0, 3).pack() + bytes(4 * 260)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(short(b""), id="only a crc"),
        pytest.param(short(Header(command_kind(Command.WRITE), 1, 1, 0, 1).pack() + b"abc"), id="not whole words"),
        pytest.param(short(LONG), id="too long"),
        pytest.param(write_frame(1, 0, [1, 2])[:-1] + b"\x05\0", id="cut piece"),
        pytest.param([*write_frame(1, 0, [1, 2])[:-1], 0x100, 0], id="framing error"),
        pytest.param([0x100, *write_frame(1, 0, [1, 2])], id="framing error first"),
        pytest.param(b"\x02\x07\0", id="one byte"),
    ],
)
def test_damaged_frames_write_nothing(bench, line):
    (answer,) = send(bench, line)
    assert answer.header.space in (Status.BAD_FRAME, Status.BAD_COMMAND)
    assert bench.peek(bench.core.writes) == 0
    (answer,) = send(bench, write_frame(3, 1, [4]))
    assert (answer.header.space, bench.peek(bench.core.writes)) == (Status.OK, 1)


def test_every_flipped_bit_of_a_frame_is_found(bench):
    """A frame with one bit flipped on the line, for every bit; the good frame after it always arrives."""
    frame = write_frame(9, 2, [0xDEADBEEF, 0x00FF0000])
    for bit in range(8 * (len(frame) - 1)):
        spoiled = bytearray(frame)
        spoiled[bit // 8] ^= 1 << bit % 8
        answers = send(bench, bytes(spoiled))
        assert all(answer.header.space == Status.BAD_FRAME for answer in answers), bit
        assert bench.peek(bench.core.writes) == 0, bit
    (answer,) = send(bench, frame)
    assert answer.header.space == Status.OK
    assert np.array_equal(bench.contents()[Space.ACT, 2:4], [0xDEADBEEF, 0x00FF0000])


def test_every_cut_of_a_frame_is_found(bench):
    """The line stops at every byte; a new session begins."""
    frame = write_frame(9, 2, [1, 2, 3])
    for cut in range(len(frame) - 1):
        send(bench, frame[:cut])
        assert connect(bench).read(Space.ACT, 0, 1) == [0]
        assert bench.peek(bench.core.writes) == 0


@pytest.mark.parametrize(("seed", "rate"), [(2, 0.01), (3, 0.03)])
def test_noise_never_writes_wrongly(bench, seed, rate):
    """Random writes and reads over a line with faults in both directions; the memory is always what was meant."""
    noisy = NoisyLine(bench.line, rate, seed)
    client, rng = connect(bench, noisy), random.Random(seed)
    wanted = np.zeros((16, SPAN), np.uint32)
    runs = gave_up = 0
    codes: set[str] = set()
    for _ in range(40):
        action = rng.choice(("write", "read", "run"))
        space, count = rng.choice((Space.ACT, Space.WEIGHT)), rng.randrange(1, 20)
        address = rng.randrange(SPAN - count)
        try:
            if action == "write":
                words = np.array([rng.choice((0, rng.getrandbits(32))) for _ in range(count)], np.uint32)
                before = wanted[space, address : address + count].copy()
                wanted[space, address : address + count] = words
                client.write(space, address, words)
            elif action == "read":
                got = client.read(Space.ACT, address, count)
                assert np.array_equal(got, wanted[Space.ACT, address : address + count])
            else:
                runs += 1
                client.write(Space.CONTROL, Control.RUN, [1])
                bench.line.run(3000)
        except LinkError as error:
            codes.add(error.code)
            gave_up += 1
            if action == "write":
                now = bench.contents()[space, address : address + count]
                assert np.array_equal(now, words) or np.array_equal(now, before)
                wanted[space, address : address + count] = now
            elif action == "run":
                bench.line.run(3000)
                assert bench.peek(bench.core.runs) - runs in (-1, 0)
                runs = bench.peek(bench.core.runs)
    assert np.array_equal(bench.contents(), wanted)
    assert bench.peek(bench.core.wild) == 0
    assert bench.peek(bench.core.runs) == runs
    assert codes <= {"E9103"}
    assert noisy.faults >= 10
    assert client.counters.retries > 0
    if rate <= 0.01:
        assert gave_up == 0
