"""The loader before a core made of memory: in step with its model in Python, and noise that must never write."""

import random

import numpy as np
import pytest
from link_bench import CLOCK, DONE, INPUT_WORDS, SPAN, Bench, NoisyLine
from link_parts import MemoryPort

from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.framing import Frame, FrameReader, cobs_encode, crc32c
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import (
    ARMED,
    COMMIT_WORDS,
    COMPLETE,
    IMAGE,
    LOADED,
    REGISTERS,
    VERSION,
    Command,
    Header,
    Info,
    Status,
    load_record,
)
from onnxhw.isa.memory import ENDED, Control, Space
from onnxhw.presets import preset

INFO = Info.of(preset("mini"), clock_hz=CLOCK, baud=CLOCK, build_id=0x0123456789ABCDEF)
WITH_EXTERNAL = Info.of(preset("mini+sdram"), clock_hz=CLOCK, baud=CLOCK)
SESSION = 0x5A
pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("compiler")]


@pytest.fixture
def bench():
    return Bench(INFO)


def connect(bench, line=None):
    return Client(SimulationTransport(line or bench.line, CLOCK))


def command(kind, seq=0, space=0, address=0, words=(), count=None, session=SESSION, version=VERSION):
    payload = np.array(words, "<u4").tobytes()
    header = Header(kind | version << 4, seq % 256, space, address, len(words) if count is None else count, session)
    return Frame(header, payload)


def hello(token=1):
    return command(Command.HELLO, address=token).encode()


class InStep:
    """A loader and its model side by side: the same bytes in, the same bytes out, the same memory."""

    def __init__(self, seed: int = 0, info: Info = INFO) -> None:
        self.rng, self.held = random.Random(seed), 0
        self.bench = Bench(info, run_cycles=1 << 30)
        self.port = MemoryPort(cycles=0, input_words=INPUT_WORDS)
        self.port.lasting = True
        self.port.memory |= {(0, Control.ARRAY_DONE): DONE, (0, Control.VECTOR_DONE): DONE}
        self.model = DeviceModel(info, self.port)
        self.statuses: set[int] = set()

    def send(self, items) -> bytes:
        """Frame after frame, each once the line is idle: what is answered to a bad frame depends on that."""
        items, got = list(items), b""
        while items:
            end = items.index(0) + 1 if 0 in items else len(items)
            got += self._send_frame(items[:end])
            items = items[end:]
        return got

    def _send_frame(self, items) -> bytes:
        wanted = self.model.feed(items)
        self.held += self.model.waits
        ends = self.model.waits and self.rng.random() < 0.5
        if ends:
            self.port.memory[0, Control.RUN] = ENDED
            wanted += self.model.feed(b"")
        self.statuses |= {frame.header.space for frame in FrameReader().feed(wanted)}
        got, waited = self.bench.line.exchange(items), 0
        self.bench.poke("stop", ends)
        # Answers take time; if there is none, the time of a short one shows it.
        while len(got) < len(wanted) or waited < 6 * len(items) + 400:
            got += self.bench.line.exchange(b"")
            waited += 100
            assert waited < 100_000
        self.bench.poke("stop", 0)
        assert got == wanted, (bytes(item & 255 for item in items).hex(), got.hex(), wanted.hex())
        return got

    def check_memory(self) -> None:
        contents = self.bench.contents()
        wanted = np.zeros_like(contents)
        for (space, address), word in self.port.memory.items():
            if (space, address) not in ((0, Control.RUN), (0, Control.CYCLES)):
                wanted[space, address] = word
        assert np.array_equal(contents, wanted)
        assert self.bench.peek("runs") == self.port.runs
        assert self.bench.peek("wild") == 0


