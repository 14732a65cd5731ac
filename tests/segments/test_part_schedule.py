"""Schedules of segments beside what lies in activation memory, and those of a kind."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net
from small_networks import SMALL, chain

from onnxhw.errors import DoesNotFitError, InternalError
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Copy, Graph, Piece
from onnxhw.isa.input_port import REGIONS
from onnxhw.isa.microcode import length
from onnxhw.isa.units import Unit
from onnxhw.sched import Occupied, check_reaching_definitions
from onnxhw.sched.scheduler import initial_schedule
from onnxhw.segments.cutting import cut
from onnxhw.segments.hazards import SegmentUse
from onnxhw.segments.part_entries import part_entries
from onnxhw.segments.part_schedule import PartSchedules


def other_weights(graph: Graph) -> Graph:
    """The same with each weight one less."""
    ops = [replace(op, weight=(op.weight - 1).clip(-127).astype(np.int8)) for op in graph.ops]  # type: ignore[call-arg]
    return replace(graph, ops=ops)


def test_fixed_inputs_and_reserved_words_stay_as_they_are() -> None:
    graph = chain()
    (name,) = (port.tensor for port in graph.inputs)
    occupied = Occupied({name: 20}, frozenset([name]), ((0, 20), (29, 40)))
    part = PartSchedules(SMALL)(graph, occupied, {})
    assert part.places[name].base == 20
    use = SegmentUse(part.candidate.code, SMALL)
    reserved = [*range(20), *range(29, 69)]
    assert not use.written[reserved].any()
    assert not use.written[20:29].any()  # the input is kept


def test_inputs_keep_away_from_busy_words_and_tensors_lie_in_their_ranges() -> None:
    graph = chain()
    (name,) = (port.tensor for port in graph.inputs)
    made = [tensor for tensor in graph.tensors if tensor != name]
    half = SMALL.act_words // 2
    occupied = Occupied(busy=((0, 50), (59, 5)), ranges=dict.fromkeys(made, (half, SMALL.act_words)))
    part = PartSchedules(SMALL)(graph, occupied, {})
    words = {tensor: set(place.addresses(SMALL.word).ravel().tolist()) for tensor, place in part.places.items()}
    assert words[name] == set(range(50, 59))  # the first gap that is large enough
    assert min(min(words[tensor]) for tensor in made) >= half
    use = SegmentUse(part.candidate.code, SMALL)
    assert not use.written[:half].any()


def test_inputs_may_lie_at_the_end() -> None:
    graph = chain()
    (name,) = (port.tensor for port in graph.inputs)
    low, high = 4, SMALL.act_words // 2
    part = PartSchedules(SMALL)(graph, Occupied(ranges={name: (low, high)}, from_end=frozenset([name])), {})
    place = part.places[name]
    assert place.base + place.blocks(SMALL.word) * place.plane == high
    part = PartSchedules(SMALL)(graph, Occupied(ranges={name: (low, high)}), {})
    assert part.places[name].base < place.base


def test_a_range_that_is_too_small_is_told() -> None:
    graph = chain()
    occupied = Occupied(ranges=dict.fromkeys(graph.tensors, (0, 8)))
    with pytest.raises(DoesNotFitError):
        PartSchedules(SMALL)(graph, occupied, {})


def test_one_of_the_kind_has_its_own_constants_and_the_same_code() -> None:
    graph, schedules = chain(), PartSchedules(SMALL)
    one = schedules(graph, Occupied(), {})
    other = schedules(other_weights(graph), Occupied(), {})
    assert other.candidate.code == one.candidate.code
    assert not np.array_equal(other.lowered.images.weight_image, one.lowered.images.weight_image)


def test_equal_segments_have_one_schedule_and_others_of_the_kind_their_own() -> None:
    """As stripes with the same weights are: lowered once, and scheduled again once where the first one was."""
    schedules = PartSchedules(SMALL)
    parts = [schedules(chain(), Occupied(), {}) for _ in range(3)]
    assert parts[1] is parts[2]
    assert parts[0].candidate.code == parts[1].candidate.code
    other = schedules(other_weights(chain()), Occupied(), {})
    assert other is not parts[2]
    assert not np.array_equal(other.lowered.images.weight_image, parts[2].lowered.images.weight_image)
    scale = replace(chain().ops[0], multiplier=chain().ops[0].multiplier * np.float32(0.5))  # type: ignore[call-arg]
    third = schedules(replace(chain(), ops=[scale, *chain().ops[1:]]), Occupied(), {})
    assert not np.array_equal(third.lowered.images.param_image, parts[2].lowered.images.param_image)
    assert schedules(chain(), Occupied(reserved=((0, 20),)), {}) is not parts[2]


def test_no_room_is_told_twice() -> None:
    graph, schedules = chain(), PartSchedules(SMALL)
    full = Occupied(reserved=((0, SMALL.act_words),))
    for _ in range(2):
        with pytest.raises(DoesNotFitError):
            schedules(graph, full, {})


def test_microcode_that_fits_alone_and_not_behind_another_segments_is_refused() -> None:
    graph = chain()
    code = PartSchedules(SMALL)(graph, Occupied(), {}).candidate.code[Unit.VECTOR]
    words = length(code)
    tight = replace(SMALL, vector_ucode=words)
    with pytest.raises(DoesNotFitError, match="vector microcode is too long for its ring") as error:
        PartSchedules(tight).alone(graph, {})
    assert error.value.code == "E5104"
    roomy = replace(SMALL, vector_ucode=words + 2 * len(code) + code[0].words())
    assert PartSchedules(roomy).alone(graph, {}).cycles > 0


def concatenated() -> tuple[Graph, str, str]:
    """A tensor beside what a convolution of 3 x 3 makes of another one, with the names of both."""
    net = Net(8, 4)
    one, other = net.conv("x", 8, 1), net.conv("x", 8, 1)
    last = net.conv(net.concat(one, net.conv(other, 8)), 8, 1)
    graph = net.graph("concatenated", last)
    segment = cut(graph, graph.ops[2:], {last: Box.whole(graph.tensors[last].shape)})
    assert segment is not None
    ports = zip(segment.inputs, segment.graph.inputs, strict=True)
    names = {region.tensor: port.tensor for region, port in ports}
    return segment.graph, names[one], names[other]


@pytest.mark.parametrize("base", [40, 71, 72])
def test_a_concat_of_an_input_that_is_there_is_not_laid_over_another(base: int) -> None:
    """The room of the Concat begins where the input lies, and is twice as large."""
    graph, one, other = concatenated()
    schedules, occupied = PartSchedules(SMALL), Occupied({one: 8, other: base})
    if base < 8 + 64:
        with pytest.raises(DoesNotFitError, match="E5101"):
            schedules(graph, occupied, {})
        return
    part = schedules(graph, occupied, {})
    assert part.places[other].base == base
    check_reaching_definitions(part.lowered, part.candidate, part_entries(part))


def test_what_lies_over_an_operand_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the proof that knows nothing of how places are found."""
    monkeypatch.setattr("onnxhw.sched.alloc._possible", lambda needs, config: True)
    graph, one, other = concatenated()
    part = PartSchedules(SMALL)(graph, Occupied({one: 8, other: 40}), {})
    with pytest.raises(InternalError, match="E1213"):
        check_reaching_definitions(part.lowered, part.candidate, part_entries(part))


