"""What users of other accelerator generators complain about, one test each: it can't happen here.

The numbers are those of the list of recurring complaints that the requirements keep; each docstring has the pain in our
own words. Small models only: that the same holds for whole networks is shown by the tests of the parts involved.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from onnxhw import emu, golden, sched
from onnxhw.cli import main
from onnxhw.errors import UnsupportedError, UsageError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.parts import HardwarePart, HostPart
from onnxhw.partition import load, read
from onnxhw.presets import preset
from onnxhw.runtime.session import InferenceSession

from .nets import MINI, QONNX, Net, S, draw, program_of, run_golden, through, weights

# -- 1 -----------------------------------------------------------------------------------------------


def test_1_one_unsupported_operator_does_not_stop_the_rest() -> None:
    """The accelerator lacks a single operator, and nothing of the network runs. Here that node runs on the host."""
    model, x = through("Trilu"), draw()
    with InferenceSession(model, device="emulator", config=MINI) as session:
        assert [type(part) for part in session.model.parts] == [HardwarePart, HostPart, HardwarePart]
        (found,) = session.run(None, {"x": x})
    (wanted,) = evaluate(model, {"x": x}).values()
    np.testing.assert_array_equal(found, wanted)


def test_1_all_blockers_are_told_at_once() -> None:
    """Mend one blocker, compile again, meet the next. Here one message names every node that is in the way."""
    model = through("Trilu", "Hardmax", "LpNormalization")
    with pytest.raises(UnsupportedError) as caught:
        load(model.SerializeToString())
    assert [name for name in ("Trilu", "Hardmax", "LpNormalization") if f"({name})" not in caught.value.text()] == []


# -- 2 -----------------------------------------------------------------------------------------------


def layer(dialect: str) -> onnx.ModelProto:
    """One convolution with Relu, as each way of writing quantized ONNX has it."""
    net, w = Net(), weights(3, 4, 1, 1)
    top = np.float32(127 * S)
    if dialect == "QONNX":
        zero, eight = np.float32(0), np.float32(8)
        x = net.node("Quant", "x", S, zero, eight, domain=QONNX, signed=1, narrow=0, rounding_mode="ROUND")
        real = (w * S).astype(np.float32)
        kernel = net.node("Quant", real, S, zero, eight, domain=QONNX, signed=1, narrow=0, rounding_mode="ROUND")
        y = net.node("Relu", net.node("Conv", x, kernel))
        return net.model(net.node("Quant", y, S, zero, eight, domain=QONNX, signed=1, narrow=0, rounding_mode="ROUND"))
    if dialect == "QOperator":
        x = net.node("QuantizeLinear", "x", S, np.int8(0))
        y = net.node("QLinearConv", x, S, np.int8(0), w, S, np.int8(0), S, np.int8(0))
        return net.model(net.node("DequantizeLinear", net.node("Relu", y), S, np.int8(0)), opset=17)
    y = net.conv(net.grid("x"), w)
    if dialect == "QCDQ":
        q = net.node("QuantizeLinear", y, S, np.int8(0))
        return net.model(net.node("DequantizeLinear", net.node("Clip", q, np.int8(0), np.int8(127)), S, np.int8(0)))
    return net.model(net.grid(net.node("Clip", y, np.float32(0), top)))


@pytest.mark.parametrize("dialect", ["QDQ", "QCDQ", "QOperator", "QONNX"])
def test_2_every_common_form_of_quantized_onnx_is_taken(dialect: str) -> None:
    """A tool wants its own dialect and refuses what exporters write. Here four of them mean the same integers."""
    x = draw()
    (found,) = run_golden(layer(dialect), {"x": x}).values()
    q = np.clip(np.rint(x / S), -128, 127).astype(int)
    sums = np.einsum("oi,nihw->nohw", weights(3, 4, 1, 1)[:, :, 0, 0].astype(int), q)
    wanted = np.clip(np.rint(sums * float(S)), 0, 127) * S
    np.testing.assert_array_equal(found, wanted.astype(np.float32))
    assert len(np.unique(found)) > 10


# -- 3 -----------------------------------------------------------------------------------------------


def test_3_every_operator_set_since_quantization_gives_the_same_program() -> None:
    """A release of the exporter raises the operator set, and the tool no longer reads the model."""
    net = Net()
    y = net.grid(net.conv(net.grid("x"), weights(4, 4, 3, 3), pads=[1, 1, 1, 1]))
    name = net.grid(net.node("MaxPool", y, kernel_shape=[2, 2]))
    newest = onnx.defs.onnx_opset_version()
    programs = {program_of(net.model(name, opset=opset, ir=8)) for opset in range(10, newest + 1)}
    assert len(programs) == 1
    irs = range(3, helper.VERSION_TABLE[-1][1] + 1)
    net.inputs += [  # before IR version 4 every initializer is an input, too
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in net.constants
    ]
    assert read(net.model(name, ir=3).SerializeToString()).hardware
    del net.inputs[1:]
    assert {program_of(net.model(name, ir=version)) for version in irs if version > 3} == programs


# -- 4 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "end"), [("serving_default_x:0", "Identity:0"), ("a/b.c", "1"), ("input 1", "größe"), ("x", "x_")]
)
def test_4_names_are_those_of_the_file(entry: str, end: str, tmp_path: Path) -> None:
    """A name with a colon, a slash or a digit in front is mangled on the way, and then not found."""
    net = Net(name=entry)
    y = net.grid(net.conv(net.grid(entry), weights(4, 4, 1, 1)))
    net.node("Relu", y, output=end)
    model, x = net.model(end), draw()
    (wanted,) = evaluate(model, {entry: x}).values()
    with InferenceSession(model, device="emulator", config=MINI) as session:
        assert [value.name for value in session.get_inputs()] == [entry]
        assert [value.name for value in session.get_outputs()] == [end]
        np.testing.assert_array_equal(session.run([end], {entry: x})[0], wanted)
        with pytest.raises(UsageError) as caught:
            session.run(["Identity"], {entry: x})
        assert end in caught.value.hint
        with pytest.raises(UsageError) as caught:
            session.run(None, {"serving_default": x})
        assert entry in caught.value.hint
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert main(["compile", str(tmp_path / "m.onnx"), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]) == 0


# -- 6 -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9))
def test_6_no_partition_waits_for_itself(steps: list[tuple[int, int, int]]) -> None:
    """Hardware nodes around a host node are put into one partition, which then needs its own result."""
    net = Net()
    values = [net.grid("x")]
    for kind, first, second in [*steps, (3, -1, 0), (1, -1, -1), (3, -1, 0)]:
        x, other = values[first % len(values)], values[second % len(values)]
        if kind == 0:
            y = net.conv(x, weights(4, 4, 1, 1))
        else:
            y = net.node("Trilu", x) if kind == 1 else net.node("Add", x, other)
        values.append(net.grid(y))
    model, x = net.model(*values[-3:]), draw()
    mixed = read(model.SerializeToString())
    known = {value.name for value in mixed.inputs}
    for part in mixed.parts:
        assert set(part.inputs) <= known
        known |= set(part.outputs)
    assert {value.name for value in mixed.outputs} <= known
    assert len(mixed.parts) >= 3
    with InferenceSession(model) as session:
        found = session.run(None, {"x": x})
    for wanted, got in zip(evaluate(model, {"x": x}).values(), found, strict=True):
        np.testing.assert_array_equal(got, wanted)


# -- 12 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scales", [(0.0311, 0.0071, 0.9), (1 / 3, 1 / 7, 97.0), (2.0**-7, 2.0**-5, 2.0**-1)])
def test_12_no_precision_is_lost_inside(scales: tuple[float, float, float]) -> None:
    """Sums are kept in too few bits, or scales rounded to powers of two. Here sums are exact and saturate at the end.

    The reference is computed with Python's integers and fractions of a float32, by the formula of the page on numerics.
    """
    sx, sw, sy = (np.float32(s) for s in scales)
    net = Net((1, 512, 1, 1))
    rng = np.random.default_rng(1)
    w = rng.choice([-128, -127, 126, 127, 1], (6, 512, 1, 1)).astype(np.int8)
    w[0], w[1] = 127, -128
    y = net.grid(net.conv(net.grid("x", sx, -128), w, sw), sy, 5)
    model = net.model(y)
    q = rng.choice([-128, 127, 126], (1, 512, 1, 1))
    q[0, :500] = 127
    x = ((q + 128) * sx).astype(np.float32)
    graph = load(model.SerializeToString())
    values = golden.host.prepare(graph, {"x": x})
    np.testing.assert_array_equal(next(iter(values.values())), q)
    sums = [sum(int(a) * (int(b) + 128) for a, b in zip(row, q.reshape(-1), strict=True)) for row in w.reshape(6, 512)]
    assert max(map(abs, sums)) > 1 << 23
    factor = np.float32(np.float32(sx * sw) / sy)
    wanted = [int(np.clip(np.rint(np.float32(np.float32(s) * factor)), -133, 122)) + 5 for s in sums]
    tensors = golden.run(graph, values)
    assert tensors[graph.ops[-1].output].reshape(-1).tolist() == wanted
    program = sched.schedule(graph, preset("ulx3s-85f"))
    traced = emu.run(program, values, trace=True).tensors
    assert traced[graph.ops[-1].output].reshape(-1).tolist() == wanted


def test_12_sums_that_may_overflow_are_refused() -> None:
    """Accumulators wrap silently. Here a program is only made if no sum can leave them."""
    net = Net((1, 1024, 1, 1))
    x = net.grid("x")
    model = net.model(net.grid(net.conv(x, np.full((2, 1024, 1, 1), 127, np.int8))))
    graph = load(model.SerializeToString())
    with pytest.raises(UnsupportedError, match=r"E4301.*beyond 24 bits"):
        sched.schedule(graph, MINI)
    assert sched.schedule(graph, preset("ulx3s-85f")).cycles
