"""Changes of a model's nodes, their operands and values; see `node_mutants`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 127, 128, 255, 256, 1000, 65536, 1 << 24, (1 << 31) - 1, 1 << 31,
            -(1 << 31), 1 << 32, 1 << 40, (1 << 62) + 3, (1 << 63) - 1, -(1 << 63))  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e-45, 1e-38, 3e38, 1e10, -1e10, float("nan"), float("inf"),
          float("-inf"))  # fmt: skip
DIMS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 33, 100, 1000, 1 << 16, 1 << 24, 1 << 29, 1 << 31, 1 << 40, (1 << 63) - 1, -1, -2)
WORDS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge", "wrap", "nearest", "linear",
         "cubic", "bilinear", "floor", "ceil", "round_prefer_floor", "asymmetric", "align_corners", "half_pixel",
         "pytorch_half_pixel", "tf_crop_and_resize", "half_pixel_symmetric", "zeros", "border", "reflection", "DCR",
         "CRD", "LEFT", "RIGHT", "add", "mul", "max", "min", "none", "mean", "sum", "tanh", "Tanh", "Sigmoid",
         "forward", "reverse", "bidirectional", "ij,jk->ik", "...ii->...i", "i" * 40, "\xe4")  # fmt: skip
SMALL_OPSETS = (7, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23)
Feeds = dict[str, Any]


@dataclass
class Work:
    """A mutant in the making."""

    other: Callable[[Random], onnx.ModelProto]
    """Another model of the suite."""
    model: onnx.ModelProto
    feeds: Feeds
    rng: Random

    @property
    def graph(self) -> onnx.GraphProto:
        return self.model.graph

    def node(self) -> onnx.NodeProto:
        """A node; more often one with attributes, or none of the quantizers that most are."""
        nodes = [node for node in self.graph.node if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]
        return self.rng.choice(nodes if nodes and self.rng.random() < 0.8 else list(self.graph.node))

    def names(self) -> list[str]:
        """Everything that can be read."""
        return [*(value.name for value in self.graph.input), *(tensor.name for tensor in self.graph.initializer),
                *(name for node in self.graph.node for name in node.output)]  # fmt: skip

    def integer(self, near: int = 0) -> int:
        """Near what was there, small, or anything."""
        kind = self.rng.random()
        if kind < 0.5:
            return near + self.rng.choice((-2, -1, 1, 2))
        return self.rng.randrange(-6, 12) if kind < 0.75 else self.rng.choice(INTEGERS)


def _attribute_value(work: Work) -> None:
    node, rng = work.node(), work.rng
    if not node.attribute:
        return _attribute_added(work)
    attribute = rng.choice(list(node.attribute))
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = max(-(1 << 63), min(work.integer(attribute.i), (1 << 63) - 1))
    elif kind == AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif kind == AttributeProto.STRING:
        attribute.s = rng.choice(WORDS).encode()
    elif kind in (AttributeProto.INTS, AttributeProto.FLOATS):
        values = attribute.ints if kind == AttributeProto.INTS else attribute.floats
        action = rng.random()
        if action < 0.6 and len(values):
            place = rng.randrange(len(values))
            value = work.integer(int(values[place])) if kind == AttributeProto.INTS else rng.choice(FLOATS)
            values[place] = value
        elif action < 0.8 and len(values):
            del values[rng.randrange(len(values))]
        else:
            values.append(work.integer(1) if kind == AttributeProto.INTS else rng.choice(FLOATS))
    elif kind == AttributeProto.STRINGS and len(attribute.strings):
        attribute.strings[rng.randrange(len(attribute.strings))] = rng.choice(WORDS).encode()
    elif kind == AttributeProto.TENSOR:
        _hostile(work, attribute.t)


def _attribute_removed(work: Work) -> None:
    node = work.node()
    if node.attribute:
        del node.attribute[work.rng.randrange(len(node.attribute))]


def _attribute_added(work: Work) -> None:
    """One that the operator's schema has, or any other."""
    node, rng = work.node(), work.rng
    opset = max((entry.version for entry in work.model.opset_import if entry.domain == node.domain), default=1)
    kinds = _schema(node.op_type, node.domain, opset)
    if not kinds and rng.random() < 0.9:
        return
    names = sorted(kinds) if kinds and rng.random() < 0.95 else ["axis", "axes", "to", "value", "keepdims", "pads"]
    name = rng.choice(names)
    kind = kinds.get(name, AttributeProto.INT)
    values: dict[int, Callable[[], Any]] = {
        AttributeProto.INT: lambda: work.integer(1),
        AttributeProto.FLOAT: lambda: rng.choice(FLOATS),
        AttributeProto.STRING: lambda: rng.choice(WORDS),
        AttributeProto.INTS: lambda: [work.integer(1) for _ in range(rng.randrange(1, 5))],
        AttributeProto.FLOATS: lambda: [rng.choice(FLOATS) for _ in range(rng.randrange(1, 4))],
        AttributeProto.STRINGS: lambda: [rng.choice(WORDS) for _ in range(rng.randrange(1, 3))],
        AttributeProto.TENSOR: lambda: _tensor(work, ""),
    }
    if kind in values and name not in [attribute.name for attribute in node.attribute]:
        node.attribute.append(helper.make_attribute(name, values[kind](), attr_type=kind))


