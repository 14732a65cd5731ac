"""What users of other accelerator generators complain about, one test each: it can't happen here.

The numbers are those of the list of recurring complaints that the requirements keep; each docstring has the pain in our
own words. Small models only: that the same holds for whole networks is shown by the tests of the parts involved.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxhw import emu, golden, sched
from onnxhw.cli import main
from onnxhw.config import preset
from onnxhw.errors import InvalidModelError, UnsupportedError, UsageError
from onnxhw.frontend import load, read
from onnxhw.frontend.hostrun import evaluate
from onnxhw.ir.graph import Conv
from onnxhw.ir.parts import HardwarePart, HostPart
from onnxhw.program import container
from onnxhw.session import InferenceSession

MINI = preset("mini")
QONNX = "qonnx.custom_op.general"
S = np.float32(0.125)
Array = npt.NDArray[Any]


class Net:
    """Nodes over constants; every quantized value is on the grid 0.125, 0."""

    def __init__(self, shape: Sequence[int] = (1, 4, 4, 4), name: str = "x") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))]

    def const(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op_type: str, *operands: Any, domain: str = "", output: str = "", **attributes: Any) -> str:
        names = [x if isinstance(x, str) else self.const(x) for x in operands]
        result = output or f"v{len(self.nodes)}"
        label = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, names, [result], name=label, domain=domain, **attributes))
        return result

    def grid(self, x: str, scale: Any = S, zero: int = 0) -> str:
        q = self.node("QuantizeLinear", x, np.float32(scale), np.int8(zero))
        return self.node("DequantizeLinear", q, np.float32(scale), np.int8(zero))

    def conv(self, x: str, weight: Array, scale: Any = S, **attributes: Any) -> str:
        return self.node("Conv", x, self.node("DequantizeLinear", weight, np.float32(scale), np.int8(0)), **attributes)

    def model(self, *outputs: str, opset: int = 17, ir: int = 8, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.constants)
        imports = [helper.make_opsetid("", opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in self.nodes} - {""})]
        return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def weights(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.int8)


def draw(shape: Sequence[int] = (1, 4, 4, 4), seed: int = 0) -> Array:
    return (np.random.default_rng(seed).integers(-140, 140, shape) / 8).astype(np.float32)


def through(*op_types: str, domain: str = "") -> onnx.ModelProto:
    """A convolution, some other operators, and a convolution again."""
    net = Net()
    x = net.grid(net.conv(net.grid("x"), weights(4, 4, 1, 1)))
    for op_type in op_types:
        x = net.grid(net.node(op_type, x, domain=domain))
    return net.model(net.grid(net.conv(x, weights(4, 4, 1, 1))))


def program_of(model: onnx.ModelProto) -> bytes:
    return container.dumps(sched.schedule(load(model.SerializeToString()), MINI))


def run_golden(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    """The hardware's integers: the model must be all hardware."""
    graph = load(model.SerializeToString())
    return golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))


