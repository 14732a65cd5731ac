"""Batches in sessions: N samples give what onnx's reference gives for N, whether they run one by one or not."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from onnxhw.cli import main
from onnxhw.errors import UsageError
from onnxhw.presets import preset
from onnxhw.runtime.session import InferenceSession

Batch = int | str
CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.125),
    "z": np.int8(0),
    "w": np.arange(-8, 8, dtype=np.int8).reshape(4, 4, 1, 1),
    "c": (np.arange(4, dtype=np.float32) / 8).reshape(4, 1, 1),
    "axis0": np.array(0, np.int64),
    "axis1": np.array(1, np.int64),
    "first": np.array([0], np.int64),
    "pixels": np.array([2, 3], np.int64),
}
"""Scales are powers of two and sums are small, so float32 is exact and the reference and the hardware agree."""


class Net:
    """Nodes that follow one another from the input `x` ``[N, 4, 2, 2]``, quantized after each step."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.nodes: list[onnx.NodeProto] = []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4, 2, 2])]
        self.constants = dict(CONSTANTS)

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op_type}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def grid(self, x: str) -> str:
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, "s", "z"), "s", "z")

    def step(self, kind: str, x: str) -> str:
        """A quantized step; those of `MIXING` let samples meet."""
        if kind == "Conv":
            y = self.node("Conv", x, self.node("DequantizeLinear", "w", "s", "z"))
        elif kind in ("Relu", "Neg"):
            y = self.node(kind, x)
        elif kind == "Twice":
            y = self.node("Add", x, x)
        elif kind == "Bias":
            y = self.node("Add", x, self.grid("c"))
        elif kind == "Pool":
            y = self.node("ReduceMean", x, "pixels", keepdims=1)
        elif kind == "Hardmax":
            y = self.node("Hardmax", x, axis=1)
        elif kind == "Hardmax over samples":
            y = self.node("Hardmax", x, axis=0)
        elif kind == "Transpose":
            y = self.node("Transpose", x, perm=[0, 1, 3, 2])
        elif kind == "Running sum":
            y = self.node("CumSum", x, "axis0")
        elif kind == "Channels' running sum":
            y = self.node("CumSum", x, "axis1")
        elif kind == "First sample":
            y = self.node("Gather", x, "first", axis=0)
        elif kind in ("ReduceMax", "ReduceMin"):
            y = self.node(kind, x, "first", keepdims=1)
        else:
            y = self.node("ReduceMean", x, "first", keepdims=1)
        return self.grid(y)

    def model(self, *outputs: str) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


APART = ("Conv", "Relu", "Neg", "Twice", "Bias", "Pool", "Hardmax", "Transpose", "Channels' running sum")
MIXING = ("Hardmax over samples", "Running sum", "First sample", "ReduceMax", "ReduceMin", "Mean over samples")


def net(batch: Batch, steps: tuple[str, ...]) -> onnx.ModelProto:
    made = Net(batch)
    x = made.grid("x")
    for kind in steps:
        x = made.step(kind, x)
    return made.model(x)


def draw(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(seed).integers(-140, 140, (count, 4, 2, 2)) / 8).astype(np.float32)


