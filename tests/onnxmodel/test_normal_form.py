"""What a file may say in several ways is said in one: the model means the same, and all that follows agrees."""


import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.errors import InvalidModelError
from onnxhw.onnxmodel import specification
from onnxhw.onnxmodel.normal_form import normalise
from onnxhw.onnxmodel.read import read_model
from onnxhw.partition import load, read

from .text_models import IO, Model, X, codes, imported, ours, same, text, theirs

SOFTMAX = "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }"
"""Up to version 12 over the last two axes, from 13 on over the last."""
TWICE = [
    [("", 13), ("", 12)],
    [("", 12), ("", 13)],
    [("", 12), ("ai.onnx", 13)],
    [("ai.onnx", 12), ("", 13)],
    [("ai.onnx", 13), ("ai.onnx", 11), ("", 12)],
    [("", 13), ("", 13)],
]


@pytest.mark.parametrize("opsets", TWICE, ids=str)
def test_the_highest_version_of_a_domain_binds(opsets: list[tuple[str, int]]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
    once, other, proto = (text(SOFTMAX, *several) for several in ([("", 13)], [("", 12)], opsets))
    assert codes(once) == set()
    assert codes(proto) == {"W3331"}
    assert np.abs(ours(once, x=x)[0] - ours(other, x=x)[0]).max() > 0.1
    same(ours(proto, x=x), ours(once, x=x))
    made = read_model(proto.SerializeToString())
    assert [(entry.domain or "ai.onnx", entry.version) for entry in made.opset_import] == [("ai.onnx", 13)]
    onnx.checker.check_model(made, full_check=True)


def test_the_highest_version_of_another_domain_binds() -> None:
    proto = text(
        f"{IO} {{ y = ai.onnx.ml.Scaler<offset=[1.0], scale=[2.0]>(x) }}", ("", 21), ("ai.onnx.ml", 1), ("", 21)
    )
    proto.opset_import.add(domain="ai.onnx.ml", version=3)
    assert codes(proto) == {"W3331"}
    same(ours(proto), [(X - 1) * 2])
    assert {entry.domain: entry.version for entry in read_model(proto.SerializeToString()).opset_import} == {
        "": 21,
        "ai.onnx.ml": 3,
    }


def test_a_version_that_cannot_be_is_an_error_beside_one_that_can() -> None:
    for version, code in ((0, "E3303"), (9999, "E4501")):
        found = specification.diagnose(text(f"{IO} {{ y = Relu(x) }}", ("", version), ("", 21)))
        assert {one.code for one in found if one.severity == "error"} == {code}


FUNCTION = '<domain: "f", opset_import: ["" : {}]> act (x) => (y) {{ {} }}'


def called(body: str, *opsets: tuple[str, int], main: int = 13) -> Model:
    shape = SOFTMAX.replace("Softmax", "f.act")
    proto = text(shape, ("", main), ("f", 1), functions=FUNCTION.format(21, body))
    imported(proto.functions[0], *opsets)
    return proto


def test_a_function_imports_a_domain_twice() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
    proto = called("y = Softmax(x)", ("", 12), ("ai.onnx", 13), ("", 11))
    assert codes(proto) == {"W3331"}
    same(ours(proto, x=x), ours(text(SOFTMAX, ("", 13)), x=x))
    refused = called("y = Softmax(x)", ("", 12), ("ai.onnx", 13), main=12)
    with pytest.raises(InvalidModelError, match="E3365"):
        read(refused.SerializeToString())


def test_functions_that_import_versions_of_a_domain_that_the_model_does_not() -> None:
    """TreeEnsembleRegressor means another operator from version 3 on; Binarizer never changed."""
    one = (
        '<domain: "f", opset_import: ["ai.onnx.ml" : {}]> {} (x) => (y) {{ y = ai.onnx.ml.Binarizer<threshold={}>(x) }}'
    )
    both = "\n".join([one.format(1, "a", 0.25), one.format(3, "b", 0.75)])
    proto = text(f"{IO} {{ z = f.a(x) y = f.b(z) }}", ("", 21), ("f", 1), functions=both)
    same(ours(proto), [(X > 0.25).astype(np.float32)])
    trees = both.replace("Binarizer<threshold=0.25>", "TreeEnsembleRegressor").replace(
        "Binarizer<threshold=0.75>", "TreeEnsembleRegressor"
    )
    proto = text(f"{IO} {{ z = f.a(x) y = f.b(z) }}", ("", 21), ("f", 1), functions=trees)
    with pytest.raises(InvalidModelError, match="E3365"):
        read(proto.SerializeToString())


def quantized(domain: str, op_type: str = "Quant", listed: bool = True) -> Model:
    """A QONNX model: Quant, Relu, Quant."""
    constants = {"s": np.float32(0.25), "z": np.float32(0), "b": np.float32(8)}
    more = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    nodes = [
        helper.make_node(op_type, ["x", "s", "z", "b"], ["a"], "first", domain=domain, **more),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node(op_type, ["r", "s", "z", "b"], ["y"], "last", domain=domain, **more),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    sets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if listed else [])]
    return helper.make_model(made, opset_imports=sets, ir_version=8)


