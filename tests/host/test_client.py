"""The client against a device written in Python from the text of the protocol."""

import struct

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.errors import LinkError, UsageError
from onnxhw.host.client import ATTEMPTS, Client
from onnxhw.host.framing import Frame, FrameReader
from onnxhw.host.transport import SimulationTransport
from onnxhw.ir.graph import Port
from onnxhw.isa import Load
from onnxhw.isa.link import REPLY, Command, Header, Info, Status
from onnxhw.isa.memory import Control, Space
from onnxhw.program import Entry, Place, Program

CONFIG = HwConfig("unit", rows=4, cols=3, word=6, lanes=3, act_depth=64)
OTHER = HwConfig("other", rows=4, cols=4, word=6, lanes=3, act_depth=64)


class PythonDevice:
    """Answers frames; `misbehave(n, answer)` may change or swallow the n-th answer."""

    def __init__(self, config=CONFIG, cycles=100) -> None:
        self.memory: dict[tuple[int, int], int] = {}
        self.description = Info.of(config, clock_hz=1_000_000, baud=1_000_000).to_words()
        self.reader, self.time, self.cycles = FrameReader(), 0.0, cycles
        self.log: list[tuple[int, int, int]] = []
        self.status = 0
        self.misbehave = lambda n, answer: answer
        self.answers = 0

    def exchange(self, data: bytes) -> bytes:
        self.time += 1e-5 * max(1, len(data))
        out = b""
        for frame in self.reader.feed(data):
            answer = self.misbehave(self.answers, self.perform(frame))
            self.answers += 1
            out += answer or b""
        return out

    def seconds(self) -> float:
        return self.time

    def perform(self, frame: Frame) -> bytes:
        header, words = frame.header, struct.unpack(f"<{len(frame.payload) // 4}I", frame.payload)
        answer: list[int] = []
        at = range(header.address, header.address + header.count)
        if header.kind & 15 == Command.WRITE:
            self.log.append((header.space, header.address, header.count))
            self.memory.update({(header.space, a): word for a, word in zip(at, words, strict=True)})
            if self.memory.pop((0, 0), 0) & 1:
                self.status = 2
                self.memory[0, Control.CYCLES] = self.cycles
        elif header.kind & 15 == Command.INFO:
            answer = self.description[header.address : header.address + header.count]
        else:
            answer = [self.status if (header.space, a) == (0, 0) else self.memory.get((header.space, a), 0) for a in at]
        kind = header.kind | REPLY
        payload = struct.pack(f"<{len(answer)}I", *answer)
        return Frame(Header(kind, header.seq, Status.OK, header.address, len(answer)), payload).encode()


@pytest.fixture
def device():
    return PythonDevice()


@pytest.fixture
def client(device):
    return Client(SimulationTransport(device, 1_000_000))


def program():
    """No meaning: every memory has contents; the input has pitch 7 and starts at lane 2."""
    rng = np.random.default_rng(1)
    x, y = Place(10, 40, 7, (1, 5, 4, 6), lane=2), Place(200, 30, 5, (1, 9, 3, 5))
    return Program(
        config=CONFIG, model="none", code={"load": [Load(base=5, tiles=2)] * 3, "array": [], "vector": []},
        weights=rng.integers(0, 256, (30, 3)).astype(np.uint8), params=np.array([1 << 63 | 5, 7], np.uint64),
        tables=np.arange(-128, 128, dtype=np.int8).reshape(1, 256),
        tensors={"x": Entry("x", x, 1.0, 0), "y": Entry("y", y, 1.0, 0)},
        inputs=[Port("input", (1, 5, 4, 6), "int8", "x")], outputs=[Port("output", (1, 9, 3, 5), "int8", "y")],
        layers=[], cycles=100, macs=0,
    )  # fmt: skip


def test_load_writes_the_counts_last_and_in_one_frame(device, client):
    client.load(program())
    spaces = [entry for entry in device.log if entry[0] == Space.CONTROL]
    assert spaces == [(0, Control.RUN, 1), (0, Control.LOAD_COUNT, 4), (0, Control.LOAD_COUNT, 4)]
    assert device.log[:2] == spaces[:2]
    assert device.log[-1] == spaces[2]
    assert [device.memory[0, i] for i in (1, 2, 3, 4)] == [3, 0, 0, 100]


