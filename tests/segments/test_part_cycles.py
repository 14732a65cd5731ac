"""Cycles of segments that are told by those of larger ones that do the same."""

import pytest
from heuristics import Net
from small_networks import SMALL

from onnxhw.segments import PartCycles, ScaledCycles, Segment
from onnxhw.segments.part_work import run_cycles


def convolution(size: int, channels: int = 8, kernel: int = 3) -> Segment:
    net = Net(8, size)
    return Segment(net.graph("convolution", net.conv("x", channels, kernel)), (), (), (), ())


class Counted(PartCycles):
    """What was scheduled."""

    def __init__(self) -> None:
        super().__init__(SMALL)
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, segment: Segment) -> int:
        self.asked.append(segment.graph.tensors["x"].shape)
        return super().__call__(segment)


def test_a_smaller_one_has_the_cycles_of_its_share_of_the_work() -> None:
    exact = Counted()
    scaled = ScaledCycles(exact)
    large, small = convolution(8), convolution(6)
    assert scaled(large) == PartCycles(SMALL)(large)
    assert scaled(small) == round(scaled(large) * run_cycles(small.graph, SMALL) / run_cycles(large.graph, SMALL))
    assert exact.asked == [(1, 8, 8, 8)]
    assert scaled(small) == pytest.approx(PartCycles(SMALL)(small), rel=0.1)


@pytest.mark.parametrize("other", [convolution(9), convolution(4), convolution(8, 12), convolution(8, 8, 1)])
def test_one_that_does_more_or_much_less_or_something_else_is_scheduled(other: Segment) -> None:
    exact = Counted()
    scaled = ScaledCycles(exact)
    scaled(convolution(8))
    assert scaled(other) == PartCycles(SMALL)(other)
    assert len(exact.asked) == 2
    scaled(other)
    assert len(exact.asked) == 2