@cache
def _schema(op_type: str, domain: str, version: int) -> dict[str, int]:
    try:
        schema = defs.get_schema(op_type, min(version, 1000), domain)
    except defs.SchemaError:
        return {}
    return {name: int(entry.type.value) for name, entry in schema.attributes.items()}


def _attribute_type(work: Work) -> None:
    node, rng = work.node(), work.rng
    if node.attribute:
        attribute = rng.choice(list(node.attribute))
        name = attribute.name
        attribute.Clear()
        attribute.CopyFrom(helper.make_attribute(name, rng.choice((1, 1.5, "x", [1, 2], [0.5], [1 << 62]))))


def _input_swapped(work: Work) -> None:
    node, rng = work.node(), work.rng
    if len(node.input) > 1:
        a, b = rng.sample(range(len(node.input)), 2)
        node.input[a], node.input[b] = node.input[b], node.input[a]


def _input_dropped(work: Work) -> None:
    node, rng = work.node(), work.rng
    if node.input:
        place = rng.randrange(len(node.input))
        if rng.random() < 0.5:
            del node.input[place]
        else:
            node.input[place] = ""


def _input_rewired(work: Work) -> None:
    node, rng = work.node(), work.rng
    if node.input and rng.random() < 0.7:
        node.input[rng.randrange(len(node.input))] = rng.choice(work.names())
    else:
        node.input.append(rng.choice([*work.names(), ""]))


def _output_changed(work: Work) -> None:
    node, rng = work.node(), work.rng
    action = rng.randrange(4)
    if action == 0 and len(node.output) > 1:
        node.output[rng.randrange(len(node.output))] = ""
    elif action == 1 and len(node.output) > 1:
        del node.output[-1]
    elif action == 2:
        node.output.append(f"more{rng.randrange(1000)}")
    else:
        inner = rng.choice([name for one in work.graph.node for name in one.output])
        if inner not in [value.name for value in work.graph.output]:
            work.graph.output.append(untold(work, inner))


def untold(work: Work, name: str) -> onnx.ValueInfoProto:
    """An output of the type of another, without a shape; at times of no type."""
    value = onnx.ValueInfoProto(name=name)
    known = [one for one in work.graph.output if one.type.HasField("tensor_type")]
    if known and work.rng.random() < 0.9:
        value.type.tensor_type.elem_type = work.rng.choice(known).type.tensor_type.elem_type
    return value


def _promoted(work: Work) -> None:
    """An input becomes a constant: of the suite's data, or hostile."""
    inputs = [value for value in work.graph.input if isinstance(work.feeds.get(value.name), np.ndarray)]
    if not inputs:
        return
    value = work.rng.choice(inputs[1:] if len(inputs) > 1 and work.rng.random() < 0.7 else inputs)
    tensor = numpy_helper.from_array(work.feeds.pop(value.name), value.name)
    if work.rng.random() < 0.6:
        _hostile(work, tensor)
    work.graph.input.remove(value)
    work.graph.initializer.append(tensor)


