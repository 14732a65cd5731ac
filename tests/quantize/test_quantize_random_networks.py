"""Random networks of what a quantizer meets: mapped completely, equal to onnxruntime's kernels, close to float."""

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw import golden, partition
from onnxhw.ir.graph import Conv
from onnxhw.quantize import quantize

BLOCKS = (
    "conv", "depthwise", "pointwise", "stride", "normalization", "relu", "clip", "max pool", "average pool", "add",
    "concat", "scalar", "sigmoid", "channel factor", "gate",
)  # fmt: skip


def block(net, kind, x, channels, size, earlier):
    """Add one block; its result, channels and size. `earlier`: values of all shapes seen, by shape."""
    pads = {"pads": [1, 1, 1, 1]}
    same = earlier.get((channels, size), x)
    if kind == "conv":
        return net.conv(x, 6, channels, **pads), 6, size
    if kind == "depthwise":
        return net.conv(x, channels, 1, group=channels, bias=False, **pads), channels, size
    if kind == "pointwise":
        return net.conv(x, 5, channels, (1, 1)), 5, size
    if kind == "stride" and size >= 5:
        return net.conv(x, channels, channels, strides=[2, 2]), channels, (size - 3) // 2 + 1
    if kind == "normalization":
        return net.normalization(x, channels), channels, size
    if kind == "relu":
        return net.add("Relu", x), channels, size
    if kind == "clip":
        return net.add("Clip", x, net.constant(-0.5), net.constant(1.5)), channels, size
    if kind in ("max pool", "average pool") and size >= 4:
        op = "MaxPool" if kind == "max pool" else "AveragePool"
        return net.add(op, x, kernel_shape=[2, 2], strides=[2, 2]), channels, (size - 2) // 2 + 1
    if kind == "add":
        return net.add("Add", x, same), channels, size
    if kind == "concat" and channels < 12:
        return net.add("Concat", x, same, axis=1), 2 * channels, size
    if kind == "scalar":
        return net.add("Mul", net.constant(0.7), x), channels, size
    if kind == "sigmoid":
        return net.add("Sigmoid", x), channels, size
    if kind == "channel factor":
        return net.add("Mul", x, net.random(channels, 1, 1, shift=1.0)), channels, size
    if kind == "gate":
        return net.add("Mul", x, net.add("Sigmoid", net.add("GlobalAveragePool", x))), channels, size
    return net.conv(x, channels, channels, (1, 1)), channels, size


def network(make_net, kinds, seed, flat):
    """A network of these blocks, ending in a Gemm or a convolution."""
    net = make_net([1, 4, 9, 9], seed)
    x, channels, size = net.conv("x", 4, 4, pads=[1, 1, 1, 1]), 4, 9
    earlier = {}
    for kind in kinds:
        before = (channels, size), x
        x, channels, size = block(net, kind, x, channels, size, earlier)
        earlier[before[0]] = before[1]
    if flat:
        inputs = channels * size * size
        return net.model(net.add("Gemm", net.add("Flatten", x), net.random(3, inputs, scale=inputs**-0.5), transB=1))
    return net.model(net.conv(x, 3, channels, (1, 1)))


@settings(max_examples=25)
@given(
    kinds=st.lists(st.sampled_from(BLOCKS), max_size=7),
    seed=st.integers(0, 1000),
    flat=st.booleans(),
    method=st.sampled_from(["min-max", "percentile"]),
    correct=st.booleans(),
)
def test_a_random_network_becomes_one_integer_graph(make_net, draw, integer_kernel, kinds, seed, flat, method, correct):
    model = network(make_net, kinds, seed, flat)
    feeds = draw(model, 4)
    made = quantize(model.SerializeToString(), lambda: iter(feeds), method=method, bias_correction=correct)
    onnx.checker.check_model(made.model, full_check=True)
    assert made.report.host == ()
    graph = partition.load(made.bytes())
    for feed in feeds[:2]:
        tensors = golden.run(graph, golden.host.prepare(graph, feed))
        for op in graph.ops:
            if isinstance(op, Conv):
                kernel = integer_kernel(made.model, graph, op)
                wanted = np.clip(kernel(tensors[op.inputs[0]]), op.lo, op.hi)
                assert np.array_equal(tensors[op.output], wanted), op.name
    (snr,) = made.report.output_snr_db.values()
    if method == "min-max":
        assert snr is None or snr > 8  # seven blocks of noise, and differences of nearly equal values
