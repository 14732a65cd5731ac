"""The client before the model of the device: programs, runs, tensors and what is refused."""

import dataclasses

import numpy as np
import pytest
from link_parts import BAUD, CONFIG, OTHER, Line, MemoryPort, model, program

from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.errors import LinkError, UsageError
from onnxhw.isa.input_port import from_table, stream_words
from onnxhw.isa.link import REGISTERS
from onnxhw.isa.memory import ENDED, RING_SIZE, RUNNING, Control, Space
from onnxhw.program.input_regions import input_regions
from onnxhw.program.input_scatter import scatter

ZEROS = {"x": np.zeros((1, 5, 4, 6), np.int8)}


@pytest.fixture
def port():
    return MemoryPort()


@pytest.fixture
def device(port):
    return model(port)


@pytest.fixture
def line(device):
    return Line(device)


@pytest.fixture
def client(line):
    return Client(SimulationTransport(line, BAUD))


def test_load_writes_every_memory_and_the_counts_last(device, port, client):
    seen = []
    client.load(program(), lambda done, of: seen.append((done, of)))
    assert port.log[0] == (Space.CONTROL, Control.RUN, 1)
    assert port.log[-1] == (Space.CONTROL, Control.LOAD_COUNT, 6)
    assert {space for space, _, _ in port.log[1:-1]} == {
        Space.LOAD_UCODE, Space.WEIGHT, Space.PARAM, Space.TABLE, Space.INPUT_TABLE,
    }  # fmt: skip
    assert port.read(0, Control.LOAD_COUNT, 6) == [3, 0, 0, 0, 100, 7 | 9 << 16]
    assert device.loaded
    assert seen == sorted(seen)
    assert seen[-1] == (len(port.log), len(port.log))


def test_a_load_cut_at_any_byte_never_leaves_a_program_that_runs(port):
    """The line dies after every byte of the load; a new session then finds no program, or the complete one."""
    whole = Line(model(port))
    sent = []
    whole.there = lambda data: sent.append(data) or data
    client = Client(SimulationTransport(whole, BAUD))
    client.load(program())
    image, load = dict(port.memory), b"".join(sent)
    complete = 0
    for cut in range(len(load) + 1):
        port = MemoryPort()
        device = model(port)
        device.session, device.due = whole.device.session, 0
        device.exchange(load[:cut])
        late = Client(SimulationTransport(Line(device), BAUD))
        if late.holds(program()):
            complete += 1
            assert {key: port.memory[key] for key in image} == image
        else:
            with pytest.raises(LinkError, match=r"E9121 .*no complete program"):
                late.run(ZEROS, program())
            assert port.runs == 0
    assert complete == 2, "all of it, or all but the last delimiter, which the next session sends"


def test_a_cut_load_over_a_loaded_program_unloads_it_first(port, device):
    """Whatever was there before, from the first frame of a load on nothing runs until the last one."""
    line = Line(device)
    sent = []
    line.there = lambda data: sent.append(data) or data
    client = Client(SimulationTransport(line, BAUD))
    client.load(program())
    sent.clear()
    client.load(program())
    load = b"".join(sent)
    # Frame by frame into a device in the state before the second load.
    again = model(MemoryPort())
    again.session, again.loaded, again.load_crc = device.session, True, device.load_crc
    again.due = (device.due - load.count(0)) % 256
    flags = []
    for frame in load.split(b"\0")[:-1]:
        again.exchange(frame + b"\0")
        flags.append(again.loaded)
    assert flags == [False] * (len(flags) - 1) + [True]


def test_a_commit_with_another_crc_is_refused(port, device, client):
    client.load(program())
    assert client.holds(program())
    client.write(Space.TABLE, 9, [1])
    assert not device.loaded
    assert not client.holds(program())
    with pytest.raises(LinkError, match=r"E9121"):
        client.run(ZEROS, program())
    # A program that reaches the memories as other words than those whose CRC the host has.
    original = type(port).write

    def tamper(self, space, address, words, step=1):
        if space == Space.WEIGHT:
            device.load_crc ^= 1
        original(self, space, address, words, step)

    type(port).write = tamper
    try:
        with pytest.raises(LinkError, match=r"E9122 .*not what was sent"):
            client.load(program())
    finally:
        type(port).write = original
    assert not device.loaded


def test_another_session_finds_the_program(device, client):
    client.load(program())
    late = Client(SimulationTransport(Line(device), BAUD))
    assert late.holds(program())
    late.run(ZEROS, program())
    late.reset()
    assert not late.holds(program())


