"""The seeds of a design in turn: which are tried, which of their results is taken, and what is in the cache of each."""

import pytest

from onnxhw.board import find
from onnxhw.build import flow
from onnxhw.build.cache import Cache
from onnxhw.build.flow import FlowOptions
from onnxhw.cli.common.synthesis import options
from onnxhw.errors import TimingError, UsageError

BOARD, HZ = find("ulx3s-12f"), 100_000_000


def built(store, *seeds, only_near=False, **more):
    return flow.build(
        None, BOARD, clock_hz=HZ, cache=store, options=FlowOptions(seeds=seeds, only_near=only_near), **more
    )


@pytest.mark.parametrize(
    ("mhz", "taken", "tried"),
    [((101, 120), 1, 1), ((95, 101, 120), 2, 2), ((95, 97, 96), 2, 3), ((80, 120), 2, 2)],
)
def test_the_first_that_meets_the_clock_is_taken_or_the_best(tools, tmp_path, mhz, taken, tried):
    tools.mhz = dict(enumerate(mhz, 1))
    found = built(Cache("bitstream", tmp_path), *tools.mhz, require_timing=False)
    assert (found.seed, found.report.fmax_mhz) == (taken, mhz[taken - 1])
    assert tools.names == ["synthesize", *(f"route {seed}" for seed in range(1, tried + 1))], "one synthesis for all"


@pytest.mark.parametrize(("mhz", "tried"), [((89.9, 120), 1), ((90.1, 80, 85, 92), 4), ((90.1, 80, 101), 3)])
def test_no_other_seed_is_tried_where_the_first_is_far_off(tools, tmp_path, mhz, tried):
    tools.mhz, store = dict(enumerate(mhz, 1)), Cache("bitstream", tmp_path)
    if max(mhz[:tried]) >= 100:
        assert built(store, *tools.mhz, only_near=True).seed == tried
    else:
        with pytest.raises(TimingError, match=rf"\({tried} seeds? tried, best: {mhz.index(max(mhz[:tried])) + 1}\)"):
            built(store, *tools.mhz, only_near=True)
    assert tools.names[1:] == [f"route {seed}" for seed in range(1, tried + 1)]


def test_what_a_seed_has_made_is_found_again_among_others(tools, tmp_path):
    tools.mhz, store = {1: 95.0, 2: 96.0, 3: 101.0}, Cache("bitstream", tmp_path)
    one = built(store, 1, require_timing=False)
    assert flow.cached(None, BOARD, clock_hz=HZ, options=FlowOptions(seeds=(1, 2)), cache=store) is None
    assert built(store, 1, 2, require_timing=False).seed == 2
    assert tools.names == ["synthesize", "route 1", "synthesize", "route 2"]
    again = built(store, 2, 1, require_timing=False)
    assert (again.seed, again.cached) == (2, True)
    assert built(store, 1, require_timing=False).key == one.key != again.key
    assert flow.cached(None, BOARD, clock_hz=HZ, options=FlowOptions(seeds=(1, 2)), cache=store).key == again.key
    assert built(store, 1, 2, 3).seed == 3
    assert flow.cached(None, BOARD, clock_hz=HZ, options=FlowOptions(seeds=(3, 4)), cache=store).seed == 3
    assert tools.names[4:] == ["synthesize", "route 3"]


def test_without_a_seed_there_is_nothing_to_try(tools, tmp_path):
    with pytest.raises(UsageError, match="E2340"):
        built(Cache("bitstream", tmp_path))


def test_the_seeds_of_the_board_s_file_are_tried_unless_a_number_is_asked_for():
    assert options(BOARD, None) == FlowOptions(seeds=BOARD.seeds, only_near=True)
    assert options(BOARD, 1) == FlowOptions(seeds=BOARD.seeds[:1])
    more = options(BOARD, len(BOARD.seeds) + 2).seeds
    assert more == (*BOARD.seeds, max(BOARD.seeds) + 1, max(BOARD.seeds) + 2)
