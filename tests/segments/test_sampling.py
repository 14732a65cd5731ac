"""1 x 1 convolutions with strides read pixels that were picked before."""

from dataclasses import replace

import numpy as np
from heuristics import Net
from small_networks import inputs

from onnxhw import golden
from onnxhw.ir.graph import Copy
from onnxhw.segments import sampled


def test_each_picks_its_pixels_once() -> None:
    net = Net(6, 9)
    y = net.conv("x", 8)
    sums = net.add(net.conv(y, 12, 1, 2), net.conv(y, 12, 1, 2))
    graph = net.graph("twice", net.add(sums, net.conv(net.conv(y, 12, 3, 2), 12)), net.conv(y, 4, 1, 3))
    made = sampled(graph)
    copies = [op for op in made.ops if isinstance(op, Copy)]
    assert [made.tensors[op.output].shape for op in copies] == [(1, 8, 5, 5), (1, 8, 3, 3)]
    assert {op.strides for op in made.ops if hasattr(op, "strides") and op.window.kernel == (1, 1)} == {(1, 1)}
    wanted, found = (golden.run(each, inputs(graph)) for each in (graph, made))
    assert all(np.array_equal(found[port.tensor], wanted[port.tensor]) for port in graph.outputs)


def test_others_stay_as_they_are() -> None:
    net = Net(6, 9)
    graph = net.graph("none", net.depthwise(net.conv(net.conv("x", 8, 3, 2), 8, 1), stride=2))
    assert sampled(graph) == graph


def test_a_name_that_a_model_has_is_not_taken() -> None:
    net = Net(6, 9)
    graph = net.graph("taken", net.conv(net.conv("x", 8), 12, 1, 2))
    theirs = f"{graph.ops[1].output}.pixels"
    first, second = graph.ops
    named = replace(graph.tensors[first.output], name=theirs)
    tensors = {name: x for name, x in graph.tensors.items() if name != first.output} | {theirs: named}
    graph = replace(graph, tensors=tensors, ops=[replace(first, output=theirs), replace(second, inputs=(theirs,))])
    made = sampled(graph)
    assert len(made.tensors) == len(graph.tensors) + 1
    wanted, found = (golden.run(each, inputs(graph)) for each in (graph, made))
    assert all(np.array_equal(found[port.tensor], wanted[port.tensor]) for port in graph.outputs)
