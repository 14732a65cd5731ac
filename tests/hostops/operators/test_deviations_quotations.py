"""What the tables of differences quote is in the documentation of the operator that onnx has."""

import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx.defs
import pytest
from onnx import TensorProto, helper

from onnxhw.hostops.operators.deviations import DEVIATIONS

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench"))
TABLE = importlib.import_module("differential.explained").TABLE
REFERS = {"CastLike": "Cast"}
"""Operators whose text sends the reader to that of another one."""
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NODES = {
    "Attention": (
        helper.make_node("Attention", ["q", "k", "v", "m"], ["y"]),
        [(FLOAT, [1, 1, 2, 2])] * 3 + [(BOOL, [2, 2])],
    ),
    **{
        name: (helper.make_node(name, ["x", "t"], ["y"], ignore_index=0), [(FLOAT, [3, 2]), (INT64, [3])])
        for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    },
}
"""Nodes from whose operands' types a function follows."""


def plain(text: str) -> str:
    """The text without Markdown, white space of one blank."""
    text = re.sub(r"\[([^\]\s]+)\]\(https?:[^)]*\)", r"\1", text.replace("<br>", " ").replace("<br/>", " "))
    return " ".join(re.sub(r"`|\*\*|</?i>|^\s*\*\s", "", text, flags=re.MULTILINE).split())


@cache
def documentation(name: str) -> tuple[str, ...]:
    """Every text of every version of an operator."""
    found: list[str] = []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.name == name:
            described = [*schema.attributes.values(), *schema.inputs, *schema.outputs, *schema.type_constraints]
            found += [schema.doc, *(one.description for one in described)]
    texts = tuple(plain(text) for text in found)
    if name in REFERS:
        assert any(f"documentation of the {REFERS[name]} operator" in text for text in texts)
        texts += documentation(REFERS[name])
    return texts


@cache
def body(name: str) -> str:
    """The function that defines an operator, in onnx's text form."""
    schema = onnx.defs.get_schema(name, 23 if name == "Attention" else onnx.defs.onnx_opset_version())
    if name not in NODES:
        return plain(onnx.printer.to_text(schema.function_body))
    node, types = NODES[name]
    known = [helper.make_tensor_type_proto(*one).SerializeToString() for one in types]
    version = schema.context_dependent_function_opset_versions[-1]
    made = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), known)
    return plain(onnx.printer.to_text(onnx.FunctionProto.FromString(made)))


def rows() -> Iterator[tuple[str, Any]]:
    for row in TABLE:
        for name in row.operators:
            yield name, row
    for deviation in DEVIATIONS:
        yield deviation.op_type, deviation


@pytest.mark.parametrize(("name", "row"), [pytest.param(n, r, id=f"{n}-{i}") for i, (n, r) in enumerate(rows())])
def test_quotations_are_in_the_text(name: str, row: Any) -> None:
    assert any(plain(row.quotation) in text for text in documentation(name)), row.quotation
    assert not row.body or plain(row.body) in body(name), row.body
    assert row.remark
    assert not re.search(r"(?<!\w)['\"‘“]", row.remark), "our own words are not in quotation marks"


def test_what_is_not_in_the_text_is_seen() -> None:
    """Words close to the true ones, and not them."""
    assert not any("no case changes" in text for text in documentation("StringNormalizer"))
    assert any("lowercased/uppercases/unchanged" in text for text in documentation("StringNormalizer"))
    assert not any(plain("x if x >= alpha, otherwise 0") in text for text in documentation("RNN"))
