"""The model's own fields: versions, operator sets, metadata, training information."""

from collections.abc import Callable
from typing import Any

import onnx
import pytest

from onnxhw.errors import InvalidModelError, UnsupportedError
from onnxhw.onnxmodel import specification

from .conftest import found, text_model

Model = onnx.ModelProto


def opsets(*entries: tuple[str, int]) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        del model.opset_import[:]
        model.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in entries)

    return change


def setting(**values: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        for name, value in values.items():
            setattr(model, name, value)

    return change


def of_domain(domain: str) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        model.graph.node[0].domain = domain
        opsets(("", 21), (domain, 1))(model)

    return change


def metadata(*keys: str) -> Callable[[Model], None]:
    return lambda model: model.metadata_props.extend(onnx.StringStringEntryProto(key=key, value="v") for key in keys)


def test_a_plain_model_has_no_findings(plain: Model) -> None:
    assert found(plain) == set()


NEWEST = onnx.defs.onnx_opset_version()
CASES = [
    ("E3300", lambda model: model.ClearField("ir_version"), setting(ir_version=onnx.IR_VERSION)),
    ("E3300", setting(ir_version=-4), setting(ir_version=4)),
    ("E4500", setting(ir_version=2), setting(ir_version=4)),
    ("E4500", setting(ir_version=onnx.IR_VERSION + 1), setting(ir_version=onnx.IR_VERSION)),
    ("E3301", opsets(), opsets(("", 21))),
    ("W3331", opsets(("", 21), ("ai.onnx", 21)), opsets(("ai.onnx", 21))),
    ("W3331", opsets(("", 21), ("", 20)), opsets(("", 21), ("ai.onnx.ml", 3))),
    ("E3303", opsets(("", 21), ("com.microsoft", 0)), opsets(("", 21), ("com.microsoft", 1))),
    ("E4501", opsets(("", 9999)), opsets(("", NEWEST))),
    ("E4501", opsets(("", 1 << 62)), opsets(("", NEWEST))),
    ("E4501", opsets(("", 21), ("ai.onnx.ml", 999)), opsets(("", 21), ("ai.onnx.ml", 5))),
    ("W3300", opsets(("", 6)), opsets(("", 7))),
    ("W3301", of_domain("org.nobody"), of_domain("qonnx.custom_op.general")),
    ("W3302", opsets(("ai.onnx.ml", 3)), opsets(("ai.onnx.ml", 3), ("", 21))),
    ("W3303", lambda model: model.ClearField("domain"), setting(domain="org.example")),
    ("W3304", setting(model_version=-1), setting(model_version=0)),
    ("W3338", setting(model_version=1 << 48), setting(model_version=0)),
    ("W3305", metadata("author", "author"), metadata("model_author", "model_license")),
    ("W3306", lambda model: model.training_info.add(), lambda model: None),
]


@pytest.mark.parametrize(
    ("code", "broken", "right"), CASES, ids=[f"{code}-{n}" for n, (code, _, _) in enumerate(CASES)]
)
def test_model_fields(plain: Model, code: str, broken: Callable[[Model], None], right: Callable[[Model], None]) -> None:
    good = Model()
    good.CopyFrom(plain)
    right(good)
    assert found(good) == set()
    broken(plain)
    assert found(plain) == {code}


def test_every_ir_version_from_3_on_is_known(plain: Model) -> None:
    for version in range(3, onnx.IR_VERSION + 1):
        plain.ir_version = version
        assert found(plain) == set()


def test_every_operator_set_from_7_on_is_known() -> None:
    for opset in range(7, NEWEST + 1):
        assert found(text_model("g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }", opset=opset)) == set()


def test_training_information_is_never_an_error(plain: Model) -> None:
    training = plain.training_info.add()
    training.algorithm.node.add(op_type="NoSuchOperator", input=["nowhere"])
    training.update_binding.add(key="a", value="b")
    assert [one.severity for one in specification.diagnose(plain)] == ["warning"]


@pytest.mark.parametrize(
    ("version", "text"),
    [(7, "7"), (0, "0"), (1 << 48 | 2 << 32 | 3, "1.2.3"), (5 << 32, "0.5.0"), ((1 << 32) - 1, "4294967295")],
)
def test_semantic_model_versions(version: int, text: str) -> None:
    assert specification.version_text(version) == text


def test_check_shows_the_models_version(plain: Model) -> None:
    plain.model_version = 1 << 48 | 2 << 32 | 3
    (note,) = [one for one in specification.diagnose(plain) if one.code == "W3338"]
    assert (note.severity, note.where) == ("info", "model_version")
    assert note.what.endswith(" 1.2.3")


def test_all_errors_are_raised_together() -> None:
    model = text_model("g (float[1,3] x) => (float[1,3] z) { y = Relu(x, x) z = Swish(y) w = Relu(nowhere) }")
    with pytest.raises(InvalidModelError) as caught:
        specification.raise_errors(specification.diagnose(model), "m.onnx")
    assert caught.value.code == "E3332"
    assert all(code in str(caught.value) for code in ("m.onnx: 3 errors", "E3332", "E3330", "E3313"))
    assert [one.code for one in caught.value.diagnostics] == ["E3332", "E3330", "E3313"]


def test_the_text_lists_twenty_errors() -> None:
    nodes = " ".join(f"y{n} = Relu(nowhere{n})" for n in range(30))
    with pytest.raises(InvalidModelError, match="30 errors") as caught:
        model = text_model(f"g (float[1] x) => (float[1] y0) {{ {nodes} }}")
        specification.raise_errors(specification.diagnose(model), "m.onnx")
    assert str(caught.value).count("E3313") == 21
    assert str(caught.value).endswith("and 10 more")


def test_an_unknown_version_alone_is_unsupported(plain: Model) -> None:
    plain.ir_version = 99
    with pytest.raises(UnsupportedError, match="E4500"):
        specification.raise_errors(specification.diagnose(plain), "m.onnx")
    plain.graph.name = ""
    with pytest.raises(InvalidModelError, match="E3310"):
        specification.raise_errors(specification.diagnose(plain), "m.onnx")


def test_warnings_raise_nothing(plain: Model) -> None:
    plain.ClearField("domain")
    specification.raise_errors(specification.diagnose(plain), "m.onnx")
