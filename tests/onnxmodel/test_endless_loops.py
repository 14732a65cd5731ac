"""A Loop that no run ends is refused before any, and no other."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.errors import UnsupportedError
from onnxhw.partition import read

TRUE, FALSE = numpy_helper.from_array(np.array(True), "t"), numpy_helper.from_array(np.array(False), "f")
CONDITIONS = {
    "passed on": [helper.make_node("Identity", ["c"], ["d"])],
    "constant": [helper.make_node("Constant", [], ["d"], value=TRUE)],
    "of the graph around": [helper.make_node("Identity", ["t"], ["d"])],
    "computed": [helper.make_node("Not", ["c"], ["k"]), helper.make_node("Not", ["k"], ["d"])],
    "or": [helper.make_node("Constant", [], ["k"], value=FALSE), helper.make_node("Or", ["c", "k"], ["d"])],
}
ENDING = {
    "constant": [helper.make_node("Constant", [], ["d"], value=FALSE)],
    "negated": [helper.make_node("Not", ["c"], ["d"])],
    "of the iteration": [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.array(3), "k")),
        helper.make_node("Less", ["i", "k"], ["d"]),
    ],
}


def loop(nodes: list[onnx.NodeProto], trips: str = "", start: str = "", read_by: str = "y") -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    ends = value("d", TensorProto.BOOL, []), value("w", 1, [1])
    begins = value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", 1, [1])
    body = helper.make_graph([*nodes, helper.make_node("Add", ["v", "v"], ["w"])], "body", begins, ends)
    made = [helper.make_node("Loop", [trips, start, "x"], ["l"], "it", body=body),
            helper.make_node("Neg", ["x"], ["z"]),
            helper.make_node("Relu", ["l" if read_by == "y" else "z"], ["y"])]  # fmt: skip
    given = [value("x", 1, [1]), value("b", TensorProto.BOOL, []), value("n", TensorProto.INT64, [])]
    constants = [TRUE, FALSE, numpy_helper.from_array(np.array(10_000_001), "many"),
                 numpy_helper.from_array(np.array(10_000_000), "few")]  # fmt: skip
    graph = helper.make_graph(made, "m", given, [value("y", 1, [1])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize(("trips", "start"), [("", ""), ("", "t"), ("many", ""), ("many", "t")])
def test_what_never_ends_is_known(name: str, trips: str, start: str) -> None:
    with pytest.raises(UnsupportedError, match=r"E4780 .*'it' \(Loop\): its condition is always true") as caught:
        read(loop(CONDITIONS[name], trips, start))
    assert ("10,000,001 times" if trips else "never ends") in caught.value.what


@pytest.mark.parametrize(("trips", "start"), [("few", ""), ("n", "t"), ("", "b"), ("", "f")])
def test_what_may_end_is_read(trips: str, start: str) -> None:
    assert read(loop(CONDITIONS["constant"], trips, start)).placement


@pytest.mark.parametrize("name", ENDING)
def test_a_condition_that_may_become_false_is_read(name: str) -> None:
    assert read(loop(ENDING[name])).placement


def test_what_no_output_needs_is_not_looked_at() -> None:
    assert read(loop(CONDITIONS["constant"], read_by="nothing")).placement
