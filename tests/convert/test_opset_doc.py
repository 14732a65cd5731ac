"""Operator set documents: read, checked against, written from the table of handlers."""

from pathlib import Path

import onnx
import pytest
from onnx import parser
from onnx.onnx_operators_pb import OperatorProto, OperatorSetProto

from onnxhw.convert import opset_doc
from onnxhw.convert.handlers import HANDLERS
from onnxhw.errors import InvalidModelError
from onnxhw.onnxmodel.specification.signatures import newest, signature
from onnxhw.partition.pipeline import load


def document(*operators: tuple[str, int], domain: str = "", version: int = 21, status: int = 1) -> OperatorSetProto:
    made = OperatorSetProto(magic="ONNXOPSET", ir_version=10, domain=domain, opset_version=version)
    for name, since in operators:
        made.operator.append(OperatorProto(op_type=name, since_version=since, status=status))
    return made


def model(nodes: str, opset: int = 21, more: str = "") -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}{more}]> g (float[1,3] x) => (float[1,3] y) {{ {nodes} }}'
    )


def codes(nodes: str, *documents: OperatorSetProto, opset: int = 21, more: str = "") -> list[str]:
    return [one.code for one in opset_doc.check(model(nodes, opset, more), documents)]


RELU = document(("Relu", 14), ("Softmax", 13))


def test_a_document_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "set.onnxopset"
    path.write_bytes(RELU.SerializeToString())
    assert opset_doc.read(path) == opset_doc.read(RELU.SerializeToString()) == RELU


def spoiled(**values: object) -> bytes:
    made = OperatorSetProto()
    made.CopyFrom(RELU)
    for name, value in values.items():
        setattr(made, name, value)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("code", "data"),
    [
        ("E3421", b""),
        ("E3421", b"\xff\xff not protobuf"),
        ("E3421", spoiled(magic="ONNX")),
        ("E3421", model("y = Relu(x)").SerializeToString()),
        ("E3422", document(("Relu", 14), ("Relu", 6)).SerializeToString()),
        ("E3422", document(("", 14)).SerializeToString()),
        ("E3423", spoiled(opset_version=0)),
        ("E3423", spoiled(ir_version=0)),
        ("E3423", document(("Relu", 22)).SerializeToString()),
        ("E3423", document(("Relu", 0)).SerializeToString()),
    ],
)
def test_what_is_no_document(code: str, data: bytes) -> None:
    with pytest.raises(InvalidModelError, match=code):
        opset_doc.read(data)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path, Path("a\0b")):
        with pytest.raises(InvalidModelError, match="E3420"):
            opset_doc.read(path)


def test_a_model_against_documents() -> None:
    assert codes("y = Relu(x)", RELU) == []
    assert codes("y = Neg(x)", RELU) == ["E4521"]
    assert codes("y = Relu(x)") == ["E4520"]
    other = document(("Thing", 1), domain="org.other", version=1)
    assert codes("y = org.other.Thing(x)", RELU, other, more=', "org.other" : 1') == []
    assert codes("y = org.other.Thing(x)", RELU, more=', "org.other" : 1') == ["E4520"]
    assert codes("y = Relu(x)", RELU, document(domain="ai.onnx")) == ["E3424"]
    assert codes("y = Relu(x)", document(("Relu", 14), status=0)) == ["W3420"]


def test_versions_of_operators() -> None:
    assert codes("y = Softmax(x)", RELU, opset=13) == []
    assert codes("y = Softmax(x)", RELU, opset=12) == ["E4522"]
    assert codes("y = Softmax(x)", document(("Softmax", 11), version=12), opset=12) == []
    assert codes("y = Softmax(x)", document(("Softmax", 11), version=12), opset=13) == ["E4522"]
    assert codes("y = Relu(x)", RELU, opset=newest()[""]) == []
    other = document(("Thing", 1), domain="org.other", version=1)
    assert codes("y = org.other.Thing(x)", other, more=', "org.other" : 2') == ["E4522"]


