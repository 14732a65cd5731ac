"""Rules of batches decide of shapes that are known, and of nothing else."""

import onnx
import pytest
from onnx import helper

from onnxhw.onnxmodel.batch_dependence import SampleDependenceError, kinds
from onnxhw.onnxmodel.batching_rules import ROWS

SHAPES = {"x": (6, 4), "c": (4,), "w": (4, 4), "y": (6, 4)}
"""At a batch of six."""
CASES = {
    "a bias": helper.make_node("Gemm", ["x", "w", "c"], ["y"]),
    "a factor": helper.make_node("MatMul", ["x", "w"], ["y"]),
    "a table": helper.make_node("Gather", ["c", "x"], ["y"]),
    "an addend": helper.make_node("Add", ["x", "c"], ["y"]),
}


def _kinds(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> dict[str, str]:
    values = {name: onnx.ValueInfoProto(name=name) for name in SHAPES}
    graph = helper.make_graph([node], "g", [values[name] for name in ("x", "c", "w")], [values["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return dict(kinds(model, shapes, ["x"], 6))


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_asked_only_if_every_shape_is_known(name: str) -> None:
    node = CASES[name]
    assert _kinds(node, SHAPES)["y"] == ROWS
    whole = next(one for one in reversed(node.input) if one != "x")
    with pytest.raises(SampleDependenceError, match=f"the shape of '{whole}' is not known"):
        _kinds(node, {key: shape for key, shape in SHAPES.items() if key != whole})
