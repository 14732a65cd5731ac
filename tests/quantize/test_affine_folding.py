"""Folding does not change what a float model computes, and leaves affine layers only."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.hostops.evaluator import evaluate
from onnxhw.quantize.affine_folding import fold_normalizations
from onnxhw.quantize.floatgraph import FloatGraph
from onnxhw.quantize.write import float_model


def folded(model):
    graph = FloatGraph(model, "model")
    fold_normalizations(graph)
    return graph


def operators(graph):
    return [layer.node.op_type for layer in graph.layers]


def test_the_folded_network_computes_the_same(net, draw):
    made = float_model(folded(net))
    onnx.checker.check_model(made, full_check=True)
    for feed in draw(net, 3):
        wanted, found = evaluate(net, feed), evaluate(made, feed)
        assert list(wanted) == list(found)
        for name in wanted:
            # float32 sums in another order
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-5 * np.abs(wanted[name]).max())


def test_batch_normalization_joins_its_convolution(make_net):
    net = make_net([1, 3, 8, 8])
    y = net.add("Relu", net.normalization(net.conv("x", 6, 3, bias=False), 6))
    assert operators(folded(net.model(y))) == ["Conv", "Relu"]


def test_a_shared_convolution_is_not_changed(make_net):
    """The convolution has a second consumer: the normalization becomes a convolution of its own."""
    net = make_net([1, 3, 8, 8])
    y = net.conv("x", 6, 3)
    graph = folded(net.model(y, net.normalization(y, 6)))
    assert operators(graph) == ["Conv", "Conv"]
    assert graph.layers[1].attributes()["group"] == 6


def test_shared_weights_are_folded_for_each_convolution(make_net):
    net = make_net([1, 3, 8, 8])
    weight = net.random(3, 3, 1, 1)
    first = net.normalization(net.add("Conv", "x", weight), 3)
    graph = folded(net.model(net.add("Conv", first, weight)))
    assert operators(graph) == ["Conv", "Conv"]
    assert not np.array_equal(graph.layers[0].weight, graph.layers[1].weight)
    assert np.array_equal(graph.layers[1].weight, graph.constants[weight])


def test_matmul_and_add_become_one_gemm(make_net):
    net = make_net([1, 8])
    y = net.add("Add", net.random(4), net.add("MatMul", "x", net.random(8, 4)))
    graph = folded(net.model(y))
    assert operators(graph) == ["Gemm"]
    assert graph.layers[0].weight.shape == (4, 8)


def test_constants_are_computed_and_identities_vanish(make_net):
    net = make_net([1, 3, 8, 8])
    weight = net.add("Reshape", net.random(4, 27), net.constant(np.array([4, 3, 3, 3])))
    y = net.add("Identity", net.add("Conv", net.add("Dropout", "x"), weight))
    assert operators(folded(net.model(net.add("Relu", y)))) == ["Conv", "Relu"]


@pytest.mark.parametrize("op", ["Div", "Sub"])
def test_a_constant_on_the_left(make_net, op):
    """c - x is affine, c / x is not."""
    net = make_net([1, 3, 8, 8])
    y = net.add(op, net.random(1, 4, 1, 1), net.conv("x", 4, 3))
    assert operators(folded(net.model(y))) == (["Conv"] if op == "Sub" else ["Conv", "Div"])


def test_weights_that_are_inputs_too_are_constants(make_net):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv("x", 4, 3))
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims))
    made = float_model(folded(model))
    assert [value.name for value in made.graph.input] == ["x"]


def test_a_quantized_constant_is_folded_in_the_models_version(make_net):
    """Weights that are stored as integers; onnx's reference has no DequantizeLinear before operator set 19."""
    net = make_net([1, 3, 8, 8])
    weight = net.add("DequantizeLinear", net.constant(np.ones((2, 3, 1, 1), np.int8)), net.constant(0.5))
    graph = folded(net.model(net.add("Conv", "x", weight)))
    assert operators(graph) == ["Conv"]
    assert (graph.layers[0].weight == 0.5).all()


def test_what_cannot_be_computed_ahead_stays(make_net):
    net = make_net([1, 3, 8, 8])
    random = net.add("RandomUniformLike", net.constant(np.ones((1, 2, 1, 1), np.float32)))
    graph = folded(net.model(net.add("Mul", net.conv("x", 2, 3), random)))
    assert "RandomUniformLike" in operators(graph)