def test_functions_of_a_document_are_operators() -> None:
    made = document(version=21)
    made.functions.add(name="Neg")
    assert codes("y = Neg(x)", made) == []


def test_functions_of_the_model_need_no_document() -> None:
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "f" : 1]> g (float[1,3] x) => (float[1,3] y) { y = f.double(x) }\n'
        '<domain: "f", opset_import: ["" : 21]> double (a) => (b) { b = Add(a, a) }'
    )
    assert [one.code for one in opset_doc.check(proto, [document(("Add", 14))])] == []
    assert [one.code for one in opset_doc.check(proto, [document(("Relu", 14))])] == ["E4521"]


def test_nested_graphs_are_checked() -> None:
    nodes = (
        "c = Constant<value_int=1>() y = If (c) <then_branch = p () => (float[1,3] t) { t = Relu(x) },"
        "else_branch = q () => (float[1,3] u) { u = Neg(x) }>"
    )
    found = opset_doc.check(model(nodes), [document(("If", 21), ("Constant", 21), ("Relu", 14))])
    assert [(one.code, one.where) for one in found] == [("E4521", "node 'u' (Neg)")]


@pytest.mark.parametrize("domain", opset_doc.domains())
def test_what_is_written_is_the_table_of_handlers(domain: str) -> None:
    made = opset_doc.read(opset_doc.written(domain).SerializeToString())
    assert made.domain == domain
    handled = {op_type for known, op_type in HANDLERS if known == domain}
    if domain in newest():
        version = newest()[domain]
        handled = {name for name in handled if (found := signature(name, domain, version)) and not found.deprecated}
        for operator in made.operator:
            schema = onnx.defs.get_schema(operator.op_type, max(operator.since_version, opset_doc.OLDEST), domain)
            assert schema.since_version == operator.since_version
    assert {operator.op_type for operator in made.operator} == handled


def test_what_is_written_for_an_older_set() -> None:
    """Softmax had another meaning before version 13, which the hardware has too, and Gelu did not exist."""
    names = {operator.op_type: operator.since_version for operator in opset_doc.written("", 12).operator}
    assert names["Softmax"] == 1
    assert "Gelu" not in names
    assert codes("y = Softmax(x)", opset_doc.written("", 12), opset=12) == []
    assert codes("y = Exp(x)", opset_doc.written()) == []
    assert codes("y = Det(x)", opset_doc.written()) == ["E4521"]


OLD = {
    "Clip": "r = Clip<min=-1.0, max=1.0>(d)",
    "Pad": "r = Pad<pads=[0, 0, 1, 1, 0, 0, 1, 1]>(d)",
    "ReduceMean": "r = ReduceMean<axes=[2, 3], keepdims=1>(d)",
    "Squeeze": "q = Relu(d) r = Squeeze<axes=[0]>(q)",
    "Relu": "r = Relu(d)",
}
"""Operators as of version 10."""


@pytest.mark.parametrize(
    ("name", "opset"),
    [*((name, opset_doc.OLDEST) for name in OLD), *(("Relu", opset) for opset in (12, 13, 17, 21, newest()[""]))],
)
def test_what_the_hardware_runs_is_in_its_document(name: str, opset: int) -> None:
    """Whatever the version of the set: the hardware takes more than the newest declarations."""
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[1,2,4,4] x) => (float y) {{'
        "s = Constant<value=float {0.0625}>() z = Constant<value=int8 {0}>()"
        f"a = QuantizeLinear(x, s, z) d = DequantizeLinear(a, s, z) {OLD[name]}"
        "b = QuantizeLinear(r, s, z) y = DequantizeLinear(b, s, z) }"
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert load(proto).ops
    found = opset_doc.check(proto, [opset_doc.written()])
    assert {one.where for one in found} <= {f"node {name!r} (Constant)" for name in "sz"}