@pytest.mark.parametrize("base", [63, 64])
def test_operands_that_are_there_lie_in_banks_of_their_own(base: int) -> None:
    """Of a sum both are read in one cycle."""
    net = Net(4, 4)
    one, other = net.conv("x", 4, 1), net.conv("x", 4, 1)
    graph = net.graph("sum", net.add(one, other))
    segment = cut(graph, graph.ops[2:], {graph.outputs[0].tensor: Box.whole((1, 4, 4, 4))})
    assert segment is not None
    first, second = (port.tensor for port in segment.graph.inputs)
    schedules, occupied = PartSchedules(SMALL), Occupied({first: 0, second: base})
    if base < SMALL.act_depth:
        with pytest.raises(DoesNotFitError, match="E5101"):
            schedules(segment.graph, occupied, {})
    else:
        assert schedules(segment.graph, occupied, {}).places[second].base == base


def test_a_segment_may_have_more_operands_than_the_input_port_has_regions() -> None:
    """They come by moves. (Resize to 5 times the size is a Copy of 25 tensors, DenseNet joins 24.)"""
    net, count = Net(4, 2), REGIONS + 9
    pieces = tuple(Piece(n, 0, 2, 1, 2, 2, 2 * n) for n in range(count))
    net._op(Copy, tuple(net.conv("x", 4, 1) for _ in range(count)), (4, 2 * count, 2), pieces=pieces)
    whole = net.graph("many", list(net.tensors)[-1])
    (op,) = [op for op in whole.ops if isinstance(op, Copy)]
    segment = cut(whole, [op], {op.output: Box.whole(whole.tensors[op.output].shape)})
    assert segment is not None
    graph, config = segment.graph, replace(SMALL, act_depth=1024)
    assert len(graph.inputs) == count
    assert PartSchedules(config).alone(graph, {}).cycles > 0
    with pytest.raises(DoesNotFitError, match="the input port has 16"):
        initial_schedule(graph, config)
