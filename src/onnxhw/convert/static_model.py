"""`StaticModel`: a specialised model in plain Python, made once, however often it is converted."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import onnx

from ..onnxfile.elements import ELEMENTS
from ..onnxfile.large_constants import LargeConstants
from ..onnxfile.payload import unpacked
from ..onnxmodel.nodes import Attributes, Node
from ..onnxmodel.shapes import Shape
from .values import Const

NAMES = {number: str(kind.dtype) for number, kind in ELEMENTS.items()}
"""numpy's name of each of ONNX's element types, by number."""


@dataclass(frozen=True)
class StaticModel:
    """A model, and what a conversion looks up in it.

    shapes : static shape of each value that has one.
    large_constants : initializers whose data is not in the model.
    dtypes : numpy's element type of each tensor value whose type is known.
    nodes : in the model's order.
    constants : the initializers.
    inputs : those that have no default.
    tables : what conversions share: tables and movements, by all that makes them.
    others : gives the shapes at other sizes of a batch that is open; None where it is not.
    """

    model: onnx.ModelProto
    shapes: Mapping[str, Shape]
    large_constants: LargeConstants
    dtypes: Mapping[str, str]
    nodes: list[Node]
    constants: Mapping[str, Const]
    inputs: frozenset[str]
    tables: dict[tuple[Hashable, ...], Any] = field(default_factory=dict)
    others: Callable[[], list[Mapping[str, Shape]]] | None = None

    @cached_property
    def other_batch_shapes(self) -> list[Mapping[str, Shape]] | None:
        """What `others` gives."""
        return self.others() if self.others else None

    @cached_property
    def readers(self) -> Mapping[str, list[Node]]:
        """The nodes that have a value as an input."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                found.setdefault(name, []).append(node)
        return found

    @classmethod
    def of(
        cls,
        model: onnx.ModelProto,
        shapes: Mapping[str, Shape],
        large_constants: LargeConstants | None = None,
        others: Callable[[], list[Mapping[str, Shape]]] | None = None,
    ) -> "StaticModel":
        """From a model that was read and specialised, and the shapes of its values."""
        graph, away = model.graph, large_constants or LargeConstants()
        constants = {}
        for tensor in graph.initializer:
            name = tensor.name
            values = away.arrays.get(name)
            constants[name] = Const(unpacked(tensor) if values is None else values)
        inputs = frozenset(value.name for value in graph.input if value.name not in constants)
        alike: Attributes = {}
        nodes = [Node.of(node, alike) for node in graph.node]
        return cls(model, shapes, away, _element_types(graph), nodes, constants, inputs, others=others)


def _element_types(graph: onnx.GraphProto) -> dict[str, str]:
    found: dict[str, str] = {}
    known: dict[bytes, str | None] = {}  # most values have one of a few types
    for values in (graph.input, graph.value_info, graph.output):
        for value in values:
            text = value.type.SerializeToString()
            if text not in known:
                tensor = value.type.HasField("tensor_type")
                known[text] = NAMES.get(value.type.tensor_type.elem_type) if tensor else None
            kind = known[text]
            if kind is not None:
                found[value.name] = kind
    return found
