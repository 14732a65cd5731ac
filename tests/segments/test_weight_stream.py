"""Weights that come in pieces: the same tiles in order, and programs whose weights never are on chip at once."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from heuristics import Net
from small_networks import NETWORKS, SMALL, dense_channels

from onnxhw.config import HwConfig
from onnxhw.errors import DoesNotFitError, InternalError
from onnxhw.isa.external_instructions import ExternalLoad
from onnxhw.isa.instructions import Load
from onnxhw.isa.memory import Space
from onnxhw.isa.timing import load_steps
from onnxhw.isa.units import Unit
from onnxhw.presets import preset
from onnxhw.sched import Occupied, check, footprint
from onnxhw.segments import PartCycles, link, make_plan
from onnxhw.segments.estimate import estimate_cycles
from onnxhw.segments.part_schedule import PartSchedules
from onnxhw.segments.weight_loads import TILES
from onnxhw.segments.weight_stream import SHARE, may_stream, passes, streams, weight_pieces

FULL = preset("ulx3s-85f+sdram")


def words_of(load: Load, config: HwConfig = FULL) -> npt.NDArray[np.int64]:
    """Weight words of a load, tile by tile in the order in which it takes them."""
    return footprint.tile_words(load, config)[:, None] + np.arange(load_steps(load, config))


@pytest.mark.parametrize("load", [
    ExternalLoad(base=7, tiles=3 * TILES + 5, after_vector=3),
    ExternalLoad(base=7, tiles=40, nt_n=3, nt_step=1000),
])  # fmt: skip
def test_pieces_take_the_tiles_of_a_load_in_order(load: Load) -> None:
    """Put at any base, a piece reads there what lies in its words."""
    pieces = weight_pieces([load], FULL)
    assert pieces is not None
    assert len(pieces) > 1
    taken = []
    for piece in pieces:
        mine = words_of(piece.load.but(base=50)).ravel() - 50
        assert sorted(mine) == list(range(len(piece.words)))
        taken += piece.words[mine].tolist()
        assert piece.load.after_vector == load.after_vector
        assert SHARE * len(piece.words) <= FULL.weight_depth
    assert taken == words_of(load).ravel().tolist()


def test_pieces_are_larger_where_the_ring_of_microcode_has_no_room_for_so_many() -> None:
    load = ExternalLoad(tiles=64 * TILES)
    tight = replace(FULL, load_ucode=256)
    few, many = weight_pieces([load], tight), weight_pieces([load], FULL)
    assert few
    assert many
    assert len(few) == len(many) / 2
    assert weight_pieces([load], replace(FULL, load_ucode=32)) is None
    assert weight_pieces([load], replace(FULL, weight_depth=SHARE - 1)) is None


def test_one_set_of_columns_of_one_operation_may_come_in_pieces() -> None:
    columns, config = SMALL.used_cols, SMALL

    def able(channels: int, second: bool = False) -> bool:
        net = Net(8, 4)
        y = net.conv("x", channels)
        return may_stream(net.graph("one", net.conv(y, 4) if second else y), config)

    assert able(columns)
    assert not able(columns + 1)
    assert not able(columns, second=True)


def test_weights_come_once_for_what_the_accumulators_hold() -> None:
    net = Net(8, 16)
    graph = net.graph("one", net.conv("x", 4))
    assert [passes(graph, replace(SMALL, acc_depth=depth)) for depth in (256, 255, 128, 16, 8)] == [1, 2, 2, 16, 32]


def test_weights_that_exceed_the_memory_pass_through_it() -> None:
    """More is brought in a run than the memory holds, of segments that each need more; the proofs hold."""
    graph = NETWORKS["deep"]()
    cycles = PartCycles(SMALL)
    plan = make_plan(graph, SMALL, cycles)
    assert sum(streams(segment, SMALL) for segment in plan.segments) > 10
    program = link(graph, plan, SMALL, cycles.schedules)
    assert check(program).cycles == program.cycles
    moved = sum(move.word_n for move in program.code[Unit.MOVE] if move.space == Space.WEIGHT)
    assert moved > 10 * SMALL.weight_depth


def test_a_segment_in_pieces_has_the_fewest_tiles() -> None:
    """Its weights are loaded once, where a schedule with all of them on chip would load them for each tile of rows."""
    net, roomy = Net(80, 8), replace(SMALL, act_depth=1024, acc_depth=64)
    graph = net.graph("square", net.conv(net.scale("x", net.average("x")), 4))
    made = PartSchedules(roomy)(graph, Occupied(), {})
    assert made.streams
    loaded = sum(len(words_of(load, roomy)) for load in made.candidate.code[Unit.LOAD] if isinstance(load, Load))
    assert loaded * roomy.tile_words == made.lowered.images.weight_words
    whole = PartSchedules(replace(roomy, weight_depth=1024))(graph, Occupied(), {})
    assert len(whole.candidate.code[Unit.ARRAY]) > len(made.candidate.code[Unit.ARRAY])


def test_a_piece_that_does_not_wait_is_refused() -> None:
    """What its words hold is in use."""
    graph = NETWORKS["deep"]()
    program = link(graph, make_plan(graph, SMALL, PartCycles(SMALL)), SMALL)
    moves = program.code[Unit.MOVE]
    number = next(n for n, move in enumerate(moves) if move.space == Space.WEIGHT and move.after_load > 20)
    program.code[Unit.MOVE] = [*moves[:number], moves[number].but(after_load=0), *moves[number + 1 :]]
    with pytest.raises(InternalError, match="E1207"):
        check(program)


def test_without_room_for_pieces_no_part_fits() -> None:
    tiny = replace(SMALL, weight_depth=SHARE * SMALL.tile_words - 1)
    with pytest.raises(DoesNotFitError, match="E5191"):
        make_plan(NETWORKS["deep"](), tiny, PartCycles(tiny))


def test_forecasts_know_that_pieces_come_beside_the_run() -> None:
    """Within a fifth of the exact cycles."""
    graph, cycles = dense_channels(), PartCycles(SMALL)
    plan = make_plan(graph, SMALL, cycles)
    assert all(streams(segment, SMALL) for segment in plan.segments)
    exact = link(graph, plan, SMALL, cycles.schedules).cycles
    assert 0.8 * exact < estimate_cycles(plan, SMALL, cycles).cycles < 1.2 * exact
