"""Models beyond a configuration: every one is placed, and gives the same bytes on every configuration.

Graphs are deep and branch, with operators between that only the host has, so that parts which are divided push others
together.
"""

import dataclasses
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.compiler import place, place_and_schedule
from onnxhw.config import HwConfig
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Op
from onnxhw.ir.parts import GoldenPart
from onnxhw.onnxmodel.prepared import prepare
from onnxhw.partition import PartitionedModel
from onnxhw.partition.pipeline import converted
from onnxhw.partition.stages import GOLDEN, HARDWARE, HOST, KINDS, Constraints, stages
from onnxhw.presets import PRESETS, preset
from onnxhw.program import container
from onnxhw.program.parts import Program

MINI = preset("mini")
TINY = dataclasses.replace(MINI, name="tiny", weight_depth=MINI.weight_depth // 2, act_depth=64, vector_ucode=128)
S = 1 / 16
KINDS_OF_NODES = ("Conv", "Conv", "Conv", "Depthwise", "Add", "Mul", "Concat", "MaxPool", "AveragePool", "CumSum",
                  "Trilu", "Sigmoid", "HardSwish", "Elu", "output")  # fmt: skip


def deep(model: Any, seed: int, length: int) -> None:
    """Operators over the last few values, of 3 to 16 channels at first, of up to 96 later."""
    random = np.random.default_rng(seed)
    channels, size = int(random.choice([3, 4, 8, 16])), int(random.choice([6, 8, 12]))
    values = [(model.input((1, channels, size, size), S), channels, size)]
    ends = []

    def conv(x: str, read: int, made: int, kernel: int, groups: int = 1) -> str:
        weights = random.integers(-9, 10, (made, read // groups, kernel, kernel)).astype(np.int8)
        scale = np.float32(1 / (5 * np.sqrt(weights[0].size)))
        constant = model.constant(weights, scale, np.int8(0))
        return str(model.node("Conv", x, constant, pads=[kernel // 2] * 4, group=groups))

    for _ in range(length):
        x, channels, size = values[int(random.integers(max(0, len(values) - 4), len(values)))]
        kind = str(random.choice(KINDS_OF_NODES))
        alike = [value for value in values if value[1:] == (channels, size)]
        other = alike[int(random.integers(len(alike)))][0]
        made = channels
        if kind == "Conv":
            made = int(random.choice([8, 16, 32, 64, 96]))
            y = conv(x, channels, made, int(random.choice([1, 3])))
        elif kind == "Depthwise":
            y = conv(x, channels, channels, 3, channels)
        elif kind in ("Add", "Mul"):
            y = model.node(kind, x, other)
        elif kind == "Concat" and channels <= 96:
            y, made = model.node(kind, x, other, axis=1), 2 * channels
        elif kind in ("MaxPool", "AveragePool"):
            y = model.node(kind, x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif kind == "CumSum":
            y = model.node(kind, x, model.const(np.int64(1)))
        elif kind in ("output", "Concat"):
            ends.append(x)
            continue
        else:
            y = model.node(kind, x)
        values.append((model.requantize(y, S), made, size))
    for name in dict.fromkeys([*ends, values[-1][0]]):
        model.output(name)


def results(proto: bytes, device: str, feeds: Any, config: HwConfig | None = None) -> list[bytes]:
    """The outputs' bytes."""
    with InferenceSession(proto, device=device, config=config) as session:
        return [np.asarray(found).tobytes() for found in session.run(None, feeds)]


def test_every_division_makes_progress(models: Any) -> None:
    """Here, dividing one part pushes operations of two others into one, where they have no room again."""
    model = models(opset=17)
    deep(model, 34, 36)
    mixed = place_and_schedule(model.bytes(), MINI).model
    assert "W3405" in {note.code for note in mixed.diagnostics}


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10000), config=st.sampled_from([MINI, TINY]))
def test_deep_graphs_give_the_same_on_any_configuration(models: Any, seed: int, config: HwConfig) -> None:
    model = models(opset=17)
    deep(model, seed, 16)
    feeds = model.feeds(seed)
    assert results(model.bytes(), "emulator", feeds, config) == results(model.bytes(), "golden", feeds)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10000), data=st.data())
def test_stages_of_random_divisions(models: Any, seed: int, data: Any) -> None:
    """Along every edge they stay or grow, each is of its kind, and no two groups of a turn share one or swap."""
    model = models(opset=17)
    deep(model, seed, 20)
    made, _, _ = converted(prepare(model.bytes()))
    whole = stages(made)
    names = [item.output for item in whole.order if isinstance(item, Op)]
    constraints = Constraints()
    for _ in range(data.draw(st.integers(0, 4))):
        turn = sorted(data.draw(st.sets(st.integers(0, len(names)), min_size=2, max_size=5)))
        constraints.ordered_groups.append([names[first:last] for first, last in pairwise(turn)])
    constraints.to_host |= dict.fromkeys(data.draw(st.sets(st.sampled_from(names), max_size=4)), ("", ""))
    found = stages(made, constraints)
    assert found.order == whole.order
    assert constraints.to_host.keys() <= {name for name, stage in found.operations.items() if stage % KINDS == GOLDEN}
    assert all(stage % KINDS in (HARDWARE, GOLDEN) for stage in found.operations.values())
    assert all(stage % KINDS == HOST for stage in found.nodes.values())
    for item in found.order:
        if isinstance(item, Op):
            read = [found.operations[name] for name in item.inputs if name in found.operations]
            assert max(read, default=0) <= found.operations[item.output]
    for turn in constraints.ordered_groups:
        groups = [[found.operations[name] for name in group] for group in turn]
        hardware = [kept for group in groups if (kept := [stage for stage in group if stage % KINDS == HARDWARE])]
        assert all(max(before) < min(after) for before, after in pairwise(hardware))


def test_it_ends_whatever_does_not_fit(models: Any) -> None:
    """Nothing fits, and no part shows why: parts are halved until each is an operation, and these go to the host."""
    model = models(opset=17)
    deep(model, 3, 24)
    seen: list[int] = []

    def attempt(mixed: PartitionedModel) -> None:
        seen.append(max((len(part.graph.ops) for part in mixed.hardware), default=0))
        if mixed.hardware:
            raise DoesNotFitError("E5104", "for a test")

    placed = place(model.bytes(), preset("ulx3s-85f"), attempt)
    assert seen == sorted(seen, reverse=True)
    assert (seen[0] > 4, seen[-1], len(seen) < 10) == (True, 0, True)
    assert not placed.model.hardware
    assert placed.model.golden


def everything(model: Any) -> bytes:
    """A convolution too large for some presets, of scales whose ties float32 has on other sides; one of larger sums;
    and a Softmax, which needs more tables than some have."""
    random = np.random.default_rng(1)
    x = model.input((1, 64, 4, 4), 0.05)

    def conv(read: int, made: int, low: int, high: int) -> str:
        weights = model.constant(random.integers(low, high, (made, read, 3, 3)).astype(np.int8), 0.02, np.int8(0))
        return str(model.node("Conv", x, weights, pads=[1] * 4))

    model.output(model.q(conv(64, 96, -7, 8), 0.1))
    model.output(model.q(conv(64, 2, 120, 128), 3.7))
    y = model.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    model.output(model.q(model.node("Add", model.requantize(model.node("Softmax", y, axis=3), 1 / 256, -128), y), 0.07))
    for value in model.outputs:
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    return bytes(model.bytes())


def test_every_preset_gives_the_same_bytes(models: Any) -> None:
    model = models(opset=17)
    proto = everything(model)
    feeds = {"x": (np.random.default_rng(2).integers(-60, 60, (2, 64, 4, 4)) * np.float32(0.05)).astype(np.float32)}
    wanted, to_host = results(proto, "golden", feeds), set()
    for name in PRESETS:
        with InferenceSession(proto, device="emulator", config=preset(name)) as session:
            assert [found.tobytes() for found in session.run(None, feeds)] == wanted, name
            to_host |= {type(op).__name__ for part in session.model.golden for op in part.graph.ops}
    assert {"Conv", "Table"} <= to_host


def test_what_is_compiled_runs_as_well(models: Any, tmp_path: Path, capsys: Any) -> None:
    """The container, `simulate`, and `run` on a device, with operations on the host."""
    model = models(opset=17)
    proto = everything(model)
    (tmp_path / "model.onnx").write_bytes(proto)
    x = (np.random.default_rng(2).integers(-60, 60, (2, 64, 4, 4)) * np.float32(0.05)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    wanted = results(proto, "golden", {"x": x})
    arguments = ["-i", tmp_path / "x.npy", "-o", tmp_path / "y.npz"]

    def run(*given: Any) -> list[bytes]:
        assert main([*map(str, given), *map(str, arguments), "-q"]) == 0
        with np.load(tmp_path / "y.npz") as found:
            return [found[value.name].tobytes() for value in model.outputs]

    out = tmp_path / "out"
    assert main(["compile", str(tmp_path / "model.onnx"), "--preset", "mini", "-o", str(out), "-q"]) == 0
    program = container.load(out / "program.ohw")
    assert isinstance(program, Program)
    assert any(isinstance(part, GoldenPart) for part in program.parts)
    assert run("simulate", out) == wanted
    assert run("simulate", tmp_path / "model.onnx", "--preset", "mini") == wanted
    assert run("run", out, "-d", "emu:") == wanted
    capsys.readouterr()
    assert main(["check", str(tmp_path / "model.onnx"), "--preset", "mini"]) == 0
    shown = capsys.readouterr().out
    assert "W3406" in shown
    assert "has room for" in shown
