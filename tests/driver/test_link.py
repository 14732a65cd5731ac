"""Go-back-N before the model of the device: window, credit, repeats, sessions, and lines that fail."""

import itertools
import random

import numpy as np
import pytest
from link_parts import BAUD, Line, MemoryPort, model

from onnxhw.driver.client import Client
from onnxhw.driver.framing import Frame, FrameReader
from onnxhw.driver.link import ATTEMPTS, GREETINGS, Link, Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.errors import LinkError
from onnxhw.isa.link import (
    ANSWER_WORDS,
    CREDIT_UNIT,
    REPLY,
    SEND_WINDOW,
    VERSION,
    Command,
    Header,
    Status,
    command_kind,
)
from onnxhw.isa.memory import Control, Space


@pytest.fixture
def port():
    return MemoryPort()


@pytest.fixture
def device(port):
    return model(port)


@pytest.fixture
def line(device):
    return Line(device)


def connect(line):
    return Client(SimulationTransport(line, BAUD))


def frames_of(data):
    return [Frame.decode(piece) for piece in data.split(b"\0") if piece]


def test_large_tensors_travel_at_line_rate(device, line):
    """Payload is at least 95 % of what the line could carry, both ways (frames leave 97 %)."""
    client = connect(line)
    client.head()
    words = np.random.default_rng(0).integers(0, 1 << 32, 8192, dtype=np.uint32)
    for transfer in (lambda: client.write(Space.ACT, 0, words), lambda: client.read(Space.ACT, 0, len(words))):
        start = device.seconds()
        got = transfer()
        assert 4 * len(words) >= 0.95 * (device.seconds() - start) * BAUD / 10
        assert got is None or np.array_equal(got, words)