def random_items(rng, model):
    """The bytes of something that a line may bring: most often the command that is due, or nearly."""
    kind = rng.choice([*Command, Command.WRITE, Command.READ, Command.WRITE, Command.RUN, rng.randrange(16)])
    seq = model.due + rng.choice((0, 0, 0, 0, 0, -1, -1, -2, -127, -128, 1, 2, 128, 100))
    space = rng.choice([*Space, REGISTERS, 1, 1, 2, 10, 15, *[Space.INPUT] * 4]) | rng.choice((0, 0, 0, 1, 3)) << 4
    count = rng.choice((0, 1, 1, 2, 6, 6, 9, 9, 129 if rng.random() < 0.1 else 3))
    follows = kind in (Command.WRITE, Command.COMMIT) or rng.random() < 0.03
    words = [rng.choice((0, rng.getrandbits(32))) for _ in range(count)] if follows else []
    if kind == Command.COMMIT and model.info.external and rng.random() < 0.8:
        space = rng.choice((Space.EXTERNAL, 0))
        words = [rng.choice((0, 1, rng.getrandbits(32))) for _ in range(1 if space else COMMIT_WORDS + 1)]
    if kind == Command.COMMIT and words and rng.random() < 0.7:
        words[0] = model.load_crc
    session = rng.choice((SESSION,) * 15 + (0, 7))
    version = rng.choice((VERSION,) * 15 + (1, 2, 8 + VERSION))
    address = rng.randrange(200) if kind != Command.RUN else rng.getrandbits(24)
    if space & 15 == Space.INPUT and rng.random() < 0.9:
        address = rng.choice((0, model._following))
    frame = command(kind, seq, space, address, words, count if not words else None, session, version)
    line = list(frame.encode())
    fault = rng.random()
    at = rng.randrange(len(line))
    if fault < 0.05:
        line[at] ^= 1 << rng.randrange(8)
    elif fault < 0.09:
        line.insert(at, 0x100)
    elif fault < 0.12:
        del line[at]
    elif fault < 0.14:
        line.insert(at, rng.randrange(256))
    elif fault < 0.16:
        line = [*rng.randbytes(rng.randrange(1, 40))]
    elif fault < 0.18:
        body = rng.randbytes(rng.choice((0, 4, 8, 5)))
        line = list(cobs_encode(body + crc32c(body).to_bytes(4, "little")))
    return [*line, 0]


def run_in_step(seed, frames, info=INFO):
    rng, both = random.Random(seed), InStep(seed, info)
    both.send(hello())
    for _ in range(frames):
        both.send(random_items(rng, both.model))
    both.check_memory()
    return both


def test_loader_and_model_in_step_on_each_status():
    """One command after the other that brings each status, and what it leaves behind."""
    both = InStep()
    write = command(Command.WRITE, 0, Space.WEIGHT, 7, [1, 0, 3])
    both.send(write.encode())  # no session yet
    both.send(hello(0xABCDEF))
    both.send(write.encode())
    both.send(write.encode())  # acknowledged, not performed again
    crc = crc32c(load_record(Space.WEIGHT, 7, write.payload))
    both.send(command(Command.RUN, 1).encode())  # not loaded
    both.send(command(Command.COMMIT, 1, words=[crc ^ 1, 1, 2, 3, 4, 5, 6]).encode())
    both.send(command(Command.COMMIT, 1, words=[crc, 1, 2, 3, 4, 5, 0]).encode())
    both.send(command(Command.READ, 2, REGISTERS, count=2).encode())
    both.send(command(Command.WRITE, 3, Space.INPUT, 1, [1]).encode())  # nothing was begun
    both.send(command(Command.WRITE, 3, Space.INPUT, 0, [1, 2, 3, 4]).encode())
    both.send(command(Command.RUN, 4, address=0x123456).encode())  # waits for its inputs
    assert (both.port.runs, both.model.armed) == (0, True)
    both.send(command(Command.POLL, 5, count=6, address=1).encode())  # and nobody waits for it
    both.send(command(Command.READ, 6, REGISTERS, count=2).encode())
    both.send(command(Command.WRITE, 7, Space.INPUT, 0, [1]).encode())  # begun anew
    both.send(command(Command.WRITE, 8, Space.INPUT, 4, [5, 6]).encode())  # not the next one
    both.send(command(Command.WRITE, 8, Space.INPUT, 1, [2, 3, 4]).encode())
    both.send(command(Command.WRITE, 9, Space.INPUT, 4, [5, 6]).encode())
    assert (both.port.runs, both.model.armed) == (1, False)
    both.send(command(Command.POLL, 10, count=6).encode())
    both.send(command(Command.READ, 11, Space.ACT, 0, count=1).encode())  # busy
    both.send(command(Command.RUN, 4, address=0x123456).encode())  # repeated during the run
    both.send(command(Command.READ, 12, Space.CONTROL, 0, count=2).encode())  # ahead
    both.send(command(Command.READ, 13, Space.CONTROL, 0, count=2).encode())  # told already
    both.send(command(Command.RESET, 11).encode())
    both.send(command(Command.READ, 12, Space.ACT, 5, count=1).encode())
    both.send(write.encode()[:-3] + b"\0")
    both.send(command(Command.WRITE, 13, Space.CONTROL, 1, [1]).encode())  # bad command
    both.send(command(Command.RESET, 13, address=1).encode())
    both.send(command(Command.READ, 14, REGISTERS, count=2).encode())
    # What was answered comes again as it was, whatever has happened since.
    both.send(command(Command.WRITE, 15, Space.ACT, 5, [1, 2, 3]).encode())
    read = command(Command.READ, 16, Space.ACT, 5, count=3).encode()
    answer = both.send(read)
    both.send(command(Command.WRITE, 17, Space.ACT, 5, [4, 5, 6]).encode())
    both.send(command(Command.READ, 18, Space.ACT, 5, count=3).encode())
    assert both.send(read) == answer
    both.send(command(Command.POLL, 10, count=6).encode())
    both.check_memory()
    assert both.statuses == set(Status)
    assert both.port.runs == 1


