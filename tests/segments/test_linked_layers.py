"""Layers of a program in segments: the network's operations, with all instructions of every unit but `move`."""

from small_networks import NETWORKS, SMALL

from onnxhw.ir.graph import Copy, Graph, Piece, Tensor
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.units import Unit
from onnxhw.segments import PartCycles, link, make_plan
from onnxhw.segments.linked_layers import owners


def test_every_instruction_belongs_to_an_operation() -> None:
    graph = NETWORKS["residual"]()
    plan = make_plan(graph, SMALL, PartCycles(SMALL))
    program = link(graph, plan, SMALL)
    assert [layer.name for layer in program.layers] == [op.name for op in graph.ops]
    for unit in UNITS:
        mine = sorted(index for layer in program.layers for index in layer.indices(unit))
        assert mine == list(range(len(program.code[unit])))
    assert not any(Unit.MOVE in layer.instructions for layer in program.layers)
    assert sum(layer.nominal for layer in program.layers) == graph.macs() == program.nominal
    assert sum(layer.macs for layer in program.layers) == program.macs >= program.nominal


def test_a_crop_belongs_to_the_operation_that_reads_it() -> None:
    piece = Piece(0, 0, 2, 1, 2, 2)
    ops = [Copy("crop", ("a",), "b", pieces=(piece,)), Copy("copy", ("b",), "c", pieces=(piece,))]
    tensors = {name: Tensor(name, (1, 1, 2, 2), 1.0, 0) for name in "abc"}
    graph = Graph("crops", tensors, list(ops), [], [])
    assert owners(graph.ops, {"copy"}) == {"crop": "copy", "copy": "copy"}
