"""The valid model that hostile ones are made of, and what a case is; see hostile_models.py."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Model = onnx.ModelProto
Build = Callable[[Path], "bytes | Path"]


@dataclass(frozen=True)
class Case:
    """What reading the file that `build` makes (in a folder of its own) must give, with limits changed by `flags`."""

    code: str
    name: str
    build: Build
    flags: list[str] = field(default_factory=list)


CASES: list[Case] = []
DATA = np.arange(6, dtype=np.float32).reshape(2, 3)


def base() -> Model:
    """A valid model: a weight ``w``, a Constant, a subgraph with a constant of its own, metadata."""
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(DATA, "deep"))],
        "inner",
        [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [2, 3])],
    )
    nodes = [
        helper.make_node("Add", ["x", "w"], ["y"], name="add"),
        helper.make_node("Constant", [], ["k"], name="constant", value=numpy_helper.from_array(DATA, "held")),
        helper.make_node("If", ["b"], ["z"], name="choice", then_branch=inner, else_branch=inner),
        helper.make_node("Sum", ["y", "k", "z"], ["out"], name="sum"),
    ]
    graph = helper.make_graph(
        nodes,
        "hostile",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("b", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(DATA, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"author": "someone"})
    return model


def attribute_tensor(model: Model) -> TensorProto:
    """The tensor in the Constant node."""
    return model.graph.node[1].attribute[0].t


def subgraph_tensor(model: Model) -> TensorProto:
    """The constant inside the first branch of the If."""
    return model.graph.node[2].attribute[0].g.node[0].attribute[0].t


def data_of(change: Callable[[bytes], bytes]) -> Build:
    """The bytes of the valid model, changed."""
    return lambda folder: change(base().SerializeToString())


def model_of(change: Callable[[Model], Any]) -> Build:
    """The valid model, changed."""

    def build(folder: Path) -> bytes:
        model = base()
        change(model)
        return model.SerializeToString()

    return build


def weight_of(change: Callable[[TensorProto], Any]) -> Build:
    """The valid model with its weight changed."""
    return model_of(lambda model: change(model.graph.initializer[0]))


def add(code: str, name: str, build: Build, *flags: str) -> None:
    """A case."""
    CASES.append(Case(code, name, build, list(flags)))
