"""The order of operations in which more of them are runs with one result."""

from dataclasses import replace

from heuristics import Net

from onnxhw.segments.operation_order import depth_first


def test_operations_come_behind_what_they_read_as_soon_as_may_be() -> None:
    """Two branches that are written side by side, as quantizers write them, and a sum."""
    net = Net(8, 6)
    one, other = net.conv("x", 8), net.conv("x", 8)
    one, other = net.conv(one, 8), net.conv(other, 8)
    graph = net.graph("branches", net.add(net.conv(one, 8), other))
    order = [graph.ops.index(op) for op in depth_first(graph)]
    assert order == [0, 2, 4, 1, 3, 5]
    assert [op.output for op in depth_first(replace(graph, ops=graph.ops[:1]))] == [graph.ops[0].output]
