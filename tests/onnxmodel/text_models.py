"""Models in ONNX's text form, run here and in onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from onnxhw.onnxmodel import specification
from onnxhw.runtime.session import InferenceSession

X = np.array([[-2.0, 0.5, 3.0]], np.float32)
IO = "g (float[1,3] x) => (float[1,3] y)"
Model = onnx.ModelProto


def text(body: str, *opsets: tuple[str, int], ir: int = 10, functions: str = "") -> Model:
    """A model from ONNX's text form with these imports."""
    proto = parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["" : 21], domain: "org.example">\n{body}\n{functions}'
    )
    imported(proto, *opsets)
    return proto


def imported(owner: onnx.ModelProto | onnx.FunctionProto, *opsets: tuple[str, int]) -> None:
    if opsets:
        del owner.opset_import[:]
        owner.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in opsets)


def ours(proto: Model, **feeds: Any) -> list[Any]:
    return list(InferenceSession(proto.SerializeToString()).run(None, feeds or {"x": X}))


def theirs(proto: Model, **feeds: Any) -> list[Any]:
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds or {"x": X}))


def same(given: list[Any], wanted: list[Any]) -> None:
    assert len(given) == len(wanted)
    for one, other in zip(given, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def codes(proto: Model, severity: str = "warning") -> set[str]:
    """Codes of warnings; there must be no errors."""
    found = specification.diagnose(proto)
    assert [one for one in found if one.severity == "error"] == []
    return {one.code for one in found if one.severity == severity}
