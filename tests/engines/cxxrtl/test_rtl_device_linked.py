"""Linked programs on the simulated gateware, through its serial pins and before a memory that checks its controller."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from linked_program import BAUD, CLOCK, DEEP, LATE, LINKED, MEMORY, is_right, program, sample
from rtl_line import RtlLine

from onnxhw.driver.client import Client
from onnxhw.driver.inferences import Inferences
from onnxhw.driver.link import Request
from onnxhw.driver.transport import SimulationTransport
from onnxhw.emu.emulator import Emulator
from onnxhw.engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from onnxhw.errors import LinkError
from onnxhw.isa.link import IMAGE, LOADED, MOVE_RESULT_WORDS, REGISTERS, Command
from onnxhw.isa.memory import RUNNING, Control, Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program.input_regions import latency
from onnxhw.program.throughput import throughput_of
from onnxhw.program.traffic import Rates, core_bytes, load_bytes, traffic_of

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]


@pytest.fixture(scope="module")
def model() -> Iterator[RtlDevice]:
    with RtlDevice(device_libraries(LINKED, clock_hz=CLOCK, baud=BAUD), clock_hz=CLOCK, baud=BAUD) as made:
        yield made


def connect(model: RtlDevice) -> Client:
    return Client(SimulationTransport(RtlLine(model, CLOCK), BAUD))


@pytest.fixture
def client(model: RtlDevice) -> Client:
    made = connect(model)
    if not made.holds(program()):
        made.load(program())
    return made


def flags(client: Client) -> int:
    return int(client.read(REGISTERS, 0, 1)[0]) & (LOADED | IMAGE)


def test_results_cycles_latency_and_counters(client: Client) -> None:
    """Equal to the emulator's, of a batch those of the first and, by what the device shows, of the last; a second
    session sends no program."""
    one, emulator = program(), Emulator(program())
    results = client.run_all([sample(seed) for seed in range(3)], program())
    seen, wanted = client.snapshot(), emulator.run(sample(0))
    assert all(is_right(result.outputs, seed) for seed, result in enumerate(results))
    assert [result.cycles for result in results] == [one.cycles] * 3
    assert results[0].latency == latency(one) == wanted.latency
    assert results[0].counters == seen.counters == wanted.counters
    assert seen.done == seen.counts == tuple(len(one.code[unit]) for unit in Unit)
    assert connect(client.transport.line.model).holds(one)  # type: ignore[attr-defined]


def test_the_first_run_takes_as_long_as_any(client: Client) -> None:
    """Constants that stay come with the program: behind a load of everything, of what a stopped run has lost, and
    behind another program, cold is warm is predicted."""
    one, other, found = program(), program(*LATE), []
    assert one.params.any()
    for lose in ("image", "program", "nothing"):
        if lose == "image":
            client.write(Space.EXTERNAL, 0, [0])
            assert client.to_load(one) == load_bytes(one)
        elif lose == "program":
            client.link.perform([Request(Command.RUN, count=1), Request(Command.RESET)])
            assert client.to_load(one) == core_bytes(one)
        else:
            client.load(other)
            assert is_right(client.run(sample(7, *LATE)).outputs, 7, *LATE)
        client.load(one)
        for seed in range(2):
            result = client.run(sample(seed))
            assert is_right(result.outputs, seed)
            found.append((result.cycles, result.latency, result.counters))
    assert found == [(one.cycles, latency(one), Emulator(one).run(sample(0)).counters)] * 6


def test_the_host_writes_at_full_rate_during_runs(client: Client) -> None:
    """Two frames in each, the first one surely in its run: none takes a cycle more, and nothing is lost."""
    one, rng = program(*DEEP), np.random.default_rng(5)
    client.load(one)
    run, words = Inferences(one, CLOCK, 5), rng.integers(0, 1 << 32, 12 * 16, dtype=np.uint32)
    first = MEMORY.host_words - len(words)
    writes = [
        Request(Command.WRITE, Space.EXTERNAL_INPUT, first + at, 16, words[at:][:16].tobytes(), wait=run.wait)
        for at in range(0, len(words), 16)
    ]
    commands = [*run.settle, *run.load(sample(0, *DEEP))]
    for number in range(6):
        one_write, other = writes[2 * number :][:2]
        commands += [run.start(number), one_write, Request(Command.POLL, count=MOVE_RESULT_WORDS), other, *run.fetch]
    behind = 4 + len(run.fetch)
    answers = client.link.perform(commands)[-6 * behind :]
    for number in range(6):
        state = np.frombuffer(answers[number * behind + 2].payload, "<u4")
        assert state[Control.RUN] & RUNNING
        result = run.result(number, answers[number * behind + 4 :][: len(run.fetch)])
        assert (result.cycles, result.latency) == (one.cycles, latency(one))
        assert is_right(result.outputs, 0, *DEEP)
    assert np.array_equal(client.read(Space.EXTERNAL, first, len(words)), words)


def test_the_next_inputs_are_there_before_the_run_ends(client: Client) -> None:
    """They wait until it has done with its own, and cost no cycle: another input than the run's, and its result is that
    of its own; and the next run has it without another word."""
    one = program(*DEEP)
    client.load(one)
    run = Inferences(one, CLOCK, 5)
    assert run.early
    now = Request(Command.POLL, count=MOVE_RESULT_WORDS)
    client.link.perform(run.begin(0, sample(0, *DEEP)))
    for number in range(3):
        answers = client.link.perform([*run.load(sample(number + 1, *DEEP)), now, *run.fetch])
        state = np.frombuffer(answers[-len(run.fetch) - 1].payload, "<u4")
        assert state[Control.RUN] & RUNNING
        assert 0 < state[Control.CYCLES] < one.cycles
        result = run.result(number, answers[-len(run.fetch) :])
        assert (result.cycles, result.latency) == (one.cycles, latency(one))
        assert is_right(result.outputs, number, *DEEP)
        client.link.perform([run.start(number + 1)])
    assert is_right(run.result(3, client.link.perform(run.fetch)).outputs, 3, *DEEP)


def test_inputs_that_are_read_late_are_not_written_over(client: Client) -> None:
    one = program(*LATE)
    client.load(one)
    assert one.input_free != (0, 0)
    for seed, result in enumerate(client.run_all([sample(seed, *LATE) for seed in range(4)])):
        assert is_right(result.outputs, seed, *LATE)
        assert (result.cycles, result.latency) == (one.cycles, None if seed else latency(one))


def test_inferences_take_the_time_of_their_runs(model: RtlDevice) -> None:
    """Where a run is longer than its input's way, it is what a batch takes."""
    one, client, count = program(*DEEP), connect(model), 6
    client.load(one)
    client.run_all([sample(0, *DEEP)] * 2)
    start = model.cycles
    results = client.run_all([sample(seed, *DEEP) for seed in range(count)])
    spent = model.cycles - start
    assert all(is_right(result.outputs, seed, *DEEP) for seed, result in enumerate(results))
    assert {result.cycles for result in results} == {one.cycles}
    found = throughput_of([one], Rates(BAUD, CLOCK))
    alone = found.core + Rates(BAUD, CLOCK).line_ms(traffic_of(one).alone)
    assert found.bound == "core"
    assert count * found.period < 1e3 * spent / CLOCK < (count - 1) * 1.05 * found.period + alone < count * alone / 1.2


