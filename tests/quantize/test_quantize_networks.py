"""Every kind of network: mapped completely, close to float, golden equal to onnxruntime's integer kernels."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxhw import golden, partition, sched
from onnxhw.emu import Emulator
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.graph import Conv
from onnxhw.presets import PRESETS
from onnxhw.quantize import METHODS, quantize
from onnxhw.quantize.runner import Runner

FLOOR_DB = 20
"""8 bits per value and a few layers of random weights keep more than this; a wrong scale or bias keeps less than 10."""


def results(graph, feeds):
    """The golden model's outputs by name, one row for each feed."""
    found = [golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feed))) for feed in feeds]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def snr_db(wanted, found):
    """Signal-to-noise ratio."""
    return 10 * np.log10((wanted**2).sum() / ((wanted - found) ** 2).sum())


@pytest.mark.parametrize("method", METHODS)
def test_every_network_is_mapped_and_close_to_float(net, draw, method):
    feeds = draw(net)
    made = quantize(net.SerializeToString(), lambda: iter(feeds), method=method)
    onnx.checker.check_model(made.model, full_check=True)
    graph = partition.load(made.bytes())
    found = results(graph, feeds)
    for value in net.graph.output:
        wanted = np.stack([evaluate(net, feed)[value.name] for feed in feeds])
        floor = FLOOR_DB if method == "min-max" else 10  # the others cut what is rare, and a dozen samples are few
        assert snr_db(wanted, found[value.name]) > floor
        assert found[value.name].shape == wanted.shape


def test_golden_is_equal_to_onnxruntimes_integer_kernel(net, draw, integer_kernel):
    feeds = draw(net)
    made = quantize(net.SerializeToString(), lambda: iter(feeds))
    graph = partition.load(made.bytes())
    convolutions = [op for op in graph.ops if isinstance(op, Conv)]
    assert convolutions
    for op in convolutions:
        shape = graph.tensors[op.inputs[0]].shape
        rng = np.random.default_rng(3)
        operands = [rng.integers(-128, 128, shape).astype(np.int8), *(np.full(shape, q, np.int8) for q in (-128, 127))]
        operands += [golden.run(graph, golden.host.prepare(graph, feed))[op.inputs[0]] for feed in feeds]
        kernel = integer_kernel(made.model, graph, op)
        for x in operands:
            ours = golden.evaluate(graph, op, {op.inputs[0]: x})
            assert np.array_equal(ours, np.clip(kernel(x), op.lo, op.hi)), op.name


def test_every_network_is_scheduled_and_the_emulator_agrees(net, draw):
    """Scales are such that constants of the hardware exist for every channel, dead ones too."""
    feeds = draw(net)
    graph = partition.load(quantize(net.SerializeToString(), lambda: iter(feeds)).bytes())
    emulator = Emulator(sched.schedule(graph, PRESETS["mini"]))
    for feed in feeds[:2]:
        inputs = golden.host.prepare(graph, feed)
        wanted = golden.run(graph, inputs)
        for name, values in emulator.run(inputs, trace=True).tensors.items():
            assert np.array_equal(values, wanted[name]), name


def test_the_noise_reported_is_that_of_the_outputs(net, draw):
    feeds = draw(net)
    made = quantize(net.SerializeToString(), lambda: iter(feeds))
    runs = Runner(net), Runner(made.model)
    for name, reported in made.report.output_snr_db.items():
        wanted, found = (np.stack([run.run(feed)[name] for feed in feeds]).astype(np.float64) for run in runs)
        # onnxruntime adds the original and the folded network up in different orders
        assert reported == pytest.approx(snr_db(wanted, found), rel=1e-3)


@pytest.mark.parametrize("correct", [False, True])
def test_bias_correction_leaves_no_mean_error(make_net, draw, correct):
    """After it the mean error of each channel is at most what rounding the bias leaves."""
    net = make_net([1, 3, 8, 8])
    y = net.add("Relu", net.conv("x", 6, 3))
    model = net.model(net.conv(net.add("Add", net.conv(y, 6, 6, (1, 1)), y), 4, 6))
    feeds = draw(model)
    made = quantize(model.SerializeToString(), lambda: iter(feeds), method="entropy", bias_correction=correct).model
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    makers = {name: node for node in made.graph.node for name in node.output}
    worst = []
    for node in model.graph.node:
        if node.op_type == "Conv":
            other = next(one for one in made.graph.node if one.name == node.name)
            float_run, integer_run = Runner(model, [node.output[0]]), Runner(made, [other.output[0]])
            error = np.mean(
                [float_run.run(f)[node.output[0]] - integer_run.run(f)[other.output[0]] for f in feeds],
                axis=(0, 1, 3, 4),
            )
            worst.append((np.abs(error) / arrays[makers[other.input[2]].input[1]]).max())
    assert len(worst) == 3
    assert (max(worst) < 0.6) == correct  # half a step of the bias, and float32's noise


def test_the_same_inputs_give_the_same_bytes(net, draw):
    feeds = draw(net)
    first, second = (quantize(net.SerializeToString(), lambda: iter(feeds)).bytes() for _ in range(2))
    assert first == second