def test_window_and_credit_bound_what_is_under_way(line):
    """The line delivers nothing back: no more than `SEND_WINDOW` frames and the credit are sent."""
    for credit, words in ((200, 128), (255, 1), (20, 128)):
        client = connect(line)
        client.head()
        client.link._credit = CREDIT_UNIT * credit
        sent = []
        line.there = lambda data, sent=sent: sent.append(data) or b""
        with pytest.raises(LinkError, match="E9103"):
            client.link.perform([Request(Command.WRITE, Space.ACT, 0, words, b"abcd" * words)] * 40)
        burst = frames_of(sent[0])
        bytes_sent = len(sent[0])
        assert len(burst) <= SEND_WINDOW
        assert bytes_sent <= CREDIT_UNIT * credit or len(burst) == 1
        assert len(burst) == (SEND_WINDOW if words == 1 else max(1, CREDIT_UNIT * credit // (bytes_sent // len(burst))))
        line.there = lambda data: data


def test_answers_under_way_are_no_more_than_the_device_keeps(device, line):
    link = Link(SimulationTransport(line, BAUD))
    link.perform([Request(Command.POLL, count=1)])
    batches = []
    line.there = lambda data: batches.append(frames_of(data)) or data
    half = Request(Command.READ, Space.ACT, 0, ANSWER_WORDS // 2)
    write = Request(Command.WRITE, Space.ACT, 0, 1, b"abcd")
    one = Request(Command.POLL, count=1)
    link.perform([half, write, half, write, one, write, half])
    kinds = [[frame.header.kind & 15 for frame in batch] for batch in batches if batch]
    read, poll = Command.READ, Command.POLL
    assert kinds == [[read, Command.WRITE, read, Command.WRITE], [poll, Command.WRITE], [read]]


def losing(number):
    """A way back on which one reply is lost, counted from 1; none for 0."""
    count = itertools.count(1)

    def back(data):
        return b"".join(piece + b"\0" for piece in data.split(b"\0")[:-1] if next(count) != number)

    return back


@pytest.mark.parametrize("lost", range(30))
def test_an_answer_that_comes_again_is_what_it_was(port, device, line, lost):
    """Any one reply is lost; meanwhile the window goes on and changes what was read."""
    device.loaded = True
    client = connect(line)
    client.head()
    line.back = losing(lost)
    read = Request(Command.READ, Space.ACT, 0, 40)
    commands, wanted = [], []
    for token in range(12):
        words = np.full(40, token + 1, "<u4").tobytes()
        commands += [Request(Command.WRITE, Space.INPUT, 0, 1, bytes(4)), Request(Command.RUN, address=token)]
        commands += [Request(Command.POLL, count=1)]
        commands += [Request(Command.WRITE, Space.ACT, 0, 40, words), read]
        wanted += [(0, b""), (token, b""), (token, None), (0, b""), (0, words)]
    answers = client.link.perform(commands)
    for answer, (address, payload) in zip(answers, wanted, strict=True):
        assert answer.address == address
        assert payload is None or answer.payload == payload
    assert port.runs == 12


@pytest.mark.parametrize("lost", range(30))
def test_a_lost_acknowledgement_never_runs_twice(port, device, line, lost):
    """Any one reply is lost: every WRITE and RUN is performed once."""
    device.loaded = True
    client = connect(line)
    line.back = losing(lost)
    write = Request(Command.WRITE, Space.ACT, 0, 1, b"abcd")
    inputs = Request(Command.WRITE, Space.INPUT, 0, 1, b"abcd")
    commands = [write, inputs, Request(Command.RUN, address=7), Request(Command.POLL, count=1)]
    for token in range(5):
        commands[2] = Request(Command.RUN, address=token)
        answers = client.link.perform(commands)
        assert answers[3].address == token
    assert port.runs == 5
    assert len(port.log) == 15


@pytest.mark.parametrize("lost", [0, 1, 4, 7, 12, 19])
@pytest.mark.parametrize("how", ["drop", "spoil", "delimiter"])
def test_a_lost_frame_is_sent_again_in_order(port, line, lost, how):
    client = connect(line)
    client.head()
    seen = [-1]

    def there(data):
        out = b""
        for piece in data.split(b"\0")[:-1]:
            seen[0] += bool(piece)
            if seen[0] == lost and piece:
                piece = {"drop": b"", "spoil": piece[:-1] + bytes([piece[-1] ^ 4 or 1]), "delimiter": piece}[how]
                out += piece + (b"" if how == "delimiter" else b"\0")
            else:
                out += piece + b"\0"
        return out

    line.there = there
    words = np.arange(20 * 128, dtype=np.uint32)
    client.write(Space.ACT, 0, words)
    assert [entry for entry in port.log if entry[0] == Space.ACT] == [(1, 128 * at, 128) for at in range(20)]
    assert client.counters.retries > 0
    assert client.counters.timeouts == (1 if lost == 19 and how != "spoil" else 0)


def test_a_lost_answer_of_a_read_is_asked_for_again(port, line):
    client = connect(line)
    words = np.arange(10 * 128, dtype=np.uint32)
    client.write(Space.ACT, 0, words)
    count = [0]

    def back(data):
        pieces = data.split(b"\0")
        for at, piece in enumerate(pieces[:-1]):
            count[0] += bool(piece)
            if count[0] in (2, 5, 8):
                pieces[at] = piece[:-1]
        return b"\0".join(pieces)

    line.back = back
    assert np.array_equal(client.read(Space.ACT, 0, len(words)), words)
    assert client.link.damaged == 3
    assert client.counters.timeouts == 0, "the answers behind a lost one show that it is lost"


def test_a_dead_line_gives_up_in_bounded_time(device, line):
    client = connect(line)
    line.there = lambda data: b""
    with pytest.raises(LinkError, match=rf"E9103 .*no valid answer to HELLO in {GREETINGS} attempts"):
        client.head()
    line.there = lambda data: data
    client.head()
    start = device.seconds()
    line.there = lambda data: b""
    with pytest.raises(LinkError, match=rf"E9103 .*no valid answer to READ in {ATTEMPTS} attempts"):
        client.read(Space.ACT, 0, 1)
    assert device.seconds() - start < 0.04
    line.there = lambda data: data
    assert client.read(Space.ACT, 0, 1) == [0], "the next command begins with a handshake"


def test_a_device_that_was_restarted_is_noticed(port, line):
    client = connect(line)
    client.write(Space.ACT, 0, [5])
    line.device = model(port)
    with pytest.raises(LinkError, match=r"E9120 .*restarted"):
        client.write(Space.ACT, 0, [6])
    assert port.memory[Space.ACT, 0] == 5
    client.write(Space.ACT, 0, [7])
    assert port.memory[Space.ACT, 0] == 7


def test_a_second_host_ends_the_session_of_the_first(line):
    one, two = connect(line), connect(line)
    two.link.session = one.link.session % 255 + 1
    one.write(Space.ACT, 0, [1])
    two.write(Space.ACT, 0, [2])
    with pytest.raises(LinkError, match="E9120"):
        one.read(Space.ACT, 0, 1)


def test_answers_of_an_earlier_session_are_discarded(port, device, line):
    """A host dies with commands and answers under way; the next one is not told what the first asked for."""
    port.write(Space.ACT, 0, range(1000))
    for cut in range(0, 60, 7):
        link = connect(line).link
        link.perform([Request(Command.POLL, count=1)])
        asked = [Request(Command.READ, Space.ACT, 100 * n, 100) for n in range(4)]
        reads = b"".join(link.frame(each, link._due + n).encode() for n, each in enumerate(asked))
        stale = device.exchange(reads[: len(reads) - cut])
        pending = [stale]
        line.back = lambda data, pending=pending: (pending.pop() if pending else b"") + data
        client = connect(line)
        assert np.array_equal(client.read(Space.ACT, 5, 300), np.arange(5, 305))
        line.back = lambda data: data


def test_the_answer_to_an_old_handshake_is_not_taken(line):
    """It names another number that is due, and another token."""
    old = [Frame(Header(command_kind(Command.HELLO) | REPLY, 99, Status.OK, 0x1000000 - 1, 0, 255)).encode()]
    line.back = lambda data: (old.pop() if old else b"") + data
    client = connect(line)
    client.write(Space.ACT, 0, [1])
    assert client.read(Space.ACT, 0, 1) == [1]
    assert client.counters.retries == 0


def test_stale_damaged_and_foreign_answers_are_not_taken(port, line):
    """Before each right answer come one of an old number, one of the wrong length and one that is damaged."""
    client = connect(line)
    client.write(Space.ACT, 3, [77])

    def back(data):
        out = b""
        for frame in FrameReader().feed(data):
            header, whole = frame.header, frame.encode()
            stale = Header(header.kind, (header.seq - 1) % 256, 0, 3, 1, 255)
            longer = Header(header.kind, header.seq, 0, 3, 2, 255)
            foreign = Header(command_kind(Command.POLL) | REPLY, header.seq, 0, 3, 1, 255)
            out += Frame(stale, b"abcd").encode() + Frame(longer, b"abcdefgh").encode()
            out += Frame(foreign, b"abcd").encode() + whole[:-3] + b"\0" + whole
        return out

    line.back = back
    assert client.read(Space.ACT, 3, 1) == [77]
    assert client.link.damaged == 1


def test_another_protocol_is_named(line):
    client = connect(line)
    original = line.device._formed
    line.device._formed = lambda header, words: original(header, words) and header.kind >> 4 != VERSION
    with pytest.raises(LinkError, match=r"E9106 .*another version"):
        client.read(Space.ACT, 0, 1)


def test_random_faults_never_change_what_is_written(port, device, line):
    """Bits, bytes and bursts are lost both ways; the memory is always what was meant."""
    rng = random.Random(5)
    faults = [0]

    def spoil(data):
        out = bytearray()
        for byte in data:
            if rng.random() < 0.002:
                faults[0] += 1
                flipped = bytes([byte ^ 1 << rng.randrange(8)])
                out += rng.choice((b"", flipped, bytes([byte, byte]), b"\0", rng.randbytes(5)))
            else:
                out.append(byte)
        return bytes(out)

    line.there = line.back = spoil
    device.loaded = True
    client, wanted = connect(line), {}
    for runs in range(60):
        address, count = rng.randrange(1000), rng.choice((1, 3, 20, 300))
        words = [rng.choice((0, rng.getrandbits(32))) for _ in range(count)]
        client.write(Space.ACT, address, words)
        wanted.update({address + at: word for at, word in enumerate(words)})
        assert client.read(Space.ACT, address, count).tolist() == words
        client.link.perform([Request(Command.RUN, address=5), Request(Command.WRITE, Space.INPUT, 0, 1, bytes(4))])
        assert port.runs == runs + 1
    assert {address: port.memory[Space.ACT, address] for address in wanted} == wanted
    assert faults[0] > 100
    assert client.counters.retries > 10
    assert port.memory.get((0, Control.LOAD_COUNT)) is None


def test_refusals_leave_the_numbers_in_step(port, line):
    """A command that is refused uses up no number; what followed it in the window is not performed."""
    client = connect(line)
    client.head()
    port.lasting = True
    port.write(Space.CONTROL, Control.RUN, [1])
    with pytest.raises(LinkError, match="E9111"):
        client.write(Space.WEIGHT, 0, np.ones(1000))
    assert [entry for entry in port.log if entry[0] == Space.WEIGHT] == []
    client.reset()
    client.write(Space.ACT, 0, [9])
    assert port.memory[Space.ACT, 0] == 9
    assert Status.BUSY not in port.memory.values()