def test_a_run_that_is_aborted_leaves_no_program(client: Client) -> None:
    """RESET some frames behind RUN: the image stays, and the rest is loaded again."""
    one = program()
    for frames in range(3):
        look = [Request(Command.POLL, count=1)] * frames
        client.link.perform([Request(Command.RUN, count=1), *look, Request(Command.RESET)])
        seen = client.snapshot()
        assert seen.watchdog
        assert 0 < sum(seen.done) < sum(seen.counts)
        assert (flags(client), client.holds(one), client.to_load(one)) == (IMAGE, False, core_bytes(one))
        client.load(one)
        assert is_right(client.run(sample(frames)).outputs, frames)


def test_the_watchdog_in_the_middle_of_a_move(client: Client) -> None:
    """Of a load and of a store: the run ends there, the memory's rules are kept, and no program is left."""
    one = program()
    spans = timeline(LINKED, one.code).spans[Unit.MOVE]
    for store in (0, 1):
        index = max((n for n, each in enumerate(one.code[Unit.MOVE]) if each.store == store), key=lambda n: (  # type: ignore[attr-defined]
            spans[n].done - spans[n].issue))  # fmt: skip
        middle = (spans[index].issue + spans[index].done) // 2
        client.load(replace(one, cycles=middle))
        with pytest.raises(LinkError, match=rf"E9108 .*after {middle} cycles"):
            client.run(sample(2))
        seen = client.snapshot()
        assert (seen.watchdog, seen.cycles, seen.done[-1]) == (True, middle, index)
        assert flags(client) == IMAGE
        client.load(one)
        assert is_right(client.run(sample(2), program()).outputs, 2)


def test_a_line_that_is_lost_while_loading(model: RtlDevice) -> None:
    """In the image, between both parts, and in the rest; another session loads what is missing."""
    one, sent = program(), bytearray()
    line = RtlLine(model, CLOCK)
    line.there = lambda data: (sent.extend(data), data)[1]  # type: ignore[func-returns-value]
    whole = Client(SimulationTransport(line, BAUD))
    whole.write(Space.EXTERNAL, 0, [0])
    sent.clear()
    whole.load(one)
    for share, left in ((0.2, load_bytes(one)), (0.9, core_bytes(one))):
        first = connect(model)
        first.link.session = 1
        first.write(Space.EXTERNAL, 0, [0])
        line = RtlLine(model, CLOCK)
        line.budget = int(share * len(sent))
        dying = Client(SimulationTransport(line, BAUD))
        with pytest.raises(ConnectionError):
            dying.load(one)
        late = connect(model)
        assert not late.holds(one)
        with pytest.raises(LinkError, match="E9121"):
            late.link.perform([Request(Command.RUN, count=1)])
        assert late.to_load(one) == left
        late.load(one)
        assert is_right(late.run(sample(3)).outputs, 3)


def test_a_run_that_another_host_has_left_goes_on_to_its_end(model: RtlDevice) -> None:
    """To stop it would cost the program; the next host's inputs wait until it has done with its own."""
    for which in (DEEP, LATE):
        one = program(*which)
        connect(model).load(one)
        client = connect(model)
        assert client.holds(one)
        client.link.perform(Inferences(one, CLOCK, 5).begin(0, sample(0, *which)))
        results = client.run_all([sample(seed, *which) for seed in (1, 2)], one)
        assert all(is_right(result.outputs, seed, *which) for seed, result in enumerate(results, 1))
        assert flags(client) == LOADED | IMAGE
