"""`Trials`: host nodes that no kernel computes of operands of their shapes, known by trying before any run.

onnx's inference looks at few operators closely, and kernels at all: that channels are a multiple of a block, that a
scale has as many elements as there are channels, that an attribute is one that is implemented. What a node does with
numbers of these shapes does not depend on the numbers, but for operands that say sizes and places; these must be
constant. A node is refused if it fails of several kinds of numbers.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from ..convert.context import Context
from ..convert.static_model import StaticModel
from ..convert.values import Array, Const, QuantConst
from ..hostops.in_worker import refusal
from ..hostops.operators import is_ours
from ..onnxmodel.batching_rules import RANDOM
from ..onnxmodel.inference import undeclared
from ..onnxmodel.nodes import Node
from ..onnxmodel.shapes import Shape
from ..onnxmodel.specification.com_microsoft import CONTRIB
from ..onnxmodel.subgraph_copy import nested

LARGEST = 1 << 20
"""Most elements of a node's operands and results together: a quarter of `TOTAL`, so that no node takes all of it."""
TOTAL = 1 << 22
"""Most elements of all trials of a model: half a second for convolutions."""
MOST = 500
"""Most kinds of nodes of a model that are tried, at about a millisecond."""
TRAINING = "ai.onnx.preview.training"
DOMAINS = ("", "ai.onnx.ml", CONTRIB, TRAINING)
"""Those whose operators are tried all; of others, what is ours."""
NUMBERS = frozenset(["bfloat16", "float16", "float32", "float64", "int8", "uint8", "bool"])
"""Types of operands that are data; integers that are wider may be sizes and places."""
DATA = NUMBERS | {"int16", "uint16", "int32", "uint32", "int64", "uint64"}
"""Those of a first operand, which is data in every operator but `VALUED`."""
INTEGERS = frozenset(["BitShift", "GRU", "LSTM", "Mod", "NegativeLogLikelihoodLoss", "RNN", "SoftmaxCrossEntropyLoss"])
"""Operators whose integers behind the first are data too, or lengths and classes of which one of `FILLS` is right."""
PLACES: dict[tuple[str, str], frozenset[int]] = {
    **{("", name): frozenset([1]) for name in (
        "CumProd", "CumSum", "Gather", "GatherElements", "GatherND", "MaxUnpool", "ReverseSequence", "Scatter",
        "ScatterElements", "ScatterND", "Trilu")},
    ("", "Attention"): frozenset([3, 6]),
    ("", "DequantizeLinear"): frozenset([2]),
    ("", "QLinearConv"): frozenset([8]),
    ("", "RoiAlign"): frozenset([2]),
    ("", "RotaryEmbedding"): frozenset([3]),
    ("", "TensorScatter"): frozenset([2]),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): frozenset([1]),
    **{(TRAINING, name): frozenset([1]) for name in ("Adagrad", "Adam", "Momentum")},
}  # fmt: skip
"""By operator, operands of integers of which one of `FILLS` is right where anything is: indices into an axis, lengths
of sequences, counts, and integers that are data."""
VALUED = frozenset(["ConstantOfShape", "ImageDecoder", "OneHotEncoder", "Range", "SequenceAt"])
"""Operators that fail of some values of data: of sizes, of what is no image, of an unknown category."""
REAL_SIZES = frozenset(["Pad", "Resize", "Split", "Tile", "Upsample"])
"""Operators with operands behind the first that are real in some version, and sizes all the same."""