def _constant_changed(work: Work) -> None:
    if work.graph.initializer:
        _hostile(work, work.rng.choice(list(work.graph.initializer)))
    else:
        _promoted(work)


def _hostile(work: Work, tensor: TensorProto) -> None:
    """Other values, another shape or another type in a tensor."""
    rng, name = work.rng, tensor.name
    array = np.array(numpy_helper.to_array(tensor))
    action = rng.random()
    if action < 0.6 and array.size:
        _values(work, array)
    elif action < 0.7:
        array = array.reshape(-1)
    elif action < 0.75 and array.size:
        array = array.reshape(-1)[:1].reshape(())
    elif action < 0.8:
        array = array.reshape(-1)[:-1]
    elif action < 0.85:
        array = np.concatenate([array.reshape(-1)] * 2)
    elif action < 0.9:
        array = array[None]
    elif array.dtype.kind in "iufb":
        array = array.astype(rng.choice((np.int64, np.int32, np.float32, np.float64, np.int8, np.uint8, np.bool_)))
    tensor.CopyFrom(numpy_helper.from_array(array, name))


def _values(work: Work, array: np.ndarray[Any, Any]) -> None:
    rng, flat = work.rng, array.reshape(-1)
    for _ in range(rng.choice((1, 1, 2, flat.size if flat.size < 100 else 1))):
        place = rng.randrange(flat.size)
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            flat[place] = min(max(work.integer(int(flat[place])), int(limits.min)), int(limits.max))
        elif array.dtype.kind == "f":
            flat[place] = rng.choice((*FLOATS, float(flat[place]) * 1.5, 0.25, 3.0))
        elif array.dtype.kind == "b":
            flat[place] = not flat[place]
    array[...] = flat.reshape(array.shape)


def _tensor(work: Work, name: str) -> TensorProto:
    rng = work.rng
    shape = rng.choice(((), (1,), (2,), (0,), (1, 3), (2, 2, 2)))
    kind = rng.choice((np.float32, np.int64, np.int32, np.uint8, np.bool_))
    return numpy_helper.from_array(np.full(shape, rng.choice((0, 1, 2)), kind), name)


def _shape(work: Work) -> None:
    """A dimension of an input: another size, a symbol, nothing; or one more or fewer of them."""
    rng = work.rng
    values = [value for value in [*work.graph.input, *work.graph.output] if value.type.HasField("tensor_type")]
    value = rng.choice(values)
    dims = value.type.tensor_type.shape.dim
    action = rng.random()
    if action < 0.7 and len(dims):
        dim = rng.choice(list(dims))
        size = rng.choice(("N", "M", None, dim.dim_value + 1, dim.dim_value * 2, *DIMS))
        dim.Clear()
        if isinstance(size, str):
            dim.dim_param = size
        elif size is not None:
            dim.dim_value = min(size, (1 << 63) - 1)
    elif action < 0.8 and len(dims):
        del dims[rng.randrange(len(dims))]
    elif action < 0.9:
        dims.add(dim_value=rng.choice((1, 1, 2, 3)))
    else:
        value.type.tensor_type.ClearField("shape")
    work.feeds.pop(value.name, None)


def _element_type(work: Work) -> None:
    values = [value for value in [*work.graph.input, *work.graph.output] if value.type.HasField("tensor_type")]
    value = work.rng.choice(values)
    value.type.tensor_type.elem_type = work.rng.choice((1, 1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 17, 22, 23))
    work.feeds.pop(value.name, None)


def data(work: Work) -> None:
    """Other data for an input: the model stays as it is."""
    names = [name for name, feed in work.feeds.items() if isinstance(feed, np.ndarray) and feed.size]
    if names:
        name = work.rng.choice(names)
        changed = np.array(work.feeds[name])
        _values(work, changed)
        work.feeds[name] = changed


CHANGES: Sequence[tuple[Callable[[Work], None], int]] = (
    (_attribute_value, 14), (_attribute_removed, 5), (_attribute_added, 8), (_attribute_type, 1), (_input_swapped, 4),
    (_input_dropped, 4), (_input_rewired, 6), (_output_changed, 4), (_promoted, 12), (_constant_changed, 12),
    (_shape, 8), (_element_type, 3),
)  # fmt: skip
"""The changes, and how often each is chosen."""
