"""What the units have to do."""

from heuristics import Net

from onnxhw.presets import preset
from onnxhw.segments import PartCycles, Segment
from onnxhw.segments.part_work import run_cycles


def test_the_array_waits_for_windows_that_are_added_up() -> None:
    """A depthwise convolution of 5 x 5 is four windows of the depthwise unit."""
    config, net = preset("ulx3s-85f+sdram"), Net(32, 16)
    graph = net.graph("wide", net.conv(net.depthwise(net.conv("x", 64, 1), 5), 32, 1))
    exact = PartCycles(config)(Segment(graph, (), (), (), ()))
    assert 0.8 * exact < run_cycles(graph, config) < 1.2 * exact