def json_of(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> Any:
    assert main([*map(str, words), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)


# -- 1 -----------------------------------------------------------------------------------------------


def test_1_one_unsupported_operator_does_not_stop_the_rest() -> None:
    """The accelerator lacks a single operator, and nothing of the network runs. Here that node runs on the host."""
    model, x = through("Trilu"), draw()
    with InferenceSession(model, "emulator", config=MINI) as session:
        assert [type(part) for part in session.mixed.parts] == [HardwarePart, HostPart, HardwarePart]
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
    with InferenceSession(model, "emulator", config=MINI) as session:
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


# -- 19 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["golden", "emulator"])
def test_19_the_users_layout_is_the_files(device: str) -> None:
    """A tool wants channels last inside, and so the user's arrays come out transposed, or have to be given so."""
    net = Net((1, 5, 6, 3))
    x = net.node("Transpose", net.grid("x"), perm=[0, 3, 1, 2])
    y = net.grid(net.conv(x, weights(4, 3, 3, 3), strides=[1, 2]))
    model = net.model(net.node("Transpose", y, perm=[0, 2, 3, 1]))
    x = draw((1, 5, 6, 3))
    with InferenceSession(model, device, config=MINI) as session:
        assert session.get_inputs()[0].shape == (1, 5, 6, 3)
        (found,) = session.run(None, {"x": x})
        with pytest.raises(UsageError, match="E2503"):
            session.run(None, {"x": x.transpose(0, 3, 1, 2)})
    (wanted,) = evaluate(model, {"x": x}).values()
    assert found.shape == (1, 3, 2, 4)
    np.testing.assert_array_equal(found, wanted)


# -- 20 ----------------------------------------------------------------------------------------------


def test_20_an_unknown_operator_is_never_taken_for_another() -> None:
    """An operator that nobody implemented becomes a copy, and the results are wrong without a word."""
    model = through("Mystery", domain="some.vendor")
    mixed = read(model.SerializeToString())
    assert [row.op_type for row in mixed.refused] == ["Mystery"]
    with InferenceSession(model) as session, pytest.raises(UnsupportedError, match=r"E4401.*\n.*Mystery"):
        session.run(None, {"x": draw()})


def test_20_softmax_is_computed() -> None:
    """Softmax was such a copy."""
    net = Net((1, 8))
    model = net.model(net.node("Softmax", net.grid(net.node("MatMul", net.grid("x"), net.node(
        "DequantizeLinear", weights(8, 8), S, np.int8(0))))))  # fmt: skip
    with InferenceSession(model, "emulator", config=MINI) as session:
        (found,) = session.run(None, {"x": draw((1, 8))})
    assert found.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(found, next(iter(evaluate(model, {"x": draw((1, 8))}).values())))


def test_20_no_attribute_is_ignored() -> None:
    """A parameter that the tool does not know has no effect. Here each changes the result or is an error."""
    x, results = draw(), set()
    for attributes in (
        {},
        {"pads": [1, 0, 0, 0]},
        {"strides": [2, 1]},
        {"dilations": [1, 2]},
        {"auto_pad": "SAME_LOWER"},
    ):
        net = Net()
        model = net.model(net.grid(net.conv(net.grid("x"), weights(4, 4, 2, 2), **attributes)))
        (found,) = run_golden(model, {"x": x}).values()
        np.testing.assert_array_equal(found, next(iter(evaluate(model, {"x": x}).values())))
        results.add(found.tobytes())
    assert len(results) == 5
    net = Net()
    with pytest.raises(InvalidModelError, match="stride_h"):
        read(net.model(net.grid(net.conv(net.grid("x"), weights(4, 4, 1, 1), stride_h=2))).SerializeToString())


def test_20_one_wrong_value_is_an_exit_status(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody compared the accelerator with the model. Here `simulate` does, and one element is enough."""
    folder = tmp_path / "out"
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(folder), "-q"]) == 0
    right = emu.emulator.Emulator.run

    def wrong(self: Any, *arguments: Any, **options: Any) -> Any:
        result = right(self, *arguments, **options)
        name = next(iter(result.outputs))
        result.outputs[name] = result.outputs[name].copy()
        result.outputs[name].flat[-1] ^= 1
        return result

    monkeypatch.setattr(emu.emulator.Emulator, "run", wrong)
    capsys.readouterr()
    record = json_of(capsys, "simulate", folder, "-e", "emulator", status=8)
    assert record["first_difference"]["different"] == 1


# -- 21 ----------------------------------------------------------------------------------------------


def test_21_every_node_on_the_host_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts of the network end up on the processor, and no log says which node, why, or what to do."""
    path = tmp_path / "model.onnx"
    model = through("Trilu", "Hardmax", "LpNormalization")
    path.write_bytes(model.SerializeToString())
    record = json_of(capsys, "check", path, "--preset", "mini")
    rows = record["placement"]
    assert [row["node"] for row in rows] == [node.name for node in model.graph.node]
    assert sum(record["nodes"].values()) == len(rows)
    named = {row["op_type"]: row for row in rows if row["where"] == "host"}
    assert {"Trilu", "Hardmax", "LpNormalization"} <= set(named)
    for row in named.values():
        assert row["part"] is not None
        if row["op_type"] not in ("QuantizeLinear", "DequantizeLinear"):
            assert row["code"] == "E4001"
            assert len(row["reason"]) > 10
            assert row["hint"]
    assert main(["check", str(path), "--preset", "mini"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("Trilu_", "Hardmax_", "LpNormalization_"))


# -- 24 ----------------------------------------------------------------------------------------------


def test_24_the_file_is_read_without_a_chain_of_converters(tmp_path: Path) -> None:
    """ONNX is turned into another format first, by a tool whose next release gives another network."""
    net = Net()
    w0, w1 = weights(4, 4, 3, 3), weights(2, 4, 1, 1, seed=4)
    a = net.grid(net.conv(net.grid("x"), w0, pads=[1] * 4))
    model = net.model(net.grid(net.conv(net.grid(net.node("Relu", a)), w1)), net.grid(net.node("Neg", a)))
    graph = load(model.SerializeToString())
    found = [op.weight for op in graph.ops if isinstance(op, Conv)]
    assert [weight.tobytes() for weight in found] == [w0.tobytes(), w1.tobytes()]

    wanted = program_of(model)
    inferred = onnx.shape_inference.infer_shapes(model)
    assert program_of(inferred) == wanted
    reversed_constants = onnx.ModelProto.FromString(model.SerializeToString())
    del reversed_constants.graph.initializer[:]
    reversed_constants.graph.initializer.extend(model.graph.initializer[::-1])
    assert program_of(reversed_constants) == wanted
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
    assert container.dumps(sched.schedule(load(tmp_path / "m.onnx"), MINI)) == wanted

    script = (
        "import sys; from onnxhw.cli import main; main(sys.argv[1:]); "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    words = ["compile", str(tmp_path / "m.onnx"), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[-2].split())
    assert {"onnx", "onnxhw", "numpy"} <= loaded
    assert not loaded & {"tensorflow", "torch", "onnx2tf", "tf2onnx", "onnxsim", "onnxruntime", "tvm", "onnxoptimizer"}