class Trials:
    """The trials of a model's nodes; each kind of node is tried once.

    Where the batch is open, a node is refused only if it fails at other sizes too.
    """

    def __init__(self, static: StaticModel, context: Context) -> None:
        self.static, self.context, self.known = static, context, dict[tuple[Any, ...], str]()
        self.tried = 0

    @cached_property
    def inferred(self) -> Mapping[str, tuple[int | None, ...]]:
        """The shapes that follow from inputs and constants, whatever the model declares."""
        return undeclared(self.static.model)

    def refused(self, node: Node) -> str:
        """Why no run can compute a node; "" if one can, or if that is not known."""
        domain, op_type = node.key
        known = domain in DOMAINS or is_ours(domain, op_type)
        if not known or op_type in RANDOM or op_type in VALUED or nested(node.proto):
            return ""
        reason = self._refused(node, self.context.shapes)
        if reason and self.static.other_batch_shapes is not None:
            found = [self._refused(node, shapes) for shapes in self.static.other_batch_shapes]
            return reason if found and all(found) else ""
        return reason

    def _refused(self, node: Node, shapes: Mapping[str, Shape]) -> str:
        operands: dict[str, UnknownOperand | Array] = {}
        for index, name in enumerate(node.input):
            operand = self._operand(node, index, shapes) if name else None
            if name and operand is None:
                return ""
            if operand is not None:
                operands[name] = operand
        asked = sum(prod(one.shape) for one in operands.values()) + sum(prod(shapes.get(n, ())) for n in node.results)
        if asked > LARGEST:
            return ""
        kept = (one if isinstance(one, UnknownOperand) else (one.shape, str(one.dtype), one.tobytes())
                for one in operands.values())  # fmt: skip
        attributes = (one.SerializeToString() for one in node.proto.attribute)
        places = tuple(list(operands).index(name) if name else None for name in node.input)
        known = tuple(self._inferred(name, shapes) for name in node.results)
        key = node.key, places, known, tuple(map(bool, node.output)), tuple(attributes), tuple(kept)
        if key not in self.known:
            self.tried += asked
            if len(self.known) >= MOST or self.tried > TOTAL:
                return ""
            self.known[key] = refusal(self._alone(node, operands, shapes), [_filled(operands, fill) for fill in FILLS])
        return self.known[key]

    def _inferred(self, name: str, shapes: Mapping[str, Shape]) -> Shape | None:
        """The shape of a result that a run is held against: one that inference finds, not one that is only declared."""
        known = name in self.inferred and None not in self.inferred[name] and shapes is self.context.shapes
        return shapes.get(name) if known else None

    def _alone(self, node: Node, operands: Mapping[str, Any], shapes: Mapping[str, Shape]) -> onnx.ModelProto:
        """A model of one node, whose results are said to be what onnx infers, not what the file declares."""
        types = {name: helper.np_dtype_to_tensor_dtype(np.dtype(one.dtype)) for name, one in operands.items()}
        graph = onnx.GraphProto(name="node", node=[node.proto])
        value = helper.make_tensor_value_info
        graph.input.extend(value(name, types[name], one.shape) for name, one in operands.items())
        for name in node.results:
            shape, dtype = self._inferred(name, shapes), self.context.dtypes.get(name)
            known = shape is not None and dtype in DATA | NUMBERS
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) if known else 0
            graph.output.append(value(name, kind, shape) if known else onnx.ValueInfoProto(name=name))
        imports = self.static.model.opset_import
        return onnx.ModelProto(ir_version=self.static.model.ir_version, opset_import=imports, graph=graph)

    def _operand(self, node: Node, index: int, shapes: Mapping[str, Shape]) -> "UnknownOperand | Array | None":
        """A constant's array, shape and type of what is not known; None for what forbids a trial."""
        name = node.input[index]
        value, shape, dtype = self.context.values.get(name), shapes.get(name), self.context.dtypes.get(name)
        if isinstance(value, (Const, QuantConst)):
            small = value.shape is not None and prod(value.shape) <= LARGEST
            return np.asarray(value.array if isinstance(value, Const) else value.real()) if small else None
        if index and node.op_type in REAL_SIZES:
            return None
        data = not index or node.op_type in INTEGERS or index in PLACES.get(node.key, ())
        if shape is None or prod(shape) > LARGEST or dtype not in (DATA if data else NUMBERS):
            return None
        return UnknownOperand(shape, str(dtype))


class UnknownOperand(NamedTuple):
    """An operand of which only this is known."""

    shape: Shape
    dtype: str


def _varied(shape: Shape) -> Array:
    """Numbers from 1 on that are not all equal."""
    return np.asarray(1 + np.arange(prod(shape)).reshape(shape) % 7)


FILLS: tuple[Callable[[Shape], Array], ...] = (_varied, np.ones, np.zeros)


def _filled(operands: Mapping[str, Any], fill: Callable[[Shape], Array]) -> dict[str, Array]:
    return {name: np.asarray(fill(one.shape)).astype(one.dtype) if isinstance(one, UnknownOperand) else one
            for name, one in operands.items()}  # fmt: skip
