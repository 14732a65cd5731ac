"""What users of other accelerator generators complain about, continued: results, layout, operators, the way in."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxhw import emu, sched
from onnxhw.cli import main
from onnxhw.errors import InvalidModelError, UnsupportedError, UsageError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.graph import Conv
from onnxhw.partition import load, read
from onnxhw.program import container
from onnxhw.program.parts import Program
from onnxhw.runtime.session import InferenceSession

from .nets import MINI, Net, S, draw, json_of, program_of, run_golden, through, weights

# -- 19 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["golden", "emulator"])
def test_19_the_users_layout_is_the_files(device: str) -> None:
    """A tool wants channels last inside, and so the user's arrays come out transposed, or have to be given so."""
    net = Net((1, 5, 6, 3))
    x = net.node("Transpose", net.grid("x"), perm=[0, 3, 1, 2])
    y = net.grid(net.conv(x, weights(4, 3, 3, 3), strides=[1, 2]))
    model = net.model(net.node("Transpose", y, perm=[0, 2, 3, 1]))
    x = draw((1, 5, 6, 3))
    with InferenceSession(model, device=device, config=MINI) as session:
        assert session.get_inputs()[0].shape == [1, 5, 6, 3]
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
    with InferenceSession(model, device="emulator", config=MINI) as session:
        (found,) = session.run(None, {"x": draw((1, 8))})
    assert found.sum() == pytest.approx(1, abs=1e-6)
    # The product has no quantizer: its sums leave the hardware exactly, where float32 adds products that it rounds.
    np.testing.assert_allclose(found, next(iter(evaluate(model, {"x": draw((1, 8))}).values())), rtol=1e-6)


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
    for attributes in ({}, {"alpha": 0.5}):
        net = Net()
        model = net.model(net.grid(net.node("LeakyRelu", net.grid("x"), **attributes)))
        (found,) = run_golden(model, {"x": x}).values()
        np.testing.assert_array_equal(found, next(iter(evaluate(model, {"x": x}).values())))
        results.add(found.tobytes())
    assert len(results) == 7
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
    assert container.dumps(Program.of(sched.schedule(load(tmp_path / "m.onnx"), MINI))) == wanted

    script = (
        "import sys; from onnxhw.cli import main; main(sys.argv[1:]); "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    words = ["compile", str(tmp_path / "m.onnx"), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[-2].split())
    assert {"onnx", "onnxhw", "numpy"} <= loaded
    assert not loaded & {"tensorflow", "torch", "onnx2tf", "tf2onnx", "onnxsim", "onnxruntime", "tvm", "onnxoptimizer"}