def reference(model: onnx.ModelProto, **feeds: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    with np.errstate(all="ignore"):
        results: list[np.ndarray[Any, Any]] = ReferenceEvaluator(model).run(None, feeds)
    return results


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "Mean over samples"])
@pytest.mark.parametrize("device", ["golden", "emulator"])
def test_what_is_free_at_batch_1_is_not_at_batch_2(kind: str, device: str) -> None:
    model = net("N", ("Relu", kind))
    with InferenceSession(model, device=device, config=preset("mini")) as session:
        assert len(session.model.hardware) == 1
        for count in (2, 1, 3):
            x = draw(count)
            (got,), (wanted,) = session.run(None, {"x": x}), reference(model, x=x)
            assert got.shape == (1, 4, 2, 2)
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("steps", [("Relu",), ("Conv", "Hardmax", "Pool"), ("Relu", "Hardmax over samples")])
@pytest.mark.parametrize("device", ["golden", "emulator"])
def test_no_samples_give_no_rows(steps: tuple[str, ...], device: str) -> None:
    model = net("N", steps)
    with InferenceSession(model, device=device, config=preset("mini")) as session:
        (one,) = session.run(None, {"x": draw(1)})
        (none,) = session.run(None, {"x": draw(0)})
        assert (none.shape, none.dtype) == ((0, *one.shape[1:]), one.dtype)
        assert session.cycles == 0
        np.testing.assert_array_equal(session.run(None, {"x": draw(2)})[0], reference(model, x=draw(2))[0])
    with pytest.raises(UsageError, match=r"E2503.*'x' must have shape \[1, 4, 2, 2\], not \[0"):
        InferenceSession(net(1, steps)).run(None, {"x": draw(0)})


def test_hardware_stays_in_use_beside_host_nodes_that_keep_samples_apart() -> None:
    model = net("N", ("Conv", "Hardmax", "Bias"))
    with InferenceSession(model, device="emulator", config=preset("mini")) as session:
        assert len(session.model.host) == 1
        x = draw(3)
        (got,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(got, reference(model, x=x)[0])
        assert session.program is not None
        assert session.cycles == 3 * session.program.cycles
    mixing = InferenceSession(net("N", ("Conv", "Hardmax over samples", "Bias"))).model.batch
    assert mixing is not None
    assert "along axis 0" in mixing.mixing


def test_a_fixed_batch_runs_on_the_hardware() -> None:
    made = Net(3)
    made.constants["flat"] = np.array([3, -1], np.int64)
    made.constants["back"] = np.array([3, 4, 2, 2], np.int64)
    x = made.step("Conv", made.node("Reshape", made.node("Reshape", made.grid("x"), "flat"), "back"))
    pooled = made.node("Reshape", made.step("Pool", x), "flat")
    model = made.model(x, pooled)
    with InferenceSession(model, device="emulator", config=preset("mini")) as session:
        assert session.model.batch is not None
        assert session.model.batch.size == 3
        assert not session.model.host
        assert [value.shape for value in session.get_inputs()] == [[3, 4, 2, 2]]
        assert [value.shape for value in session.get_outputs()] == [[3, 4, 2, 2], [3, 4]]
        for got, wanted in zip(session.run(None, {"x": draw(3)}), reference(model, x=draw(3)), strict=True):
            np.testing.assert_array_equal(got, wanted)
        assert session.program is not None
        assert session.cycles == 3 * session.program.cycles
        for count in (1, 2, 6):
            with pytest.raises(UsageError, match=r"E2503.*\[3, 4, 2, 2\], not .*batch is fixed: 3"):
                session.run(None, {"x": draw(count)})


def test_a_fixed_batch_whose_samples_meet_is_whole_on_the_host() -> None:
    model = net(3, ("Conv", "Running sum"))
    session = InferenceSession(model)
    assert session.model.batch is None
    assert not session.model.hardware
    assert [found.code for found in session.model.diagnostics if found.code.startswith("W34")] == ["W3401"]
    np.testing.assert_array_equal(session.run(None, {"x": draw(3)})[0], reference(model, x=draw(3))[0])


def test_an_open_batch_that_is_given_a_size_runs_on_the_hardware() -> None:
    session = InferenceSession(net("N", ("Conv",)), shapes={"N": 2})
    assert len(session.model.hardware) == 1
    np.testing.assert_array_equal(session.run(None, {"x": draw(2)})[0], reference(net("N", ("Conv",)), x=draw(2))[0])


@pytest.mark.parametrize("batch", ["N", 2])
def test_outputs_that_are_the_same_for_all_samples_are_there_once(batch: Batch) -> None:
    made = Net(batch)
    model = made.model(made.step("Relu", made.grid("x")), made.node("Neg", "c"))
    got = InferenceSession(model).run(None, {"x": draw(2)})
    for one, wanted in zip(got, reference(model, x=draw(2)), strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("batch", ["N", 2])
def test_an_input_of_batch_1_goes_with_every_sample(batch: Batch) -> None:
    made = Net(batch)
    made.inputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 2, 2]))
    model = made.model(made.grid(made.node("Add", made.grid("x"), made.grid("y"))))
    session = InferenceSession(model)
    assert session.model.batch is not None
    assert session.model.batch.inputs == {"x"}
    assert len(session.model.hardware) == 1
    x, y = draw(2), draw(1, 1)
    np.testing.assert_array_equal(session.run(None, {"x": x, "y": y})[0], reference(model, x=x, y=y)[0])
    with pytest.raises(UsageError, match=r"E2503.*'y' must have shape \[1, 4, 2, 2\]"):
        session.run(None, {"x": x, "y": x})


