"""Which values are quantized, which share a grid, and what stays float."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw import partition
from onnxhw.hostops.evaluator import evaluate
from onnxhw.quantize import quantize
from onnxhw.quantize.affine_folding import fold_normalizations
from onnxhw.quantize.floatgraph import FloatGraph
from onnxhw.quantize.plan import plan_grids


def planned(model):
    graph = FloatGraph(model, "model")
    fold_normalizations(graph)
    return plan_grids(graph), {layer.label: layer for layer in graph.layers}


def test_a_clamp_belongs_to_the_operation_before(make_net):
    net = make_net([1, 3, 8, 8])
    convolved = net.conv("x", 4, 3)
    y = net.add("Clip", net.add("Relu", convolved), net.constant(-1.0), net.constant(2.0))
    chosen, _ = planned(net.model(y))
    assert set(chosen.group) == {"x", y}
    assert convolved in chosen.fused


def test_a_clamp_of_a_shared_value_has_a_grid_of_its_own(make_net):
    net = make_net([1, 3, 8, 8])
    convolved = net.conv("x", 4, 3)
    clamped = net.add("Relu", convolved)
    chosen, _ = planned(net.model(net.add("Add", convolved, clamped)))
    assert chosen.group[convolved] != chosen.group[clamped]


def test_values_that_only_move_share_one_grid(make_net):
    net = make_net([1, 3, 8, 8])
    a = net.conv("x", 4, 3, pads=[1, 1, 1, 1])
    b = net.conv("x", 4, 3, pads=[1, 1, 1, 1])
    joined = net.add("Concat", a, b, axis=1)
    pooled = net.add("MaxPool", joined, kernel_shape=[2, 2])
    flat = net.add("Flatten", pooled)
    chosen, _ = planned(net.model(net.add("Gemm", flat, net.random(392, 3))))
    assert {chosen.group[name] for name in (a, b, joined, pooled, flat)} == {chosen.group[a]}
    assert set(chosen.sources[chosen.group[a]]) == {a, b}


def test_the_grid_of_a_group_covers_all_its_sources(make_net, draw):
    net = make_net([1, 3, 8, 8])
    a, b = net.conv("x", 4, 3, (1, 1)), net.add("Relu", net.conv("x", 4, 3, (1, 1)))
    model = net.model(net.conv(net.add("Concat", a, b, axis=1), 2, 8))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    grids = {layer.value: (layer.scale, layer.zero_point) for layer in made.report.layers}
    assert grids[a] == grids[b]


def test_the_edges_stay_float(make_net):
    """A scalar at the input, a function and a reshape at the output are the host's: no second rounding."""
    net = make_net([1, 3, 8, 8])
    scaled = net.add("Div", "x", net.constant(255.0))
    convolved = net.conv(scaled, 4, 3)
    y = net.add("Flatten", net.add("Sigmoid", convolved))
    chosen, layers = planned(net.model(y))
    assert set(chosen.group) == {scaled, convolved}
    assert {label for label, layer in layers.items() if layer.output not in chosen.layers} == {
        scaled, layers[y].node.input[0], y,
    }  # fmt: skip


def test_a_chain_of_functions_is_one_table(make_net, draw):
    """x * relu6(x + 3) / 6, as exporters write HardSwish."""
    net = make_net([1, 3, 8, 8])
    y = net.conv("x", 4, 3)
    gate = net.add("Clip", net.add("Add", y, net.constant(3.0)), net.constant(0.0), net.constant(6.0))
    model = net.model(net.conv(net.add("Mul", y, net.add("Div", gate, net.constant(6.0))), 2, 4))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    graph = partition.load(made.bytes())
    assert [type(op).__name__ for op in graph.ops] == ["Conv", "Table", "Mul", "Conv"]


def test_an_operator_that_cannot_be_quantized_stays_float_between_quantized_ones(make_net, draw):
    net = make_net([1, 3, 8, 8])
    y = net.add("LpNormalization", net.conv("x", 4, 3), axis=1)
    model = net.model(net.conv(y, 2, 4))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    assert made.report.host == (y,)
    assert min(layer.snr_db for layer in made.report.layers) > 20
    makers = {name: node.op_type for node in made.model.graph.node for name in node.output}
    node = next(node for node in made.model.graph.node if node.op_type == "LpNormalization")
    assert makers[node.input[0]] == "DequantizeLinear"
    after = [other.op_type for other in made.model.graph.node if node.output[0] in other.input]
    assert after == ["QuantizeLinear"]


def test_values_that_a_subgraph_reads_stay_float(make_net, draw):
    net = make_net([1, 3, 8, 8])
    convolved = net.conv("x", 4, 3)
    branches = {}
    for key, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        body = helper.make_graph(
            [helper.make_node(op, [convolved], [f"{key}_y"])],
            key,
            [],
            [helper.make_tensor_value_info(f"{key}_y", TensorProto.FLOAT, [1, 4, 6, 6])],
        )
        branches[key] = body
    sums = net.add("ReduceSum", "x", keepdims=0)
    y = net.add("If", net.add("Greater", sums, net.constant(0.0)), **branches)
    model = net.model(net.conv(y, 2, 4))
    chosen, _ = planned(model)
    assert convolved not in chosen.group
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    onnx.checker.check_model(made.model, full_check=True)
    assert made.report.layers[-1].snr_db > 20


def test_a_matmul_per_position_keeps_its_bias(make_net, draw):
    net = make_net([1, 5, 8])
    y = net.add("Relu", net.add("Add", net.add("MatMul", "x", net.random(8, 6)), net.random(6)))
    model = net.model(net.add("MatMul", y, net.random(6, 4)))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    kinds = {tensor.name: tensor.data_type for tensor in made.model.graph.initializer}
    assert [name for name, kind in kinds.items() if kind == TensorProto.INT32 and name.endswith("quantized")]
    assert min(layer.snr_db for layer in made.report.layers) > 25


@pytest.mark.parametrize("shape", [["N", 3, 8, 8], [1, 3, 8, 8]])
def test_the_batch_of_the_model_stays(make_net, draw, shape):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("Relu", net.conv("x", 4, 3)), shape=shape)
    made = quantize(model.SerializeToString(), lambda: iter(draw(model))).model
    dim = made.graph.input[0].type.tensor_type.shape.dim[0]
    assert (dim.dim_param or dim.dim_value) == shape[0]


def test_names_that_are_taken_are_not_taken_twice(make_net, draw):
    net = make_net([1, 3, 8, 8])
    y = net.conv("x", 4, 3)
    net.nodes[-1].output[0] = "x_quantized"
    z = net.conv("x_quantized", 4, 4)
    net.nodes[-1].output[0] = "x_dequantized"
    model = net.model("x_dequantized")
    assert y != z
    feeds = draw(model)
    made = quantize(model.SerializeToString(), lambda: iter(feeds))
    wanted, found = (evaluate(one, feeds[0])["x_dequantized"] for one in (model, made.model))
    assert np.abs(wanted - found).max() < 0.1
