"""Cycles of moves against the controller's rules; that the unit keeps to them is tested with the core."""

from dataclasses import replace

import pytest

from onnxhw.config import HwConfig
from onnxhw.isa.external import MemoryRequest, SdramCommand, SdramTiming
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space
from onnxhw.isa.move_timing import BEGIN, OFFER, RUN_BEGINS, STORED, TO_BUFFER, WRITTEN, MoveTiming, columns_per_word
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.presets import preset

MINI = preset("mini+sdram")
assert MINI.external is not None
CONFIGS = [replace(MINI, external=replace(MINI.external, data_bits=bits, power_up=50)) for bits in (16, 32)]
IDS = ["16 bits", "32 bits"]


def last_column(config: HwConfig, write: bool, start: int, address: int, columns: int) -> int:
    """Of one request from that cycle on, in a run: by the commands of `SdramTiming`."""
    assert config.external is not None
    timing = SdramTiming(config.external, [MemoryRequest(start, write, address, columns)])
    timing.run_began(RUN_BEGINS)
    kind = SdramCommand.WRITE if write else SdramCommand.READ
    given = [command.cycle for command in timing.commands(start + 20 * columns + 400) if command.op == kind]
    assert len(given) == columns
    return given[-1]


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
@pytest.mark.parametrize("store", [0, 1])
@pytest.mark.parametrize("words", [1, 5, 300, 900])
def test_one_run(config: HwConfig, store: int, words: int) -> None:
    assert config.external is not None
    columns, issue = columns_per_word(config), 40
    start = issue + BEGIN + TO_BUFFER * store
    last = last_column(config, bool(store), start, 7 * columns, words * columns)
    tail = STORED if store else config.external.read_latency + WRITTEN
    move = Move(space=Space.ACT, store=store, external=7, word_n=words)
    assert MoveTiming(config).done(move, issue) == last + tail


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_where_the_first_refresh_of_a_run_is_due(config: HwConfig) -> None:
    assert config.external is not None
    tail = config.external.read_latency + WRITTEN
    for issue in range(config.external.refresh - 80, config.external.refresh + 20):
        last = last_column(config, False, issue + BEGIN, 0, columns_per_word(config))
        assert MoveTiming(config).done(Move(), issue) == last + tail


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_runs_of_a_move_are_requests_behind_each_other(config: HwConfig) -> None:
    """In one row they cost no cycle beside their columns but the first one's, once they are longer than an offer takes;
    in another row of the same bank they do."""
    assert config.external is not None
    row = config.external.banks * config.external.columns // columns_per_word(config)
    together, apart = (MoveTiming(config).done(Move(word_n=20, run_n=3, e_run=step), 10) for step in (20, row))
    whole = MoveTiming(config).done(Move(word_n=60), 10)
    assert together >= whole
    assert together - whole < 2 * OFFER + 2
    assert apart > together + 2


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_addresses_are_modulo_the_memory(config: HwConfig) -> None:
    assert config.external is not None
    words = config.external.host_words
    low, high = Move(external=5, word_n=3), Move(external=(5 + words) % (1 << 24), word_n=3)
    assert MoveTiming(config).done(low, 9) == MoveTiming(config).done(high, 9)


def test_columns_of_a_word() -> None:
    assert [columns_per_word(config) for config in CONFIGS] == [2, 1]


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_the_next_move_finds_the_rows_open(config: HwConfig) -> None:
    """A move of the row that the one before has opened needs no ACTIVATE; a run's cycles end behind its last move."""
    assert config.external is not None
    code = [Move(word_n=4), Move(external=8, word_n=4, after_move=1)]
    times = timeline(config, {Unit.MOVE: code})
    one, two = times.spans[Unit.MOVE]
    assert (one.done - one.issue) - (two.done - two.issue) == config.external.rcd
    assert times.cycles > two.done


def test_a_refresh_that_is_due_is_waited_for() -> None:
    """Somewhere within the time of a refresh a short move takes the sequence longer."""
    config = CONFIGS[0]
    assert config.external is not None
    took = {MoveTiming(config).done(Move(), issue) - issue for issue in range(5, config.external.refresh)}
    assert max(took) - min(took) >= config.external.rp + config.external.rfc + config.external.slot - 2
