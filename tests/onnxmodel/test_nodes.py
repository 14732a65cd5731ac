"""`Node` says what protobuf's node says, also where nodes share their attributes."""

import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxfile.survey import survey
from onnxhw.onnxmodel.nodes import Attributes, Node, reads

INNER = helper.make_graph([helper.make_node("Add", ["a", "outside"], ["b"])], "inner", [], [])
TENSOR = helper.make_tensor("t", TensorProto.FLOAT, [300], [1.0] * 300)
NODES = [
    helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1, 1, 1], auto_pad="NOTSET"),
    helper.make_node("Conv", ["y", "w"], ["z"], name="", pads=[1, 1, 1, 1], auto_pad="NOTSET"),
    helper.make_node("Conv", ["y", "w"], ["u"], name="", pads=[1, 1, 1, 0], auto_pad="NOTSET"),
    helper.make_node("Clip", ["x", "", "x"], ["", "v"], domain="ai.onnx"),
    helper.make_node("If", ["flag"], ["i"], then_branch=INNER),
    helper.make_node("If", ["flag"], ["j"], then_branch=INNER),
    helper.make_node("Constant", [], ["c"], value=TENSOR),
    helper.make_node("Quant", ["x"], ["q"], domain="qonnx.custom_op.general", signed=1, alpha=0.5),
]


def test_nodes_are_those_of_the_model() -> None:
    known: Attributes = {}
    for proto in [*NODES, *NODES]:
        node = Node.of(proto, known)
        assert (node.op_type, node.domain) == (proto.op_type, proto.domain)
        assert (node.input, node.output) == ([*proto.input], [*proto.output])
        assert node.label == proto.name or (not proto.name and node.label.startswith(f"{proto.op_type}("))
        assert node.key == ("" if proto.domain == "ai.onnx" else proto.domain, proto.op_type)
        assert node.results == [name for name in proto.output if name]
        assert node.reads == reads(proto)
        given = {one.name: helper.get_attribute_value(one) for one in proto.attribute}
        assert node.attributes == {n: v.decode() if isinstance(v, bytes) else v for n, v in given.items()}
    assert Node.of(NODES[0], known).attributes is Node.of(NODES[1], known).attributes
    assert Node.of(NODES[4], known).reads == ("flag", "a", "outside")


@pytest.mark.parametrize("same", [True, False])
def test_names_of_attributes_count_wherever_they_are(same: bool) -> None:
    """A model of n nodes with an attribute each has as many values whether the attributes are the same or not."""
    nodes = [helper.make_node("Elu", ["x"], [f"y{n}"], alpha=0.5 if same else n / 8) for n in range(50)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], [])
    model: onnx.ModelProto = helper.make_model(graph)
    count = survey(model, Limits(), "model").values
    assert count == 1 + 50 * 8
    with pytest.raises(LimitError, match="E3111"):
        survey(model, Limits(values=count - 1), "model")
