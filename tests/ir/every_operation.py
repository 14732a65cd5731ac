"""A graph with every operation, for tests that ask something of all of them."""

from onnxhw.cli.common.selftest_network import network
from onnxhw.ir.graph import Copy, Graph, Piece, Reshape, Tensor


def every() -> Graph:
    """A graph with every operation."""
    graph = network()
    concat, c, size = graph.tensors["concat"], graph.tensors["concat"].channels, graph.tensors["concat"].height
    down = Piece(0, size, size, 1, size - 1, size)
    graph.ops.append(Copy("copy", ("concat",), "copied", pieces=(down,), fill=5))
    graph.ops.append(Reshape("reshape", ("copied",), "flat"))
    graph.tensors["copied"] = Tensor("copied", concat.shape, concat.scale, concat.zero_point)
    graph.tensors["flat"] = Tensor("flat", (1, c * size * size, 1, 1), concat.scale, concat.zero_point)
    return graph
