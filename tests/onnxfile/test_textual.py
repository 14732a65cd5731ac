"""Model files in text formats: the same model, the same checks, and no more than the limits."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf import json_format, text_format
from onnx import numpy_helper, parser

from onnxhw.errors import InvalidModelError
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel.read import read, read_model
from onnxhw.runtime.session import InferenceSession

X = np.array([[-1.0, 0.5, 2.0]], np.float32)
TEXT = [".textproto", ".prototxt", ".pbtxt", ".txtpb"]
JSON = [".json", ".onnxjson"]


def model() -> onnx.ModelProto:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,3] x) => (float[1,3] y) { z = Mul(x, w) y = Relu(z) }'
    )
    made.graph.initializer.append(numpy_helper.from_array(np.float32([[1.5, -2.0, 1e-30]]), "w"))
    made.graph.doc_string = 'a "quoted" text, \u00fc'
    return made


def saved(folder: Path, suffix: str) -> Path:
    path = folder / f"model{suffix}"
    path.write_text(text_format.MessageToString(model()) if suffix in TEXT else json_format.MessageToJson(model()))
    return path


@pytest.mark.parametrize("suffix", [*TEXT, *JSON, ".PbTxt"])
def test_a_text_format_is_the_same_model(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path, ".pbtxt" if suffix == ".PbTxt" else suffix).rename(tmp_path / f"m{suffix}")
    assert read_model(path) == read_model(model().SerializeToString())
    (made,) = InferenceSession(path).run(None, {"x": X})
    np.testing.assert_array_equal(made, np.maximum(X * np.float32([[1.5, -2.0, 1e-30]]), 0))


def test_onnx_writes_what_is_read(tmp_path: Path) -> None:
    for suffix in (".textproto", ".json"):
        onnx.save(model(), tmp_path / f"m{suffix}")
        assert read_model(tmp_path / f"m{suffix}") == read_model(model().SerializeToString())


@pytest.mark.parametrize("suffix", [".onnxtxt", ".onnxtext"])
def test_onnxs_own_text_form_says_how_to_convert(tmp_path: Path, suffix: str) -> None:
    onnx.save(model(), tmp_path / f"m{suffix}", format="onnxtxt")
    with pytest.raises(InvalidModelError, match="E3034") as caught:
        read(tmp_path / f"m{suffix}")
    assert "onnx.load" in caught.value.hint
    assert "\n" not in caught.value.hint


def nested(depth: int, text: bool) -> str:
    """Graphs in attributes of nodes of graphs."""
    opening = 'node { attribute { name: "a" type: GRAPH g {' if text else (
        '"node": [{"attribute": [{"name": "a", "type": "GRAPH", "g": {'
    )  # fmt: skip
    begin, end = ("graph {", "}") if text else ('{"graph": {', "}}")
    return begin + opening * depth + ("}}}" if text else "}}]}]") * depth + end


BROKEN = {
    "nothing": "",
    "a brace": "{",
    "brackets": "[" * 200_000,
    "objects": '{"graph":' * 50_000,
    "no field": '{"graf": {}}',
    "a number": '{"irVersion": 99999999999999999999999}',
    "words": "graph { node { unheard: 1 } }",
    "open": "graph { " * 5000,
    "no base64": '{"graph": {"initializer": [{"rawData": "\u00ff***"}]}}',
    "zeros": "\0" * 100,
}


@pytest.mark.parametrize("suffix", [".textproto", ".json"])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_model_has_a_code(tmp_path: Path, suffix: str, name: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_text(BROKEN[name], encoding="utf-8")
    with pytest.raises(InvalidModelError, match=r"E3033|E3005|E3007"):
        read(path)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("depth", [20, 40, 90, 290])
def test_nesting_ends_in_a_code(tmp_path: Path, depth: int, text: bool) -> None:
    path = tmp_path / ("m.textproto" if text else "m.json")
    path.write_text(nested(depth, text))
    with pytest.raises(InvalidModelError, match=r"E3033|E3101|E3107"):
        read(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    for suffix in (".json", ".pbtxt"):
        (tmp_path / f"m{suffix}").write_bytes(model().SerializeToString() + b"\xff\xfe")
        with pytest.raises(InvalidModelError, match="E3033"):
            read(tmp_path / f"m{suffix}")


def test_text_is_bounded_before_it_is_parsed(tmp_path: Path) -> None:
    path = saved(tmp_path, ".json")
    size = path.stat().st_size
    read(path, Limits(text_bytes=size))
    with pytest.raises(LimitError, match=f"E3035.*{size}.*--limit text_bytes={size}"):
        read(path, Limits(text_bytes=size - 1))
