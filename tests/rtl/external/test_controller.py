"""External memory's controller: its commands are those of `SdramTiming`, its words those that were written."""

import random

import pytest
from external_bench import (
    SMALL,
    contents,
    random_external,
    random_host,
    random_requests,
    simulate,
)

from onnxhw.engines.cxxrtl.sdram_model import POISON, SdramModel, SdramNumbers
from onnxhw.external import ULX3S
from onnxhw.isa.external import MemoryRequest, SdramCommand, SdramTiming


@pytest.mark.parametrize("seed", range(8))
def test_commands_are_those_of_the_timing(seed):
    rng = random.Random(seed)
    external, cycles = random_external(rng), 1200
    requests, host = random_requests(rng, external, 20), random_host(rng, external, 6, cycles)
    running, start = rng.random() < 0.6, rng.choice([None, rng.randrange(cycles // 2)])
    found = simulate(external, requests, host, cycles, running=running, start=start)
    timing = SdramTiming(external, requests, host, running=running, start=start)
    wanted = list(timing.commands(cycles))
    assert found.commands(cycles) == wanted
    assert found.started == ([timing.started] if timing.started is not None and timing.started < cycles else [])
    assert {given.op for given in wanted} >= {
        SdramCommand.READ,
        SdramCommand.WRITE,
        SdramCommand.ACTIVATE,
        SdramCommand.PRECHARGE,
        SdramCommand.REFRESH,
    }


@pytest.mark.parametrize("seed", range(4))
def test_words_come_back_and_no_rule_is_violated(seed):
    rng = random.Random(seed)
    external = random_external(rng)
    requests = random_requests(rng, external, 24)
    requests += [MemoryRequest(requests[-1].cycle, False, address, count) for _, _, address, count in requests]
    host = [MemoryRequest(rng.randrange(500), False, 0, 8)]
    with SdramModel(SdramNumbers.of(external)) as memory:
        found = simulate(external, requests, host, 2600, memory=memory)
        assert memory.violation == ""
        assert memory.counts.lost == 0
    wanted = contents(external, requests)
    assert len(found.read) == len(wanted)
    mask = (1 << external.data_bits) - 1
    assert found.read == [POISON & mask if word is None else word for word in wanted]
    assert any(word is not None for word in wanted)
    assert len(found.host_read) == 8


def test_the_start_of_a_run_waits_as_long_as_is_told():
    """From any cycle on: host bursts between runs, refreshes that are due."""
    host = [MemoryRequest(cycle, True, 8 * (cycle % 64), 8) for cycle in range(0, 1500, 61)]
    for start in range(300, 300 + SMALL.refresh):
        timing = SdramTiming(SMALL, [], host, running=False, start=start)
        refreshes = [
            given.cycle for given in timing.commands(start + 3 * SMALL.start_wait) if given.op == SdramCommand.REFRESH
        ]
        assert timing.started == start + SMALL.start_wait
        first, second = [cycle for cycle in refreshes if start < cycle < timing.started][-2:]
        assert second == first + SMALL.rfc
        assert timing.due % SMALL.refresh == (second + SMALL.refresh) % SMALL.refresh


def test_a_start_refreshes_for_one_that_was_due_meanwhile():
    """However runs begin, no row waits longer for its refresh, but for the cycles of one sequence."""
    for start in range(600, 600 + SMALL.refresh):
        timing = SdramTiming(SMALL, [], start=start)
        refreshes = [given.cycle for given in timing.commands(start + 400) if given.op == SdramCommand.REFRESH]
        for number in range(2, len(refreshes)):
            assert refreshes[number] - refreshes[number - 2] <= 2 * SMALL.refresh + SMALL.sequence


@pytest.mark.parametrize("seed", range(3))
def test_an_abort_forgets_requests_and_the_next_run_is_as_any(seed):
    """Whatever is under way when it comes: rows that are open, columns to be read; no rule of the memory is broken."""
    rng = random.Random(seed)
    before = random_requests(rng, SMALL, 60)
    clear = rng.randrange(200, 500)
    start = clear + rng.randrange(1, 40)
    run = [MemoryRequest(start + SMALL.start_wait + cycle, write, address, count)
           for cycle, write, address, count in random_requests(rng, SMALL, 10)]  # fmt: skip
    before = [each for each in before if each.cycle < clear] + [MemoryRequest(clear - 1, False, 5, 200)]
    with SdramModel(SdramNumbers.of(SMALL)) as memory:
        found = simulate(SMALL, before, [], start + 800, start=start, clear=clear, then=run, memory=memory)
        assert memory.violation == ""
        assert memory.counts.lost == 0
    begin = start + SMALL.start_wait
    assert found.started == [begin]
    wanted = [given for given in SdramTiming(SMALL, run, start=start).commands(start + 800) if given.cycle >= begin]
    assert [given for given in found.commands(start + 800) if given.cycle >= begin] == wanted
    reads = [given for given in found.commands(begin) if given.cycle > clear and given.op == SdramCommand.READ]
    assert not reads
    assert len(wanted) > 100


def test_a_refresh_that_is_due_behind_a_slot_comes_before_any_row():
    """A request waits while the host has a slot, during which, or as it ends, a refresh becomes due."""
    due = 0
    for begin in range(SMALL.refresh - SMALL.sequence - 4, SMALL.refresh + 4):
        host, requests = [MemoryRequest(begin, True, 0, 8)], [MemoryRequest(begin + 4, False, 300, 8)]
        cycles = begin + 3 * SMALL.sequence
        timing = SdramTiming(SMALL, requests, host, running=False)
        wanted = list(timing.commands(cycles))
        assert simulate(SMALL, requests, host, cycles, running=False).commands(cycles) == wanted, begin
        of_host = next(number for number, each in enumerate(wanted) if each.op == SdramCommand.WRITE)
        later = [each.op for each in wanted[of_host:] if each.op in (SdramCommand.REFRESH, SdramCommand.READ)]
        due += later[0] == SdramCommand.REFRESH
    assert due > 4


def test_no_command_follows_an_abort():
    """In whatever cycle it comes: rows that wait for theirs, of either segment, are forgotten as columns are."""
    requests = random_requests(random.Random(3), SMALL, 40, longest=4)
    every = [each for each in SdramTiming(SMALL, requests).commands(400) if each.op != SdramCommand.REFRESH]
    of_rows = {SdramCommand.ACTIVATE, SdramCommand.READ, SdramCommand.WRITE}
    followed = 0
    for clear in range(60, 110):
        found = simulate(SMALL, requests, [], clear + 30, clear=clear).commands(clear + 30)
        wanted = [each for each in every if each.cycle <= clear]
        assert [each for each in found if each.cycle <= clear and each.op != SdramCommand.REFRESH] == wanted
        assert not [each for each in found if each.cycle > clear and each.op in of_rows]
        followed += any(each.cycle == clear + 1 and each.op in of_rows for each in every)
    assert followed > 10, "else nothing was forgotten"


def test_the_cycles_after_a_start_do_not_depend_on_what_was_before():
    """Commands of a run, counted from its start's end, are the same whatever the host did before."""
    wanted = None
    for seed in range(12):
        rng = random.Random(seed)
        before = random_host(rng, SMALL, rng.randrange(8), 300)
        start = 300 + rng.randrange(200)
        probe = SdramTiming(SMALL, [], before, running=False, start=start)
        list(probe.commands(start + SMALL.start_wait))
        assert probe.started is not None
        run = [MemoryRequest(probe.started + cycle, write, address, count)
               for cycle, write, address, count in random_requests(random.Random(99), SMALL, 10)]  # fmt: skip
        timing = SdramTiming(SMALL, run, before, running=False, start=start)
        given = [(c.cycle - probe.started, c.op, c.bank, c.address) for c in timing.commands(probe.started + 600)]
        given = [each for each in given if each[0] >= 0]
        wanted = wanted or given
        assert given == wanted


def test_a_long_stream_loses_what_refreshes_rows_and_slots_take():
    """The share of the peak that a linear stream reaches on the ULX3S at 100 MHz: 191 MB/s are promised."""
    cycles = 200_000
    requests = [MemoryRequest(0, False, n << 15, 1 << 15) for n in range(cycles >> 15)]
    columns = sum(given.op == SdramCommand.READ for given in SdramTiming(ULX3S, requests).commands(cycles))
    assert columns / cycles > 0.95
