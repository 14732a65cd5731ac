"""What a segment finds on chip, and what comes early."""

from dataclasses import replace

from small_networks import NETWORKS, SMALL, anything, inverted

from onnxhw.ir.boxes import Box
from onnxhw.segments import make_plan
from onnxhw.segments.chaining import chained
from onnxhw.segments.cutting import cut
from onnxhw.segments.plan import peak_words


def test_loads_come_early_where_there_is_room_and_not_at_all_where_they_are_there() -> None:
    segments = make_plan(NETWORKS["branches"](), replace(SMALL, act_depth=128), anything).segments
    assert {segment.early for segment in segments[1:]} == {False, True}
    assert not segments[0].early
    assert any(len(segment.loads) < len(segment.inputs) for segment in segments)


def test_what_has_no_room_beside_the_run_is_loaded_again() -> None:
    """Two blocks of channels read the same operand, which outlives its last use in the first one if it stays."""
    graph = inverted()
    y = graph.tensors[graph.ops[1].output]
    made = [cut(graph, graph.ops[:2], {y.name: Box(span, (0, 10), (0, 10))}) for span in ((0, 12), (12, 24))]
    first, second = (segment for segment in made if segment)
    peak, kept = peak_words(first.graph, SMALL), peak_words(first.graph, SMALL, {first.graph.inputs[0].tensor})
    assert peak <= 3 * 256 < kept
    assert chained([first, second], replace(SMALL, act_banks=3, act_depth=256))[1] == second
    assert chained([first, second], replace(SMALL, act_depth=512))[1] == replace(second, loads=())