def test_a_run_takes_inputs_that_are_complete(bench):
    """RUN before or behind the last word of input; RESET, another program or host forget what was before."""
    both, numbers = InStep(), iter(range(100))

    def send(kind, *args, **kwargs):
        both.send(command(kind, next(numbers), *args, **kwargs).encode())

    def flags():
        send(Command.READ, REGISTERS, count=1)
        return both.model.loaded * LOADED | both.model.armed * ARMED | both.model.complete * COMPLETE

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6])
    words = list(range(1, INPUT_WORDS + 1))
    send(Command.WRITE, Space.INPUT, 0, [*words, 7, 8])  # what is too much does no harm
    assert flags() == LOADED | COMPLETE
    send(Command.RUN, address=7)
    assert (flags(), both.port.runs) == (LOADED, 1)
    send(Command.RESET)
    for forget in ("reset", "program", "session", "run"):
        send(Command.WRITE, Space.INPUT, 0, words[:3])
        send(Command.RUN, address=8)
        assert flags() == LOADED | ARMED
        if forget == "reset":
            send(Command.RESET)
        elif forget == "program":
            crc = crc32c(load_record(Space.WEIGHT, 7, bytes(4)), both.model.load_crc)
            send(Command.WRITE, Space.WEIGHT, 7, [0])
            assert flags() == 0
            send(Command.COMMIT, words=[crc, 1, 2, 3, 4, 5, 6])
        elif forget == "session":
            both.send(hello())
            assert flags() == LOADED | ARMED, "the same host again"
            both.send(command(Command.HELLO, session=7).encode())
            both.send(hello())
        assert flags() == LOADED | (ARMED if forget == "run" else 0)
    send(Command.WRITE, Space.INPUT, 0, words)
    assert (flags(), both.port.runs) == (LOADED, 2)
    both.check_memory()


def test_inputs_are_those_of_the_session_that_has_sent_them():
    """The next RUN of another host must not take them, nor its words follow them."""
    both, numbers = InStep(), iter(range(100))

    def send(kind, *args, **kwargs):
        return both.send(command(kind, next(numbers), *args, **kwargs).encode())

    def flags():
        (frame,) = FrameReader().feed(send(Command.READ, REGISTERS, count=1))
        return int.from_bytes(frame.payload, "little")

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6])
    words = list(range(1, INPUT_WORDS + 1))
    send(Command.WRITE, Space.INPUT, 0, words)
    both.send(hello())
    assert flags() == LOADED | COMPLETE, "the same host again"
    both.send(command(Command.HELLO, session=7).encode())
    both.send(hello())
    assert flags() == LOADED
    send(Command.RUN, address=8)
    assert (flags(), both.port.runs) == (LOADED | ARMED, 0)
    # Half of them, and another host's other half.
    send(Command.WRITE, Space.INPUT, 0, words[:3])
    both.send(command(Command.HELLO, session=7).encode())
    both.send(hello())
    follows = command(Command.WRITE, next(numbers), Space.INPUT, 3, words[3:])
    (answer,) = FrameReader().feed(both.send(follows.encode()))
    assert answer.header.space == Status.BAD_COMMAND
    both.check_memory()