def test_a_load_that_breaks_off_leaves_an_empty_program(device, client):
    client.load(program())
    loaded = device.answers
    for last in range(loaded + 3, 2 * loaded - 2):
        device.misbehave = lambda n, answer, last=last: answer if n < last else None
        device.answers = loaded
        with pytest.raises(LinkError, match="E9103"):
            client.load(program())
        assert [device.memory[0, i] for i in (1, 2, 3, 4)] == [0, 0, 0, 0]


def test_run_moves_tensors_by_their_places(device, client):
    client.load(program())
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (1, 5, 4, 6)).astype(np.int8)
    y = rng.integers(-128, 128, (1, 9, 3, 5)).astype(np.int8)
    for c in range(9):
        for h in range(3):
            for w in range(5):
                word = 200 + c // 6 * 30 + h * 5 + w
                key = (Space.ACT, 2 * word + c % 6 // 4)
                device.memory[key] = device.memory.get(key, 0) | (int(y[0, c, h, w]) & 255) << 8 * (c % 6 % 4)
    result = client.run({"x": x})
    assert np.array_equal(result.outputs["y"], y)
    assert result.cycles == 100
    for c in range(5):
        for h in range(4):
            for w in range(6):
                lane = 2 + c
                word = 10 + lane // 6 * 40 + h * 7 + w
                got = device.memory[Space.ACT, 2 * word + lane % 6 // 4] >> 8 * (lane % 6 % 4)
                assert got & 255 == int(x[0, c, h, w]) & 255
    assert (Space.ACT, 2 * (10 + 6)) not in device.memory, "the gap between rows is not touched"


def test_wrong_bitstream_is_refused_by_name(client):
    there, needed = rf"'unit' \({CONFIG.fingerprint}\)", rf"'other' \({OTHER.fingerprint}\)"
    with pytest.raises(LinkError, match=rf"E9107 .*is for configuration {there}.*needs {needed}"):
        client.check(OTHER)


def test_wrong_inputs_are_refused(client):
    with pytest.raises(UsageError, match="E2150"):
        client.run({})
    client.load(program())
    with pytest.raises(UsageError, match=r"E2151 .*must be \['x'\], not \['input'\]"):
        client.run({"input": np.zeros((1, 5, 4, 6), np.int8)})
    with pytest.raises(UsageError, match=r"E2151 .*must be int8 \(1, 5, 4, 6\), not float32 \(1, 5, 4, 6\)"):
        client.run({"x": np.zeros((1, 5, 4, 6), np.float32)})


def test_wrong_cycle_count_is_an_error(device, client):
    client.load(program())
    device.cycles = 101
    with pytest.raises(LinkError, match=r"E9109 .*took 101 cycles, the program says 100"):
        client.run({"x": np.zeros((1, 5, 4, 6), np.int8)})


@pytest.mark.parametrize(("status", "code"), [(1, "E9110"), (6, "E9108"), (0, "E9110")])
def test_a_run_that_does_not_end_is_an_error(device, client, status, code):
    client.load(program())
    type(device).status = property(lambda self: status, lambda self, value: None)
    try:
        with pytest.raises(LinkError, match=code):
            client.run({"x": np.zeros((1, 5, 4, 6), np.int8)})
    finally:
        del type(device).status
    assert device.time < 1


def test_a_dead_line_gives_up_in_bounded_time(device, client):
    device.misbehave = lambda n, answer: None
    with pytest.raises(LinkError, match=rf"E9103 .*no valid answer to READ in {ATTEMPTS} attempts"):
        client.read(Space.ACT, 0, 1)
    assert device.answers == ATTEMPTS
    assert device.time < 0.02


def test_stale_and_damaged_answers_are_not_taken(device, client):
    """An answer to an earlier command, and one of the wrong length, come before the right one."""
    device.memory[Space.ACT, 3] = 77

    def misbehave(n, answer):
        frame = next(FrameReader().feed(answer))
        stale = Frame(Header(frame.header.kind, (frame.header.seq - 1) % 256, 0, 3, 1), b"abcd").encode()
        return stale + answer[:-3] + b"\0" + (answer if n else b"")

    device.misbehave = misbehave
    assert client.read(Space.ACT, 3, 1) == [77]
    assert client.counters.timeouts == 1


def test_a_frame_found_damaged_is_sent_again_at_once(device, client):
    damaged = Frame(Header(REPLY, 0, Status.BAD_FRAME, 0, 0)).encode()
    device.misbehave = lambda n, answer: answer if n else damaged
    client.write(Space.ACT, 0, [1])
    assert (client.counters.retries, client.counters.refused, client.counters.timeouts) == (1, 1, 0)
