"""Pairs of an output and an input by name: what becomes a state, and what is refused, with which code."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from streaming_models import OLD, SCALE, STATE, stream, temporal

import onnxhw
from onnxhw.compiler import compile
from onnxhw.compiler.states import StatePair, states_of
from onnxhw.errors import UsageError
from onnxhw.partition import read
from onnxhw.presets import preset
from onnxhw.program.model import DeviceProgram

MINI = preset("mini+sdram")
PAIR = StatePair(STATE, OLD)


def refused(model: onnx.ModelProto, *pairs: StatePair) -> str:
    """The code, and what is said, of a model with these pairs; compile and the golden model say the same."""
    with pytest.raises(UsageError) as caught:
        compile(model.SerializeToString(), MINI, persist=pairs)
    with pytest.raises(UsageError) as again:
        onnxhw.InferenceSession(model.SerializeToString(), persist=pairs)
    assert again.value.code == caught.value.code
    return f"{caught.value.code} {caught.value.what}"


def device_program(model: onnx.ModelProto, *pairs: StatePair) -> DeviceProgram:
    return compile(model.SerializeToString(), MINI, persist=pairs).only()


def by_hand(model: onnx.ModelProto, frames: Any, old: Any) -> np.ndarray:
    """What a host gets that sends the state itself."""
    session, found = onnxhw.InferenceSession(model.SerializeToString()), []
    for one in frames:
        y, old = session.run(["y", STATE], {"x": one[None], OLD: old})
        found.append(y)
    return np.concatenate(found)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("device", ["golden", "emulator", "emu:mini+sdram"])
def test_a_session_gives_what_a_host_gets_that_feeds_the_state_back(device: str, unsigned: bool) -> None:
    model, frames = temporal(unsigned=unsigned), stream(5)
    old = stream(2, 7).reshape(1, 4, 2, 8)
    hardware = {} if device == "golden" else {"config": MINI}
    for initial in (None, old):
        pair = StatePair(STATE, OLD, initial)
        wanted = by_hand(model, frames, np.zeros_like(old) if initial is None else initial)
        with onnxhw.InferenceSession(model.SerializeToString(), device=device, persist=[pair], **hardware) as session:
            assert [[each.name for each in names] for names in (session.get_inputs(), session.get_outputs())] == [
                ["x"], ["y"]
            ]  # fmt: skip
            for _ in range(2):
                one, others = session.run(None, {"x": frames[:2]})[0], session.run(None, {"x": frames[2:]})[0]
                assert np.array_equal(np.concatenate([one, others]), wanted)
                session.clear_state()


def test_a_model_that_fits_the_chip_is_in_segments_all_the_same() -> None:
    program = device_program(temporal(), PAIR)
    assert program.in_segments
    assert [port.name for port in (*program.inputs, *program.outputs)] == ["x", "y"]
    assert not device_program(temporal()).in_segments


def test_the_initial_value_is_real_zero_or_what_is_given() -> None:
    (state,) = device_program(temporal(unsigned=True), PAIR).states
    assert (state.initial == 0).all()  # 128 as it was
    old = np.arange(64, dtype=np.float64).reshape(1, 4, 2, 8) * SCALE - 3
    (state,) = device_program(temporal(), StatePair(STATE, OLD, old)).states
    assert np.array_equal(state.initial, np.arange(64).reshape(1, 4, 2, 8) - 24)
    for wrong in (old[:, :3], old[0], old.astype(np.int64)):
        assert "E2576" in refused(temporal(), StatePair(STATE, OLD, wrong))
    assert "NaN" in refused(temporal(), StatePair(STATE, OLD, np.full_like(old, np.nan)))


def test_shape_type_and_quantization_must_be_equal() -> None:
    assert refused(temporal(frames=1), PAIR).startswith("E2572")
    assert "[1, 3, 2, 8] and [1, 4, 2, 8]" in refused(temporal(channels=3), PAIR)
    assert "scale 0.25 and zero point 0, scale 0.125 and 0" in refused(temporal(out_scale=2 * SCALE), PAIR)
    assert refused(temporal(out_zero=1), PAIR).startswith("E2574")
    assert "E2575 output 'kept' cannot be the next run's input 'old': the host computes Relu" in refused(
        temporal(relu=True), PAIR
    )
    model = temporal()
    raw = next(node for node in model.graph.node if node.output[0] == STATE)
    model.graph.node.remove(raw)
    model.graph.output[-1].CopyFrom(onnx.helper.make_tensor_value_info(STATE, onnx.TensorProto.INT8, [1, 4, 2, 8]))
    next(node for node in model.graph.node if node.output[0] == raw.input[0]).output[0] = STATE
    assert "E2573 output 'kept' cannot be the next run's input 'old': their element types differ: int8 and float32" in (
        refused(model, PAIR)
    )


def test_names() -> None:
    model = temporal()
    assert "E2570 the model has no output 'z'" in refused(model, StatePair("z", OLD))
    assert "E2570 the model has no input 'z'" in refused(model, StatePair(STATE, "z"))
    assert "E2570 output 'kept' is named twice" in refused(model, PAIR, StatePair(STATE, "x"))
    assert "E2570 input 'old' is named twice" in refused(model, PAIR, StatePair("y", OLD))
    assert "E2570 all outputs are states" in refused(temporal(head=False), PAIR)


def test_what_the_host_has_a_part_in_is_refused() -> None:
    """A node on the host that reads the state; several parts; and a model of which nothing is on the hardware."""
    model = temporal()
    model.graph.node.append(onnx.helper.make_node("Erf", [OLD], ["seen"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("seen", onnx.TensorProto.FLOAT, [1, 4, 2, 8]))
    assert "E2575 output 'kept' cannot be the next run's input 'old': the host computes a part" in refused(model, PAIR)
    assert "the hardware has 2 parts" in refused(temporal(again=True), PAIR)
    shape = [1, 4, 2, 8]
    raw = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Tanh", [OLD], [STATE]), onnx.helper.make_node("Tanh", ["x"], ["y"])], "float",
            [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in (OLD, "x")],
            [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in (STATE, "y")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    assert "nothing of the model runs on the hardware" in refused(raw, PAIR)


def test_without_external_memory_the_preset_is_named() -> None:
    with pytest.raises(UsageError, match=r"E2571 .*mini has no external memory.*mini\+sdram"):
        compile(temporal().SerializeToString(), preset("mini"), persist=[PAIR])


def test_a_fixed_batch_is_refused() -> None:
    assert "E2577" in refused(temporal(batch=3), PAIR)


def test_a_batch_of_any_size_is_a_stream() -> None:
    """Samples are one after the other; the open batch has no state in its interface."""
    model, frames = temporal(batch="N"), stream(4)
    program = compile(model.SerializeToString(), MINI, persist=[PAIR])
    assert program.batch is not None
    assert (program.batch.inputs, program.batch.outputs) == ({"x"}, {"y"})
    with onnxhw.InferenceSession(program, device="emulator") as session:
        made = session.run(None, {"x": frames})[0]
    assert np.array_equal(made, by_hand(temporal(), frames, np.zeros((1, 4, 2, 8), np.float32)))


def test_a_state_that_is_another_one_as_it_was_found_is_refused() -> None:
    model = read(temporal().SerializeToString())
    (state,) = states_of(model, [PAIR])
    graph = model.hardware[0].graph
    output = replace(next(port for port in graph.outputs if port.name == STATE), tensor=state.read)
    graph.outputs[:] = [output if port.name == STATE else port for port in graph.outputs]
    with pytest.raises(UsageError, match=r"E2575 .*the state 'old' as it was found"):
        states_of(model, [PAIR])
