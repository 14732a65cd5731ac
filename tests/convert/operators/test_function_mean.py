"""Pools over all pixels of what is not quantized: golden = emulator, and within a step of onnxruntime."""

from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.convert.operators import function_mean
from onnxhw.partition import read
from onnxhw.presets import preset
from onnxhw.sched import schedule

S = 2.0**-4


def pooled(model: Any, shape: list[int], op_type: str = "HardSwish", unsigned: bool = False) -> Any:
    """As onnxruntime's quantizer writes it: a function of dequantized values, and the average of that."""
    x = model.input(shape, S, 120 if unsigned else -8)
    y = model.node("GlobalAveragePool", model.node(op_type, x))
    return model.output(model.requantize(y, S / 4, 100 if unsigned else -28), len(shape))


def differing(model: Any, seed: int = 0) -> float:
    """Share of the elements that are another step than onnxruntime's; none by more than a step."""
    (name,) = [value.name for value in model.outputs]
    feeds = model.feeds(seed)
    steps = np.abs(model.golden(feeds)[name] - model.onnxruntime(feeds)[name]) / (S / 4)
    assert steps.max() <= 1
    assert len(np.unique(model.golden(feeds)[name])) > 5
    return float((steps > 0).mean())


@pytest.mark.parametrize("op_type", ["HardSwish", "Sigmoid", "Tanh"])
def test_means_are_those_of_onnxruntime_but_for_few_steps(op_type: str, models: Any) -> None:
    model = pooled(models(), [1, 300, 3, 5], op_type)
    assert max(differing(model, seed) for seed in range(3)) < 0.03


@pytest.mark.parametrize("keepdims", [0, 1])
def test_as_reduce_mean(keepdims: int, models: Any) -> None:
    """As exporters write the global average, which the quantizer leaves in float in QDQ form, too."""
    model = models()
    y = model.node("HardSwish", model.input([1, 100, 4, 6], S, -8))
    y = model.node("ReduceMean", y, axes=[2, 3], keepdims=keepdims)
    assert differing(model.output(model.requantize(y, S / 4, -28), 4 if keepdims else 2)) < 0.05


def test_uint8_and_rows(models: Any) -> None:
    assert differing(pooled(models(unsigned=True), [1, 100, 7, 7], unsigned=True)) < 0.05
    assert differing(pooled(models(), [1, 100, 20])) < 0.05


WINDOWS: dict[str, dict[str, Any]] = {
    "every second": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "counted padding": {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "count_include_pad": 1, "strides": [1, 2]},
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows(case: str, models: Any) -> None:
    model = models()
    y = model.node("AveragePool", model.node("Elu", model.input([1, 60, 6, 8], S, -8)), **WINDOWS[case])
    made = model.output(model.requantize(y, S / 4, -28))
    assert differing(made) < 0.03
    graph = made.load()
    inputs = golden.host.prepare(graph, made.feeds(1))
    outputs, wanted = emu.run(schedule(graph, preset("virtual")), inputs).outputs, golden.run(graph, inputs)
    assert all(np.array_equal(values, wanted[name]) for name, values in outputs.items())


def test_padding_that_is_not_counted_stays_on_the_host(models: Any) -> None:
    model = models()
    y = model.node("AveragePool", model.node("Elu", model.input([1, 4, 6, 8], S)), kernel_shape=[3, 3], pads=[1] * 4)
    found = read(model.output(model.requantize(y, S / 4)).bytes(), runnable=False).placement
    assert any("not quantized" in row.reason for row in found if row.op_type == "AveragePool")


def test_the_program_makes_what_the_golden_model_makes(models: Any) -> None:
    model = pooled(models(), [1, 20, 6, 5])
    graph, config = model.load(), preset("mini")
    assert [type(op).__name__ for op in graph.ops] == ["Table", "Table", "Copy", "Conv"]
    inputs = golden.host.prepare(graph, model.feeds(1))
    made, wanted = emu.run(schedule(graph, config), inputs).outputs, golden.run(graph, inputs)
    assert all(np.array_equal(values, wanted[name]) for name, values in made.items())


def test_many_pixels_take_fewer_bits_and_too_many_rows_are_the_hosts(models: Any) -> None:
    sums = pooled(models(), [1, 4, 60, 60]).load()
    (conv,) = [op for op in sums.ops if type(op).__name__ == "Conv"]
    assert int(conv.weight.shape[2]) == 120
    tables = [op.table.astype(int) for op in sums.ops if type(op).__name__ == "Table"]
    largest = int(np.abs(function_mean.HIGH * tables[0] + tables[1]).max())
    assert largest * 3600 < 1 << 24 <= (largest + 1) * 3600
    tall = read(pooled(models(), [1, 4, 130, 2]).bytes())
    assert {row.op_type for row in tall.placement if row.where == "host"} >= {"GlobalAveragePool"}


def test_it_is_said_and_a_quantized_operand_is_averaged_as_ever(models: Any) -> None:
    noted = read(pooled(models(), [1, 20, 6, 5]).bytes()).diagnostics
    assert [each.where for each in noted if each.code == "W3407"] == ["node 'GlobalAveragePool_8'"]
    model = models()
    x = model.requantize(model.node("HardSwish", model.input([1, 20, 6, 5], S, -8)), S, -20)
    plain = model.output(model.requantize(model.node("GlobalAveragePool", x), S / 4, -28))
    assert {type(op).__name__ for op in plain.load().ops} == {"Table", "AveragePool"}
    assert "W3407" not in {each.code for each in read(plain.bytes()).diagnostics}
