"""The MLPerf Tiny reference models against onnxruntime, layer by layer and as a whole."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

from onnxhw import golden
from onnxhw.ir.ops import conv
from onnxhw.partition import load

MODELS = {
    "ic_resnet8": ("cifar10_test1000_jpeg_nhwc_u8.npz", 14, 12_501_632),
    "kws_dscnn": ("kws01_mfcc_int8_nchw.npz", 11, 2_656_768),
    "vww_mobilenetv1_025_96": ("vww_2samples_grey_u8.npz", 29, 7_489_664),
    "ad_autoencoder": (None, 10, 264_192),
}


def inputs(against_ort: ModuleType, model: onnx.ModelProto, folder: Path, data: str | None, count: int) -> Any:
    return against_ort.inputs(model, folder / data if data else None, count)


@pytest.mark.parametrize("name", MODELS)
def test_every_conv_and_gemm_is_onnxruntimes(
    name: str, against_ort: ModuleType, reference_models: Path, reference_data: Path
) -> None:
    """Each layer fed with onnxruntime's own int8 operands: identical to its integer kernel, all elements.

    Within whole models the same holds wherever onnxruntime runs its integer kernels; it may use float32
    convolutions on CPUs without VNNI, which are off by one where rounding is a tie within float32's noise.
    """
    data, count, macs = MODELS[name]
    model = onnx.load(reference_models / f"{name}_int8_qdq.onnx")
    graph = load(model.SerializeToString())
    assert len(graph.ops) == count
    assert graph.macs() == macs
    layers = against_ort.compare_layers(model, inputs(against_ort, model, reference_data, data, 20))
    integer = not {"Conv", "Gemm"} & set(against_ort.fused_operators(against_ort.exposed(model, list(graph.tensors))))
    assert [layer.name for layer in layers] == [op.name for op in graph.ops]
    for layer in layers:
        if layer.kind == "Conv":
            assert layer.kernel in ("QLinearConv", "QGemm"), layer
            assert layer.kernel_differ == 0, layer
            assert layer.differ == 0 or not integer, layer
        assert layer.largest <= 1, layer
        assert layer.differ <= layer.elements * 1e-4, layer


def test_comparison_notices_a_wrong_bias(
    against_ort: ModuleType, reference_models: Path, reference_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: one unit in the bias of every channel shows in most layers."""
    model = onnx.load(reference_models / "ic_resnet8_int8_qdq.onnx")
    right = conv.accumulate
    monkeypatch.setattr(conv, "accumulate", lambda op, x, tensor: right(op, x, tensor) + 1)
    layers = against_ort.compare_layers(
        model, inputs(against_ort, model, reference_data, "cifar10_test1000_jpeg_nhwc_u8.npz", 2)
    )
    assert sum(bool(layer.kernel_differ) for layer in layers) >= 8


@pytest.mark.parametrize("images", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["ic_resnet8", "kws_dscnn"])
def test_top1_agrees_with_onnxruntime(
    name: str, images: int, against_ort: ModuleType, reference_models: Path, reference_data: Path
) -> None:
    model = onnx.load(reference_models / f"{name}_int8_qdq.onnx")
    x, labels = against_ort.load_data(reference_data / str(MODELS[name][0]), model)
    found = against_ort.compare_top1(model, x[:images], labels[:images])
    print(f"{name}: {found}")
    assert found.images == images
    assert found.agree >= images * 995 // 1000
    if images == 1000:
        assert found.golden_correct >= {"ic_resnet8": 755, "kws_dscnn": 900}[name]


def test_outputs_of_autoencoder_and_visual_wake_words_are_onnxruntimes(
    against_ort: ModuleType, reference_models: Path, reference_data: Path
) -> None:
    """Whole runs with optimisation off: reconstruction within two output steps, probabilities within two."""
    for name in ("ad_autoencoder", "vww_mobilenetv1_025_96"):
        model = onnx.load(reference_models / f"{name}_int8_qdq.onnx")
        graph = load(model.SerializeToString())
        runtime = against_ort.session(model, False)
        step = max(s["scale"] for s in graph.outputs[0].steps if "scale" in s and s["op"] == "DequantizeLinear")
        for feed in inputs(against_ort, model, reference_data, MODELS[name][0], 10):
            ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feed)))["output"]
            assert np.abs(ours - runtime.run(["output"], feed)[0]).max() <= 2 * step


@pytest.mark.parametrize("powers", [False, True])
def test_operators_differ_from_onnxruntime_at_the_documented_rates(against_ort: ModuleType, powers: bool) -> None:
    """docs/numerics.md: conv and gemm never, where it runs them in integers; the others by one, at most as often
    as stated there."""
    for operator in against_ort.CASES:
        found = against_ort.rate(operator, powers, 40_000)
        print(found)
        assert found.largest <= 1
        model = against_ort.CASES[operator](np.random.default_rng(1), powers)
        if {"QLinearConv", "QGemm"} & set(against_ort.fused_operators(model)):
            assert found.differ == 0, found
        elif "bias" in operator:
            assert found.differ <= found.elements * 5e-4, found
        elif not powers and "equal" not in operator:
            assert found.differ <= found.elements * 1e-4, found
        else:
            assert found.differ <= found.elements * 0.2, found


def test_all_reference_models_print_and_verify(reference_models: Path) -> None:
    from onnxhw.ir import text

    for name in MODELS:
        graph = load(reference_models / f"{name}_int8_qdq.onnx")
        assert text.text(text.parse(text.text(graph, constants=True)), constants=True) == text.text(
            graph, constants=True
        )