def test_external_memory_is_the_hosts_during_a_run_too():
    """It holds no part of a program without an image; no other memory of the core is touched."""
    both, numbers = InStep(info=WITH_EXTERNAL), iter(range(100))

    def send(kind, *args, **kwargs):
        both.send(command(kind, next(numbers), *args, **kwargs).encode())

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6, 0])
    send(Command.WRITE, Space.EXTERNAL, 9, [1, 2, 3])
    send(Command.WRITE, Space.INPUT, 0, list(range(INPUT_WORDS)))
    send(Command.RUN, address=7)
    send(Command.WRITE, Space.EXTERNAL | 1 << 4, 10, [4, 5])
    send(Command.READ, Space.EXTERNAL, 9, count=4)
    assert both.statuses == {Status.OK}
    assert (both.port.runs, both.model.loaded, both.model.load_crc) == (1, True, 0)
    assert [both.port.memory[Space.EXTERNAL, 9 + i] for i in range(4)] == [1, 4, 3, 5]
    both.check_memory()


def test_an_image_of_external_memory():
    """It has a CRC of its own and outlives programs; a write to it ends both, a stopped run the program only."""
    both = InStep(info=WITH_EXTERNAL)

    def send(kind, *args, status=Status.OK, **kwargs):
        (answer,) = FrameReader().feed(both.send(command(kind, both.model.due, *args, **kwargs).encode()))
        assert answer.header.space == status

    def flags():
        send(Command.READ, REGISTERS, count=4)
        return both.model.loaded * LOADED | both.model.image * IMAGE

    both.send(hello())
    image, code = [1, 2, 3], [4, 5]
    crc = crc32c(load_record(Space.EXTERNAL, 9, np.array(image, "<u4").tobytes()))
    of_code = crc32c(load_record(Space.MOVE_UCODE, 0, np.array(code, "<u4").tobytes()))
    counts = [1, 2, 3, 4, 5, 6, 7]
    send(Command.RESET, address=3)
    send(Command.WRITE, Space.EXTERNAL, 9, image)
    send(Command.COMMIT, Space.EXTERNAL, words=[crc ^ 1], status=Status.BAD_LOAD)
    send(Command.COMMIT, Space.EXTERNAL, words=[crc])
    assert (flags(), both.model.image_crc) == (IMAGE, crc)
    send(Command.WRITE, Space.MOVE_UCODE, 0, code)
    send(Command.COMMIT, words=[of_code, *counts])
    assert both.port.memory[Space.CONTROL, Control.MOVE_COUNT] == 7
    # Inputs are no part of it, before and in a run, which begins at once if it is told to.
    send(Command.WRITE, Space.EXTERNAL_INPUT, 20, [8, 9])
    send(Command.RUN, address=5, count=1)
    assert both.port.runs == 1
    send(Command.WRITE, Space.EXTERNAL_INPUT, 22, [10])
    send(Command.WRITE, Space.EXTERNAL, 20, [8], status=Status.BUSY)
    assert flags() == LOADED | IMAGE
    send(Command.RESET)
    assert flags() == IMAGE, "moves have changed the memories that held the program"
    send(Command.RESET, address=1)
    send(Command.WRITE, Space.MOVE_UCODE, 0, code)
    send(Command.COMMIT, words=[of_code, *counts])
    assert flags() == LOADED | IMAGE
    send(Command.WRITE, Space.EXTERNAL, 20, [8])
    assert flags() == 0
    send(Command.RESET, address=1)
    send(Command.COMMIT, Space.EXTERNAL, words=[0])
    send(Command.COMMIT, words=[0, *counts])
    send(Command.RESET, address=2)
    assert flags() == 0
    both.check_memory()