def test_open_inputs_of_different_sizes_are_placed_as_they_are_fed() -> None:
    made = Net("N")
    made.inputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["M", 4, 2, 2]))
    model = made.model(made.grid(made.node("Add", made.grid("x"), made.grid("y"))))
    session = InferenceSession(model)
    for counts in ((2, 2), (2, 1), (1, 3), (1, 1)):
        x, y = draw(counts[0]), draw(counts[1], 1)
        np.testing.assert_array_equal(session.run(None, {"x": x, "y": y})[0], reference(model, x=x, y=y)[0])


def test_an_initializer_that_is_fed_is_looked_at_anew() -> None:
    """The axis of a reduction decides; with another one samples meet."""
    made = Net("N")
    made.inputs.append(helper.make_tensor_value_info("axis1", TensorProto.INT64, []))
    model = made.model(made.grid(made.node("CumSum", made.grid("x"), "axis1")))
    session = InferenceSession(model)
    for axis in (1, 0):
        feeds = {"x": draw(3), "axis1": np.array(axis, np.int64)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], reference(model, **feeds)[0])


def test_a_compiled_program_refuses_samples_that_may_meet(tmp_path: Path) -> None:
    for name, steps in (("mixing", ("ReduceMax",)), ("apart", ("Relu",))):
        (tmp_path / f"{name}.onnx").write_bytes(net("N", steps).SerializeToString())
        assert main(["compile", f"{tmp_path}/{name}.onnx", "-p", "mini", "-o", f"{tmp_path}/{name}", "-q"]) == 0
    with InferenceSession(tmp_path / "mixing", device="emulator") as session:
        assert session.run(None, {"x": draw(1)})[0].shape == (1, 4, 2, 2)
        with pytest.raises(UsageError, match=r"E2506.*2 samples are not 2 inferences.*it reduces axis 0"):
            session.run(None, {"x": draw(2)})
    with InferenceSession(tmp_path / "apart", device="emulator") as session:
        assert session.run(None, {"x": draw(2)})[0].shape == (2, 4, 2, 2)


@given(
    steps=st.lists(st.sampled_from(APART + MIXING), min_size=1, max_size=4).map(tuple),
    fixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_random_networks_mean_what_the_reference_says(steps: tuple[str, ...], fixed: bool, seed: int) -> None:
    session = None if fixed else InferenceSession(net("N", steps))
    for count in (1, 2, 3):
        model = net(count if fixed else "N", steps)
        x = draw(count, seed)
        (got,) = (session or InferenceSession(model)).run(None, {"x": x})
        (wanted,) = reference(model, x=x)
        assert got.shape == wanted.shape
        np.testing.assert_array_equal(got, wanted)
    apart = not set(steps) & set(MIXING)
    if session is not None and session.model.batch is not None:
        assert (not session.model.batch.mixing) == apart
