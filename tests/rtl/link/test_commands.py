"""The loader before a core made of memory, as a host sees it, and noise that must never write."""

import random

import numpy as np
import pytest
from link_bench import CLOCK, INPUT_WORDS, SPAN, Bench, NoisyLine
from link_in_step import INFO, SESSION, WITH_EXTERNAL, command, hello

from onnxhw.driver.client import Client
from onnxhw.driver.framing import FrameReader
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.isa.link import REGISTERS, Command, Status
from onnxhw.isa.memory import ENDED, Space

pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("compiler")]


@pytest.fixture
def bench():
    return Bench(INFO)


def connect(bench, line=None):
    return Client(SimulationTransport(line or bench.line, CLOCK))


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
