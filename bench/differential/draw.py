"""`Draw`: one random model of an operator.

Every choice has a name and a list of options, and takes an option that was used least so far, or any. So each option of
each choice comes up in the first models, and the coverage is a count.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from .registry import Operator
from .values import numbers

Array = npt.NDArray[Any]
UNSET = "(not given)"
SYSTEMATIC = 0.7
"""Share of choices that take the option used least, so that the others meet it with random ones."""
CONSTANT = 0.25
"""Share of operands behind the first that are initializers, as in files of exporters."""
RANKS = ("scalar", "1-D", "2-D", "3-D", "4-D", "5-D", "empty")


class Draw:
    """A model under construction, and the options that it took."""

    def __init__(self, operator: Operator, seed: Sequence[int], counts: Counter[tuple[str, str]]) -> None:
        self.operator, self.counts = operator, counts
        self.rng = np.random.default_rng(seed)
        self.since = operator.since
        self.options: dict[str, str] = {}
        self.existing: dict[str, list[str]] = {}
        self.attributes: dict[str, Any] = {}
        self.inputs: list[str] = []
        self.values: list[onnx.ValueInfoProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.feeds: dict[str, Any] = {}
        self.outputs = 1
        self.before: list[onnx.NodeProto] = []
        self._types: dict[str, str] = {}

    # Choices.

    def choose(self, name: str, options: Sequence[Any]) -> Any:
        """One of the options, noted under the name."""
        labels = [_label(option) for option in options]
        self.existing[name] = labels
        if self.rng.random() < SYSTEMATIC:
            least = min(self.counts[name, label] for label in labels)
            index = int(self.rng.choice([i for i, one in enumerate(labels) if self.counts[name, one] == least]))
        else:
            index = int(self.rng.integers(len(options)))
        self.options[name] = labels[index]
        return options[index]

    def type(self, variable: str, only: Sequence[str] = ()) -> str:
        """The element type of a type variable, the same in the whole model: "float" of "tensor(float)"."""
        if variable not in self._types:
            known = self.operator.types.get(variable, (variable,))
            known = tuple(one for one in known if one.startswith("tensor(")) or known
            short = [one.removeprefix("tensor(").removesuffix(")") for one in known]
            self._types[variable] = self.choose(variable, [one for one in short if one in only or not only] or short)
        return self._types[variable]

    def fix(self, variable: str, element: str) -> None:
        """The element type of a type variable that other choices decide."""
        self._types[variable] = element

    def attr(self, name: str, options: Sequence[Any], needed: bool = False) -> Any:
        """Set the attribute to one of the options, or leave it out unless it is needed; its value or its default."""
        schema = self.operator.schema.attributes.get(name)
        if schema is None:
            return None
        value = self.choose(name, [*options] if schema.required or needed else [UNSET, *options])
        if isinstance(value, str) and value == UNSET:
            default = schema.default_value
            return helper.get_attribute_value(default) if default.name else None
        self.attributes[name] = value
        return value

    def has(self, attribute: str) -> bool:
        """Whether this version of the operator has the attribute."""
        return attribute in self.operator.schema.attributes

    def maybe(self, name: str) -> bool:
        """Whether an optional operand or output is there."""
        return bool(self.choose(name, [True, False]))

    def integer(self, low: int, high: int) -> int:
        """From low to high."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, options: Sequence[Any]) -> Any:
        """One of the options, not noted."""
        return options[int(self.rng.integers(len(options)))]

    # Shapes and values.

    def shape(self, low: int = 0, high: int = 5, empty: bool = True, largest: int = 4) -> tuple[int, ...]:
        """A shape of low to high dimensions, of a rank class."""
        classes = [one for i, one in enumerate(RANKS[:6]) if low <= i <= high] + ["empty"] * (empty and high > 0)
        name = self.choose("rank", classes)
        rank = self.integer(max(low, 1), high) if name == "empty" else RANKS.index(name)
        sizes = [self.integer(1, largest) for _ in range(rank)]
        if name == "empty":
            sizes[self.integer(0, rank - 1)] = 0
        return tuple(sizes)

    def broadcast(self, count: int) -> list[tuple[int, ...]]:
        """Shapes that broadcast to one."""
        whole = self.shape()
        shapes = []
        way = self.choose("broadcast", ["equal", "fewer dimensions", "ones", "scalar"])
        plain = self.integer(0, count - 1)
        for index in range(count):
            if index == plain or way == "equal":
                shapes.append(whole)
            elif way == "fewer dimensions":
                shapes.append(whole[self.integer(0, len(whole)) :])
            elif way == "ones":
                shapes.append(tuple(1 if self.rng.random() < 0.5 else size for size in whole))
            else:
                shapes.append(())
        return shapes

    def array(self, variable: str, shape: Sequence[int], style: str = "", only: Sequence[str] = ()) -> Array:
        """Values of a type variable's element type; `style` as of `numbers`, drawn if not given."""
        return self.of(self.type(variable, only), shape, style)

    def of(self, element: str, shape: Sequence[int], style: str = "") -> Array:
        """Values of an element type."""
        return numbers(
            self.rng, element, tuple(shape), style or self.choose("values", ["plain", "ties", "edges", "special"])
        )

    # Operands.

    def x(self, array: Any, constant: bool | None = None) -> Array:
        """Another operand: a feed or a constant."""
        array = np.asarray(array)
        name = f"x{len(self.inputs)}"
        narrow = array.dtype.kind == "V" or array.dtype.name in ("bfloat16", "int4", "uint4", "int2", "uint2") or (
            array.dtype.name.startswith("float8"))  # fmt: skip
        if constant is None:
            constant = narrow or bool(self.inputs and self.rng.random() < CONSTANT)
        self.inputs.append(name)
        if constant:
            self.constants.append(numpy_helper.from_array(array, name))
            return array
        element = TensorProto.STRING if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)
        self.values.append(helper.make_tensor_value_info(name, element, array.shape))
        self.feeds[name] = array
        return array

    def skip(self) -> None:
        """An operand that is left out."""
        self.inputs.append("")

    def ints(self, values: Any, element: str = "int64", constant: bool | None = None) -> None:
        """An operand of integers."""
        self.x(np.array(values, element), constant)

    def feed(self, kind: onnx.TypeProto, value: Any) -> None:
        """An operand that is no tensor."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self.values.append(helper.make_value_info(name, kind))
        self.feeds[name] = value

    # The model.

    def model(self) -> onnx.ModelProto:
        """The node in a model; results that numpy has no type for are cast."""
        operator = self.operator
        names = [f"y{i}" for i in range(self.outputs)]
        inputs = list(self.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        node = helper.make_node(operator.name, inputs, names, name="node", domain=operator.domain)
        for name, value in self.attributes.items():
            kind = operator.schema.attributes[name].type if name in operator.schema.attributes else None
            node.attribute.append(
                helper.make_attribute(name, value, attr_type=kind.value if kind is not None else None)
            )
        nodes, results = [*self.before, node], list(names)
        if any(c.data_type in NARROW for c in self.constants) or any(
            a == "to" or a == "dtype" or a == "output_dtype" for a in self.attributes
        ):
            nodes, results = self._widened(nodes, names)
        imports = [helper.make_opsetid(operator.domain, operator.opset)]
        if operator.domain:
            imports.append(helper.make_opsetid("", 18))
        graph = helper.make_graph(nodes, "case", self.values, [self._output(n) for n in results], self.constants)
        version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        model = helper.make_model(graph, opset_imports=imports, ir_version=max(8, version))
        return typed(model)

    def _output(self, name: str) -> onnx.ValueInfoProto:
        """An output, with the element type that the schema gives it."""
        outputs = self.operator.schema.outputs
        place = int(name[1:]) if name[1:].isdigit() else len(outputs)
        declared = outputs[place].type_str if place < len(outputs) else ""
        known = self.operator.types.get(declared, ())
        text = self._types.get(declared) or (known[0] if len(known) == 1 else declared)
        text = text.removeprefix("tensor(").removesuffix(")").upper()
        if text in list(TensorProto.DataType.keys()):
            return helper.make_tensor_value_info(name, TensorProto.DataType.Value(text), None)
        return onnx.ValueInfoProto(name=name)

    def _widened(self, nodes: list[onnx.NodeProto], names: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        """The model with a Cast behind every result that is narrower than numpy knows."""
        graph = helper.make_graph(nodes, "case", self.values, [self._output(n) for n in names], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(self.operator.domain, self.operator.opset)])
        known = {value.name: value for value in typed(model).graph.output}
        results = []
        for name in names:
            element = known[name].type.tensor_type.elem_type if known[name].type.HasField("tensor_type") else 0
            if element in NARROW:
                whole = element in INTEGERS
                to = TensorProto.INT8 if whole else TensorProto.FLOAT
                nodes.append(helper.make_node("Cast", [name], [f"{name}_wide"], to=to))
            results.append(f"{name}_wide" if element in NARROW else name)
        return nodes, results


INTEGERS = (TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2)
NARROW = (TensorProto.BFLOAT16, *INTEGERS, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
          TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ, TensorProto.FLOAT8E8M0,
          TensorProto.FLOAT4E2M1)  # fmt: skip


def typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types of its outputs as onnx infers them."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return model
    for value, known in zip(model.graph.output, inferred.graph.output, strict=True):
        if known.HasField("type"):
            value.type.CopyFrom(known.type)
        if value.type.HasField("tensor_type") and model.graph.node[0].domain:
            value.type.tensor_type.ClearField("shape")  # onnx infers wrong ones there
    return model


def _label(option: Any) -> str:
    return option.decode() if isinstance(option, bytes) else str(option)