def test_run_moves_tensors_by_their_places(port, client):
    client.load(program())
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (1, 5, 4, 6)).astype(np.int8)
    y = rng.integers(-128, 128, (1, 9, 3, 5)).astype(np.int8)
    for c in range(9):
        for h in range(3):
            for w in range(5):
                word = 200 + c // 6 * 30 + h * 5 + w
                key = (Space.ACT, 2 * word + c % 6 // 4)
                port.memory[key] = port.memory.get(key, 0) | (int(y[0, c, h, w]) & 255) << 8 * (c % 6 % 4)
    result = client.run({"x": x})
    assert np.array_equal(result.outputs["y"], y)
    assert result.cycles == 100
    regions = from_table(port.read(Space.INPUT_TABLE, 0, 16), CONFIG.word)
    assert [(r.first, r.lead, r.run, r.runs, r.rows) for r in regions] == [(62, 0, 4, 6, 4), (300, 0, 1, 6, 4)]
    data = np.array(port.read(Space.INPUT, 0, stream_words(regions)), "<u4").view(np.int8)
    assert data.tolist() == [*x[0, :4].transpose(1, 2, 0).reshape(-1), *x[0, 4].reshape(-1)]
    assert len(data) == x.size, "each byte once"


def test_wrong_bitstream_is_refused_by_name(client):
    there, needed = rf"'unit' \({CONFIG.fingerprint}\)", rf"'other' \({OTHER.fingerprint}\)"
    with pytest.raises(LinkError, match=rf"E9107 .*is for configuration {there}.*needs {needed}"):
        client.check(OTHER)


def test_wrong_inputs_are_refused(client):
    with pytest.raises(UsageError, match="E2150"):
        client.run({})
    client.load(program())
    with pytest.raises(UsageError, match=r"E2151 .*must be x, not input"):
        client.run({"input": np.zeros((1, 5, 4, 6), np.int8)})
    with pytest.raises(UsageError, match=r"E2151 .*must be int8 \(1, 5, 4, 6\), not float32 \(1, 5, 4, 6\)"):
        client.run({"x": np.zeros((1, 5, 4, 6), np.float32)})


def test_wrong_cycle_count_is_an_error(port, client):
    client.load(program())
    port.cycles = 101
    with pytest.raises(LinkError, match=r"E9109 .*took 101 cycles, the program says 100"):
        client.run(ZEROS)


@pytest.mark.parametrize(("status", "code"), [(1, "E9103"), (6, "E9108"), (0, "E9110")])
def test_a_run_that_does_not_end_is_an_error(device, port, client, status, code):
    client.load(program())
    before = device.seconds()
    port.read = lambda space, address, count, step=1: [status if port.runs else 0, *[0] * (count - 1)]
    with pytest.raises(LinkError, match=code):
        client.run(ZEROS)
    assert device.seconds() - before < 1


class SlowPort(MemoryPort):
    """A run lasts `cycles` of 1 us on the clock of `device`; its inputs are free from the start, or not."""

    def __init__(self, cycles, *, free):
        super().__init__(cycles)
        self.until, self.free, self.starts = -1.0, free, []

    def write(self, space, address, words, step=1):
        super().write(space, address, words, step)
        if (space, address) == (0, Control.RUN) and words[0]:
            self.starts.append(self.device.seconds())
            self.until = self.starts[-1] + 1e-6 * self.cycles

    def read(self, space, address, count, step=1):
        self.memory[0, 0] = RUNNING if self.device.seconds() < self.until else ENDED
        self.memory[0, Control.ARRAY_DONE] = self.memory[0, Control.VECTOR_DONE] = 100 if self.free else 0
        return super().read(space, address, count, step)


def slow(cycles, *, free):
    port = SlowPort(cycles, free=free)
    port.device = model(port)
    client = Client(SimulationTransport(Line(port.device), BAUD))
    client.load(dataclasses.replace(program(), cycles=cycles))
    return port, client


def test_the_device_is_asked_for_the_end_of_a_run_once():
    """However long it takes, at the first attempt, and the answer comes when the run ends."""
    port, client = slow(100_000, free=False)
    frames = client.counters.frames
    client.run(ZEROS)
    assert (client.counters.timeouts, client.counters.retries) == (0, 0)
    assert client.counters.frames - frames == len(port.log) - 9 + 1 + 3, "the writes and RUN, the end, three reads"
    assert 0.1 <= port.device.seconds() - port.starts[0] < 0.11


@pytest.mark.parametrize("free", [True, False])
def test_a_batch_takes_the_time_of_the_slower_of_line_and_core(free):
    """Bounded by the core: runs follow each other without a gap but for outputs, and inputs where they must wait."""
    port, client = slow(20_000, free=free)
    client.run_all([ZEROS] * 6)
    apart = np.diff(port.starts)
    alone = port.device.seconds() - port.starts[-1]
    assert len(apart) == 5
    assert 0.02 <= apart.min() <= apart.max() < 0.0225 <= alone
    # Bounded by the line: as long as the bytes of the inputs take.
    port, client = slow(100, free=free)
    sent = client.counters.sent
    client.run_all([ZEROS] * 6)
    travel = (client.counters.sent - sent) / 6 * 10 / BAUD
    assert np.diff(port.starts).max() < 1.1 * travel


def test_outputs_are_read_before_inputs_that_may_lie_on_them_come(port, client):
    """A program without a window, whose output lies in its input."""
    whole = program()
    over = dataclasses.replace(whole.tensors["y"], place=dataclasses.replace(whole.tensors["x"].place, lane=0))
    shared = dataclasses.replace(whole, input_free=(0, 0), tensors={**whole.tensors, "y": over})
    original = type(port).write

    def write(space, address, words, step=1):
        original(port, space, address, words, step)
        if space == Space.INPUT:
            act = np.array(port.read(Space.ACT, 0, 2 * CONFIG.act_words), "<u4").view(np.int8)
            for part in scatter(input_regions(shared), CONFIG.word, 8):
                act[part.places] = np.asarray(words, "<u4").view(np.int8)[part.source]
            original(port, Space.ACT, 0, act.view("<u4"))

    port.write = write
    client.load(shared)
    xs = [np.full((1, 5, 4, 6), value, np.int8) for value in (1, 2, 3)]
    for x, result in zip(xs, client.run_all([{"x": x} for x in xs]), strict=True):
        assert set(np.unique(result.outputs["y"])) <= {0, int(x[0, 0, 0, 0])}
        assert (result.outputs["y"] == x[0, 0, 0, 0]).any()


def test_a_batch_tells_which_run_has_gone_wrong(port, client):
    client.load(program())
    seen = []
    original = type(port).write

    def write(space, address, words, step=1):
        port.cycles = 100 + (port.runs == 3)
        original(port, space, address, words, step)

    port.write = write
    with pytest.raises(LinkError, match=r"E9109 .*took 101 cycles"):
        client.run_all([ZEROS] * 9, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 9), (2, 9), (3, 9)]
    del port.write
    port.cycles = 100
    assert client.run_all([], program()) == []
    assert len(client.run_all([ZEROS] * 300)) == 300, "more than are handed to the link together"
    assert port.runs == 309


