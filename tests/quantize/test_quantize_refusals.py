"""What cannot be quantized, and models that have to be changed before they can be."""


import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import partition
from onnxhw.errors import OnnxhwError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.quantize import quantize
from onnxhw.quantize.runner import Runner


def refused(code, model, feeds=(), **options):
    with pytest.raises(OnnxhwError) as caught:
        quantize(model.SerializeToString(), lambda: iter(feeds), **options)
    assert caught.value.code == code
    return caught.value


def test_a_model_without_weights(make_net, draw):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("Relu", net.add("MaxPool", "x", kernel_shape=[2, 2])))
    refused("E4700", model, draw(model))


def test_a_quantized_model(make_net, draw):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv("x", 4, 3))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model))).model
    assert "QuantizeLinear" in refused("E4702", made).what


def test_sparse_weights_are_weights(make_net, draw):
    net = make_net([1, 12])
    weight = net.random(12, 4)
    model = net.model(net.add("MatMul", "x", weight))
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            helper.make_tensor(weight, TensorProto.FLOAT, [2], [1.0, -2.0]),
            helper.make_tensor("indices", TensorProto.INT64, [2], [0, 5]),
            [12, 4],
        )
    )
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    assert made.report.layers[0].snr_db > 30


def test_an_open_dimension_is_given_a_size(make_net, draw):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("GlobalAveragePool", net.conv("x", 4, 3)), shape=[1, 3, 8, "width"])
    feeds = [{"x": np.ones((1, 3, 8, 8), np.float32)}]
    assert refused("E4003", model, feeds)
    made = quantize(model.SerializeToString(), lambda: iter(feeds), shapes={"width": 8})
    assert made.model.graph.input[0].type.tensor_type.shape.dim[3].dim_param == "width"


@pytest.mark.parametrize("options", [{"method": "guess"}, {"percentile": 50.0}, {"percentile": 101.0}])
def test_options_that_make_no_sense(make_net, draw, options):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv("x", 4, 3))
    refused("E2607", model, draw(model), **options)


def test_an_older_operator_set_is_raised(make_net, draw):
    net = make_net([1, 3, 8, 8], opset=11)
    model = net.model(net.add("Relu", net.normalization(net.conv("x", 4, 3, bias=False), 4)))
    made = quantize(model.SerializeToString(), lambda: iter(draw(model)))
    assert made.model.opset_import[0].version == 13
    assert [op.name for op in partition.load(made.bytes()).ops]


def test_functions_of_the_model_are_inlined(make_net, draw):
    net = make_net([1, 3, 8, 8])
    convolved = net.conv("x", 4, 3)
    net.nodes.append(helper.make_node("Twice", [convolved], ["doubled"], domain="local"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(
        net.nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("doubled", TensorProto.FLOAT, [1, 4, 6, 6])],
        net.constants,
    )
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    function = helper.make_function("local", "Twice", ["a"], ["b"], body, opsets[:1])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function])
    feeds = draw(model)
    made = quantize(model.SerializeToString(), lambda: iter(feeds))
    assert not made.model.functions
    wanted, found = (evaluate(one, feeds[0])["doubled"] for one in (model, made.model))
    assert np.abs(wanted - found).max() < 0.05 * np.abs(wanted).max()


def test_a_model_that_cannot_be_run(make_net):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv("x", 4, 3))
    runner = Runner(model)
    with pytest.raises(OnnxhwError) as caught:
        runner.run({"x": np.zeros((1, 99, 8, 8), np.float32)})
    assert caught.value.code == "E4756"


@pytest.mark.parametrize(
    ("node", "constants", "code"),
    [(helper.make_node("Div", ["n", "d"], ["q"]), {"n": [-(2**31)], "d": [-1]}, ""),
     (helper.make_node("Tile", ["n", "d"], ["q"]), {"n": [0], "d": [1 << 40]}, "E4755"),
     (helper.make_node("Sum", ["n", "", "d"], ["q"]), {"n": [0.0], "d": [1.0]}, "E4752")],
)  # fmt: skip
def test_what_ends_a_kernel_does_not_end_calibration(node, constants, code):
    """What a run of a session bounds, guards or computes otherwise: onnxruntime alone ends the process."""
    kinds = {"Div": "int32", "Tile": "int64", "Sum": "float32"}
    tensors = [numpy_helper.from_array(np.array(v, kinds[node.op_type]), k) for k, v in constants.items()]
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="q")], tensors)
    runner = Runner(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    if not code:
        assert runner.run({})["q"].tolist() == [-(2**31)]
        return
    with pytest.raises(OnnxhwError) as caught:
        runner.run({})
    assert caught.value.code == code


def test_what_does_not_change_stays(make_net, draw):
    """Operator sets, IR version, metadata and the names of inputs and outputs."""
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv("x", 4, 3))
    onnx.helper.set_model_props(model, {"key": "value"})
    model.model_version = 7
    made = quantize(model.SerializeToString(), lambda: iter(draw(model))).model
    assert (made.ir_version, made.model_version) == (model.ir_version, 7)
    assert list(made.opset_import) == list(model.opset_import)
    assert [(prop.key, prop.value) for prop in made.metadata_props] == [("key", "value")]
    assert list(made.graph.input) == list(model.graph.input)
    assert [value.name for value in made.graph.output] == [value.name for value in model.graph.output]


def test_outputs_without_a_shape_get_the_one_that_onnx_infers(make_net, draw):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("Relu", net.conv("x", 4, 3)), shape=["N", 3, 8, 8])
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    made = quantize(model.SerializeToString(), lambda: iter(draw(model))).model
    dims = made.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value or dim.dim_param for dim in dims] == ["N", 4, 6, 6]
    onnx.checker.check_model(made, full_check=True)


def test_an_output_whose_rank_nobody_knows_stays_without_one(make_net, draw):
    net = make_net([1, 3, 8, 8])
    y = net.conv("x", 4, 3)
    sizes = net.add("Unique", net.constant(np.array([-1, -1])))
    model = net.model(y)
    model.graph.node.append(helper.make_node("Reshape", [y, sizes], ["flat"]))
    model.graph.output.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, None))
    del model.graph.value_info[:]
    feeds = draw(model)
    made = quantize(model.SerializeToString(), lambda: iter(feeds)).model
    assert not made.graph.output[1].type.tensor_type.HasField("shape")
    found = Runner(made).run(feeds[0])
    assert np.array_equal(found[y].ravel(), found["flat"])
