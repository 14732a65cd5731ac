"""`FloatGraph`: a float model as layers whose weights and biases are numpy arrays, for rewriting."""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper

from ..onnxfile.limits import DEFAULT, Limits
from ..onnxmodel.nodes import decoded
from ..onnxmodel.shapes import Shape, require_static, specialise
from ..onnxmodel.subgraph_copy import nested
from ..onnxmodel.tensors import array

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(eq=False)
class FloatLayer:
    """A node; an affine one owns its parameters.

    `weight` has its output channels on `axis`; `bias` is ``[O]``. Both are None for nodes that are not affine, or whose
    parameters are not constant. The node's own inputs 1 and 2 are then meaningless.
    """

    node: onnx.NodeProto
    weight: Floats | None = None
    bias: Floats | None = None
    axis: int = 0

    @property
    def output(self) -> str:
        """Name of the (first) result, which identifies the layer."""
        return str(self.node.output[0])

    @property
    def label(self) -> str:
        """The node's name, or that of its result."""
        return str(self.node.name or self.node.output[0])

    def attributes(self) -> dict[str, Any]:
        """The node's attributes by name; strings decoded."""
        return decoded(self.node)


class FloatGraph:
    """A model under rewriting: `layers` in topological order, `constants` by name, static `shapes` and `types`.

    `types` has the element type (of TensorProto) of each value, `captured` the names that subgraphs of nodes refer to.
    """

    def __init__(
        self, model: onnx.ModelProto, where: str, limits: Limits = DEFAULT, shapes: Mapping[str, int] | None = None
    ) -> None:
        self.where = where
        inferred, self.shapes = specialise(model, where, shapes, limits)
        require_static(inferred, self.shapes, where)
        self._source = model
        self.constants: dict[str, Array] = {tensor.name: array(tensor) for tensor in model.graph.initializer}
        self.layers = [FloatLayer(deepcopy(node)) for node in model.graph.node]
        self.inputs = [value for value in model.graph.input if value.name not in self.constants]
        self.outputs = list(model.graph.output)
        self.types = {
            value.name: int(value.type.tensor_type.elem_type)
            for value in [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]
        }
        self.captured = {name for node in model.graph.node for name in _subgraph_names(node)}
        self._names = {name for layer in self.layers for name in (*layer.node.input, *layer.node.output)}
        self._names |= set(self.constants) | {value.name for value in (*self.inputs, *self.outputs)}

    @property
    def opset(self) -> int:
        """Version of the default operator set."""
        return max((entry.version for entry in self._source.opset_import if entry.domain in ("", "ai.onnx")), default=1)

    def uses(self) -> Counter[str]:
        """How often each value is read: by nodes, by subgraphs, as an output of the model."""
        found = Counter(name for layer in self.layers for name in layer.node.input if name)
        found.update(self.captured)
        found.update(value.name for value in self.outputs)
        return found

    def is_float(self, name: str) -> bool:
        """Is this value a float32 tensor of static shape?"""
        return self.types.get(name) == TensorProto.FLOAT and name in self.shapes

    def names(self) -> set[str]:
        """The names that are taken."""
        return set(self._names)

    def shape(self, name: str) -> Shape | None:
        """The static shape of a value or constant, if known."""
        return self.constants[name].shape if name in self.constants else self.shapes.get(name)

    def model(self, nodes: Iterable[onnx.NodeProto], constants: dict[str, Array]) -> onnx.ModelProto:
        """The source model with other nodes and initializers; its inputs, outputs, names and operator sets stay."""
        made = deepcopy(self._source)
        graph = made.graph
        for items in (graph.node, graph.initializer, graph.value_info, graph.input, graph.quantization_annotation):
            del items[:]
        graph.node.extend(nodes)
        graph.input.extend(self.inputs)
        used = {name for node in graph.node for name in node.input} | {name for name in self.captured}
        used |= {value.name for value in self.outputs}
        graph.initializer.extend(
            numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
            for name, value in constants.items()
            if name in used
        )
        made.producer_name = "onnxhw"
        made.producer_version = ""
        return made


def unique(wanted: str, taken: set[str]) -> str:
    """`wanted`, numbered if it is taken; taken from now on."""
    name, count = wanted, 1
    while name in taken:
        name, count = f"{wanted}.{count}", count + 1
    taken.add(name)
    return name


def _subgraph_names(node: onnx.NodeProto) -> Iterable[str]:
    for graph in nested(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from (name for name in inner.input if name)
            yield from _subgraph_names(inner)