DIALECTS = sorted(specification.signatures.EXTENSIONS)


@pytest.mark.parametrize("domain", [name for name in DIALECTS if "microsoft" not in name])
def test_a_qonnx_file_without_the_import_of_its_nodes_is_the_same_model(domain: str) -> None:
    proto = quantized(domain, listed=False)
    assert codes(proto) == {"W3332"}
    assert codes(quantized(domain)) == set()
    load(proto.SerializeToString())  # on the hardware as a whole
    same(ours(proto), ours(quantized(domain)))
    same(ours(proto), [np.maximum(X, 0)])
    assert {entry.domain: entry.version for entry in read_model(proto.SerializeToString()).opset_import} == {
        "": 17,
        domain: 1,
    }


ROUND = "q = com.microsoft.QuantizeLinear(x, s, z) {} = com.microsoft.DequantizeLinear(q, s, z)"
SCALE = "<float s = {0.25}, uint8 z = {128}>"


def test_an_operator_of_onnxruntime_needs_no_import_as_in_onnxruntime() -> None:
    proto = text(f"{IO} {SCALE} {{ {ROUND.format('y')} }}", ("", 21))
    assert codes(proto) == {"W3332"}
    same(ours(proto), [X])
    same(ours(proto), theirs(proto))


def test_the_import_may_be_missing_in_a_nested_graph_and_in_a_function() -> None:
    proto = text(
        f"""g (float[1,3] x, bool c) => (float[1,3] y) {SCALE} {{ y = If (c) <
        then_branch = a () => (float[1,3] t) {{ {ROUND.format("t")} }},
        else_branch = b () => (float[1,3] t2) {{ t2 = Neg(x) }}> }}""",
        ("", 21),
    )
    assert codes(proto) == {"W3332"}
    same(ours(proto, x=X, c=np.array(True)), [X])
    body = f"s = Constant<value=float {{0.25}}>() z = Constant<value=uint8 {{128}}>() {ROUND.format('y')}"
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
    function, listed = called(body, ("", 13)), called(body, ("", 13), ("com.microsoft", 1))
    assert codes(function) == {"W3332"}
    same(ours(function, x=x), ours(listed, x=x))


def test_a_domain_of_versions_is_not_assumed() -> None:
    for node in ("ai.onnx.ml.Binarizer", "org.nobody.Thing"):
        found = specification.diagnose(text(f"{IO} {{ y = {node}(x) }}", ("", 21)))
        assert {one.code for one in found if one.severity == "error"} == {"E3304"}


def test_a_domain_that_no_node_is_of_is_no_matter() -> None:
    opsets = [("", 21), ("org.nobody", 1), ("com.ms.internal.nhwc", 20), ("ai.onnx.training", 1)]
    assert codes(text(f"{IO} {{ y = Relu(x) }}", *opsets)) == set()
    assert codes(text(f"{IO} {{ y = org.nobody.Thing(x) }}", *opsets)) == {"W3301"}


def test_a_model_that_says_all_in_one_way_stays_as_it_is() -> None:
    proto = text(f"{IO} {{ y = Relu(x) }}", ("ai.onnx", 21), ("org.nobody", 4))
    before = proto.SerializeToString()
    normalise(proto)
    assert proto.SerializeToString() == before
