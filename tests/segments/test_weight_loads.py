"""Loads that are cut: the same tiles in the same order, from where their words lie."""

import numpy as np
import pytest
from small_networks import SMALL

from onnxhw.isa.external_instructions import ExternalLoad
from onnxhw.isa.instructions import Load
from onnxhw.isa.microcode import length
from onnxhw.presets import preset
from onnxhw.sched import footprint
from onnxhw.segments.weight_loads import TILES, cut_loads, may_wrap

FULL = preset("ulx3s-85f+sdram")


def tiles_of(loads: list[Load]) -> list[int]:
    """First weight word of each tile, in order."""
    return [int(word) for load in loads for word in footprint.tile_words(load, FULL)]


@pytest.mark.parametrize("first", [0, 480])
@pytest.mark.parametrize("tiles", [1, TILES, 3 * TILES + 5])
def test_one_column_tile_is_cut_also_at_the_end_of_the_ring(first: int, tiles: int) -> None:
    load = ExternalLoad(base=2, tiles=tiles, after_vector=3)
    at = 100 + (np.arange(2 + tiles) + first - 100) % (FULL.weight_depth - 100)
    (cut,) = cut_loads([load], at, FULL)
    assert tiles_of(cut) == at[2:].tolist()
    assert max(each.tiles for each in cut) <= TILES
    assert all(each.after_vector == 3 for each in cut)


def test_several_column_tiles_are_cut_by_rows() -> None:
    load = ExternalLoad(tiles=40, nt_n=3, nt_step=40)
    (cut,) = cut_loads([load], 50 + np.arange(120), FULL)
    assert tiles_of(cut) == [50 + word for word in tiles_of([load])]
    assert max(each.tiles * each.nt_n for each in cut) <= TILES


def test_column_tiles_whose_weights_lie_apart_are_loaded_one_by_one_if_they_must() -> None:
    load = ExternalLoad(tiles=2, nt_n=3, nt_step=2)
    for places in ([20, 21, 40, 41, 60, 61], [20, 21, 70, 71, 60, 61]):
        at = np.array(places)
        (cut,) = cut_loads([load], at, FULL)
        assert tiles_of(cut) == [int(at[tile + 2 * column]) for tile in range(2) for column in range(3)]
    assert len(cut) == 6


def test_so_many_loads_that_they_would_not_fit_their_ring_are_cut_into_larger_ones() -> None:
    loads = [ExternalLoad(base=16 * TILES * n, tiles=16 * TILES) for n in range(20)]
    at = np.arange(20 * 16 * TILES)
    cut = cut_loads(loads, at, FULL)
    assert [word for mine in cut for word in tiles_of(mine)] == at.tolist()
    assert max(each.tiles for mine in cut for each in mine) == 2 * TILES
    every = [each for mine in cut for each in mine]
    assert length([each.but(after_vector=n % 2) for n, each in enumerate(every)]) < FULL.load_ucode
    assert {len(mine) for mine in cut_loads(loads[:10], at, FULL)} == {16}


def test_only_tiles_of_one_word_may_lie_in_two_places() -> None:
    assert may_wrap([ExternalLoad(tiles=4)], FULL)
    assert not may_wrap([ExternalLoad(tiles=4, nt_n=2)], FULL)
    assert not may_wrap([ExternalLoad(tiles=4)], SMALL)