def test_a_run_of_someone_else_is_noticed(device, port, client):
    client.load(program())
    original = type(port).write

    def press_the_button(self, space, address, words, step=1):
        original(self, space, address, words, step)
        device.token ^= (space, address) == (Space.CONTROL, Control.RUN)

    port.write = lambda *args: press_the_button(port, *args)
    with pytest.raises(LinkError, match=r"E9123 .*something else"):
        client.run(ZEROS)


def test_memories_are_out_of_reach_during_a_run(port, client):
    client.load(program())
    port.lasting = True
    port.write(Space.CONTROL, Control.RUN, [1])
    for attempt in (lambda: client.write(Space.TABLE, 0, [1]), lambda: client.read(Space.ACT, 0, 1)):
        with pytest.raises(LinkError, match=r"E9111 .* is not possible"):
            attempt()
    assert client.snapshot().running
    # Inputs are taken once the program lets go of them; what is behind them waits, too.
    port.memory[0, Control.ARRAY_DONE], port.memory[0, Control.VECTOR_DONE] = 7, 8
    with pytest.raises(LinkError, match=r"E9103"):
        client.write(Space.ACT, 0, [1])
    assert (Space.ACT, 0) not in port.memory
    port.memory[0, Control.VECTOR_DONE] = 9
    client.write(Space.ACT, 0, [2])
    assert port.memory[Space.ACT, 0] == 2
    assert client.snapshot().running
    client.reset()
    assert client.read(Space.ACT, 0, 1) == [2]


def test_control_and_unknown_spaces_cannot_be_written(client):
    for space in (Space.CONTROL, REGISTERS, Space.EXTERNAL, 77):
        with pytest.raises(LinkError, match=r"E9104 .*refuses WRITE of 1 words at 5"):
            client.write(space, 5, [1])


def test_snapshot_orders_the_ring(port, client):
    """Entry n of the run is at n modulo 16: the 20th is the newest."""
    for number in range(20):
        port.memory[0, Control.RING + number % RING_SIZE] = 2 << 28 | number
    port.memory[0, Control.RING_HEAD] = 20 % RING_SIZE
    port.memory.update({(0, Control.LOAD_COUNT + at): value for at, value in enumerate((5, 6, 7, 8, 1000))})
    port.memory.update({(0, Control.CYCLES + at): value for at, value in enumerate((99, 1, 2, 3, 4))})
    port.memory.update({(0, Control.MOVE_COUNT): 9, (0, Control.MOVE_DONE): 10})
    seen = client.snapshot()
    assert seen.last == tuple(("array", number) for number in range(4, 20))
    assert (seen.counts, seen.done, seen.budget, seen.cycles) == ((5, 6, 7, 8, 9), (1, 2, 3, 4, 10), 1000, 99)
    assert not seen.running


def test_information_is_asked_once(device, client):
    assert client.info() == device.info
    frames = client.counters.frames
    client.info()
    assert client.head().sizes == device.info.sizes
    assert client.counters.frames == frames + 1