def test_loader_and_model_in_step_with_external_memory():
    run_in_step(7, 20, WITH_EXTERNAL)


@pytest.mark.parametrize("seed", [1])
def test_loader_and_model_in_step(seed):
    run_in_step(seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "info"), [(2, INFO), (3, INFO), (4, INFO), (5, INFO), (6, WITH_EXTERNAL)])
def test_loader_and_model_in_step_for_long(seed, info):
    both = run_in_step(seed, 200, info)
    assert {Status.OK, Status.BAD_FRAME, Status.BAD_COMMAND} <= both.statuses


def test_a_description_and_its_configuration(bench):
    assert connect(bench).info() == INFO


def test_what_was_written_is_read_back_by_a_window_of_commands(bench):
    """Several frames under way: they wait in the input while one is performed, and answers wait in the output."""
    client, rng = connect(bench), np.random.default_rng(0)
    words = rng.integers(0, 1 << 32, 200, dtype=np.uint32)
    words[rng.integers(0, 200, 100)] &= 0xFF00FF00  # many zero bytes
    requests = [Request(Command.WRITE, Space.ACT, 20 * at, 20, words[20 * at :][:20].tobytes()) for at in range(10)]
    requests += [Request(Command.READ, Space.ACT, 50 * at, 50) for at in range(4)]
    answers = client.link.perform(requests)
    assert b"".join(answer.payload for answer in answers) == words.tobytes()
    assert bench.peek("wild") == 0
    assert client.counters.retries == 0


def test_the_next_inputs_wait_until_the_run_lets_go_of_these(bench):
    """And the end of a run for the run; what is behind them waits in the input. A bank in use holds back each word."""
    client = connect(bench)
    client.head()
    bench.poke("free", 0)
    crc, words = 0, np.arange(1, 6, dtype="<u4")
    client.link.perform([Request(Command.COMMIT, count=7, payload=np.array([crc, *range(1, 7)], "<u4").tobytes())])
    inputs = Request(Command.WRITE, Space.INPUT, 0, INPUT_WORDS, bytes(range(4 * INPUT_WORDS)), wait=0.01)
    started = [Request(Command.RUN, address=7), inputs]
    end = Request(Command.POLL, address=1, count=1, wait=0.01)
    following = Request(Command.WRITE, Space.ACT, 3, 5, words.tobytes(), wait=0.01)
    (*_, answer) = client.link.perform([*started, following, end])
    assert (answer.address, answer.payload) == (7, np.uint32(ENDED).tobytes())
    assert client.counters.timeouts == 0
    assert bench.peek("wild") == 0
    assert bench.contents()[Space.ACT, 3:8].tolist() == words.tolist()
    # Now the inputs are free from the start, but for their bank.
    bench.poke("free", 1)
    bench.poke("bank_used", 1)
    before = bench.line.cycles
    write = Request(Command.WRITE, Space.ACT, 13, 5, words.tobytes(), wait=0.01)
    for at, each in enumerate([*started, write]):
        bench.line.exchange(client.link.frame(each, client.link._due + at).encode())
    bench.line.run(500)
    assert bench.contents()[Space.ACT, 13:15].tolist() == [1, 0], "the first word waits, the others behind it"
    bench.poke("bank_used", 0)
    bench.line.run(200)
    assert bench.contents()[Space.ACT, 13:18].tolist() == words.tolist()
    assert bench.peek("running"), "all in its run"
    assert bench.peek("wild") == 0
    assert bench.line.cycles - before < 3000


