"""``onnxhw opset``: the hardware's operators as a document, and a model held against documents."""

import json

import pytest
from onnx import TensorProto, helper
from onnx.onnx_operators_pb import OperatorSetProto

from onnxhw.cli import main
from onnxhw.convert import opset_doc


def run(capsys, *arguments, status=0):
    """What a command prints as JSON, if it ends with `status`."""
    assert main(["opset", *map(str, arguments), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def relu(tmp_path):
    """A model of a Relu and an operator of another domain."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Lens", ["y"], ["z"], domain="my")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xz"]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    (tmp_path / "relu.onnx").write_bytes(model.SerializeToString())
    return tmp_path / "relu.onnx"


def test_the_list_is_the_document(tmp_path, capsys):
    record = run(capsys, "--write", tmp_path / "ours")
    assert record["written"] == str(tmp_path / "ours")
    made = opset_doc.read(tmp_path / "ours")
    assert [entry["operator"] for entry in record["operators"]] == [one.op_type for one in made.operator]
    assert {"Conv", "QuantizeLinear"} < {one.op_type for one in made.operator}
    assert run(capsys, "--domain", "com.microsoft")["operators"][0].keys() == {"operator", "since_version"}
    assert main(["opset"]) == 0
    assert "QuantizeLinear" in capsys.readouterr().out


def test_a_model_against_documents(relu, tmp_path, capsys):
    run(capsys, "--write", tmp_path / "ours")
    error = run(capsys, "--check", relu, "--against", tmp_path / "ours", status=4)
    assert error["error"]["code"] == "E4520"
    assert [one["code"] for one in error["diagnostics"]] == ["E4520"]
    assert run(capsys, "--check", relu, status=4)["error"]["code"] == "E4520"
    mine = OperatorSetProto(magic=opset_doc.MAGIC, ir_version=8, domain="my", opset_version=1)
    mine.operator.add(op_type="Lens", since_version=1, status="STABLE")
    (tmp_path / "mine").write_bytes(mine.SerializeToString())
    record = run(capsys, "--check", relu, "--against", tmp_path / "ours", "--against", tmp_path / "mine")
    assert record["diagnostics"] == []


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["--against", "x"], 2, "E2914"),
        (["--check", "{model}", "--write", "x"], 2, "E2914"),
        (["--domain", "nobody"], 2, "E2914"),
        (["--check", "{model}", "--against", "{model}"], 3, "E3421"),
    ],
)
def test_what_makes_no_sense(arguments, status, code, relu, capsys):
    words = [word.format(model=relu) for word in arguments]
    assert run(capsys, *words, status=status)["error"]["code"] == code
