"""Float reference models quantized with 200 samples keep their accuracy on the other 800."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(repository: Path, reference_models: Path, reference_data: Path) -> ModuleType:
    """`bench/quantize_kws.py`; skips where the models or onnxruntime (numpy takes minutes) are absent."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    spec = importlib.util.spec_from_file_location("quantize_kws", repository / "bench" / "quantize_kws.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "method", "correct"),
    [("kws", "min-max", False), ("kws", "percentile", True), ("kws", "entropy", False), ("ic", "min-max", False)],
)
def test_int8_keeps_top1_within_one_point_of_float(bench, name, method, correct):
    row = bench.measure(name, method, correct)
    assert row.samples == 800
    assert abs(row.golden_top1 - row.float_top1) <= 1
    assert abs(row.int8_top1 - row.float_top1) <= 1