def test_inputs_in_external_memory_wait_for_the_run_too():
    """A program that does not say when gets them behind its end; `wild` tells of words that came before."""
    bench = Bench(WITH_EXTERNAL)
    client, words = connect(bench), np.arange(1, 6, dtype="<u4")
    client.head()
    bench.poke("free", 0)
    for free_from in (6, 0):
        counts = np.array([0, 1, 2, 3, 4, 5, free_from, 7], "<u4")
        commit = Request(Command.COMMIT, count=8, payload=counts.tobytes())
        client.link.perform([Request(Command.RESET, address=1), commit])
        following = Request(Command.WRITE, Space.EXTERNAL_INPUT, 3, 5, words.tobytes(), wait=0.01)
        client.link.perform([Request(Command.RUN, address=7, count=1), following])
        assert not bench.peek("running")
        assert bench.peek("wild") == 0
        assert bench.contents()[Space.EXTERNAL_INPUT, 3:8].tolist() == words.tolist()
    assert client.counters.timeouts == 0
    bench.poke("free", 1)
    counts[6] = 6
    commit = Request(Command.COMMIT, count=8, payload=counts.tobytes())
    start = Request(Command.RUN, address=7, count=1)
    client.link.perform([Request(Command.RESET, address=1), commit, start, following])
    assert bench.peek("running")
    assert bench.peek("wild") == 0


def test_a_step_leaves_out_the_words_between(bench):
    client, words = connect(bench), np.arange(1, 8, dtype="<u4")
    write = Request(Command.WRITE, Space.ACT, 5, 7, words.tobytes(), step=16)
    apart, dense = Request(Command.READ, Space.ACT, 5, 7, step=16), Request(Command.READ, Space.ACT, 0, 105)
    wanted = np.zeros(105, np.uint32)
    wanted[5::16] = words
    answers = client.link.perform([write, apart, dense])
    assert answers[1].payload == words.tobytes()
    assert answers[2].payload == wanted.tobytes()


def test_a_bad_frame_is_answered_only_while_nothing_is_sent(bench):
    """So noise cannot fill the reply buffer; the next frame in order is performed all the same."""

    def send(line):
        reader = FrameReader()
        got = list(reader.feed(bench.line.exchange(line)))
        for _ in range(20):
            got += reader.feed(bench.line.exchange(b""))
        return [(frame.header.space, frame.header.seq) for frame in got]

    bad = command(Command.READ, 1, Space.ACT, 0, count=1).encode()[:-3] + b"\0"
    bench.line.exchange(hello())
    bench.line.run(500)
    bench.line.exchange(b"")
    assert send(command(Command.READ, 0, Space.ACT, 0, count=60).encode() + bad) == [(Status.OK, 0)]
    assert bench.peek("bad_frames") == 1
    assert send(bad) == [(Status.BAD_FRAME, 1)]
    assert bench.peek("bad_frames") == 2
    assert send(command(Command.POLL, 1, count=1).encode()) == [(Status.OK, 1)]


def test_every_cut_of_a_frame_is_found(bench):
    """The line stops at some byte; a new session begins."""
    frame = command(Command.WRITE, 0, Space.ACT, 2, [1, 2]).encode()
    bench.line.exchange(hello())
    for cut in (1, 8, 14, len(frame) - 2):
        bench.line.exchange(frame[:cut])
        client = connect(bench)
        client.link.session = SESSION
        assert client.read(REGISTERS, 0, 1)[0] & 1 == 0
        assert bench.peek("writes") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "rate"), [(2, 0.005), (3, 0.015)])
def test_noise_never_writes_wrongly(bench, seed, rate):
    """Random writes and reads over a line with faults in both directions; the memory is always what was meant."""
    noisy = NoisyLine(bench.line, rate, seed)
    client, rng = connect(bench, noisy), random.Random(seed)
    wanted = bench.contents()
    for _ in range(20):
        space, count = rng.choice((Space.ACT, Space.ACT, Space.WEIGHT)), rng.randrange(1, 20)
        address = rng.randrange(SPAN - count)
        words = np.array([rng.choice((0, rng.getrandbits(32))) for _ in range(count)], np.uint32)
        client.write(space, address, words)
        wanted[space, address : address + count] = words
        address, count = rng.randrange(SPAN - 20), rng.randrange(1, 20)
        got = client.read(Space.ACT, address, count)
        assert np.array_equal(got, wanted[Space.ACT, address : address + count])
    assert np.array_equal(bench.contents(), wanted)
    assert bench.peek("wild") == 0
    assert noisy.faults >= 10
    assert client.counters.retries > 0
