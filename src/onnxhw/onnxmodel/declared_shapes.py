"""Shapes that a model declares of its outputs beside those that its nodes give: where inference knows, it is right.

Exporters write outputs of shapes that no run gives. Inference therefore sees outputs without their shapes, and
`merged` adds what is declared where nothing is inferred. Such sizes are marked: a run may contradict them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx

from .nodes import reads

MARK = "onnxhw.declared"
"""The key, in the metadata of a value, of the axes whose size is declared and not inferred; "rank" if that is too."""
RANK = "rank"
CONTAINERS = ("sequence_type", "optional_type", "map_type")
"""Kinds of types that hold other types."""
INVENTED = "unk__"
"""How onnx's inference begins names of its own for sizes that it does not know; two inferences give the same names."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Contradiction:
    """What is declared of a value, and what its node gives; `bound` if a dimension variable is said to have both."""

    name: str
    said: str
    inferred: str
    bound: bool

    @property
    def text(self) -> str:
        """Both in one sentence."""
        return f"its shape is declared as {self.said}, and its node gives {self.inferred}"


def element_of(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor | None:
    """The tensor type in a type: its own, or that of the elements of sequences, optionals and maps; None for others."""
    while (name := kind.WhichOneof("value")) in CONTAINERS:
        kind = kind.map_type.value_type if name == "map_type" else getattr(kind, name).elem_type
    return kind.tensor_type if name == "tensor_type" else None


def take_declared(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The outputs as they are declared; in the graph those that nodes make have no shape afterwards, nor have the
    elements of those that are no tensors."""
    declared = []
    made = {name for node in graph.node for name in node.output}
    for value in graph.output:
        kind = element_of(value.type)
        if value.name in made and kind is not None and kind.HasField("shape"):
            declared.append(onnx.ValueInfoProto.FromString(value.SerializeToString()))
            kind.ClearField("shape")
    return declared


def bound_axes(values: Iterable[onnx.ValueInfoProto]) -> dict[str, frozenset[int]]:
    """The axes of each value that have a dimension variable."""
    return {
        value.name: frozenset(axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param)
        for value in values
    }


def merged(
    declared: Iterable[onnx.ValueInfoProto],
    graph: onnx.GraphProto,
    bound: Mapping[str, Collection[int]],
    counted: Mapping[str, Shape],
) -> tuple[list[Contradiction], dict[str, str], set[str]]:
    """Add what is declared to the inferred outputs of `graph`, in place, where inference does not know it.

    Returns the contradictions, in which the inferred size stays; the marks of outputs whose sizes are only declared
    (those of `bound` axes bind, as does a variable); and the outputs that were changed. `counted` are shapes that may
    be declared although they are wrong: `miscounted_windows.whole_windows`.
    """
    places = {value.name: value for value in graph.output}
    contradictions, marks, changed = [], {}, set()
    for value in declared:
        name, tensor = value.name, element_of(value.type)
        kind = element_of(places[name].type) if name in places else None
        if kind is None or tensor is None or value.type.WhichOneof("value") != places[name].type.WhichOneof("value"):
            continue
        said, variables = tensor.shape, bound.get(name, ())
        if not kind.HasField("shape"):
            kind.shape.CopyFrom(said)
            marks[name] = " ".join([RANK, *_fixed(said, variables)])
            changed.add(name)
            continue
        if name in counted and _static(said) == counted[name]:
            continue
        if len(said.dim) != len(kind.shape.dim):
            contradictions.append(Contradiction(name, shown(said), shown(kind.shape), False))
            continue
        text, wrong, loose = shown(kind.shape), [], []
        for axis, (one, other) in enumerate(zip(said.dim, kind.shape.dim, strict=True)):
            if other.HasField("dim_value"):
                if one.HasField("dim_value") and one.dim_value != other.dim_value:
                    wrong.append(axis)
            elif one.HasField("dim_value") or one.dim_param:
                other.CopyFrom(one)
                changed.add(name)
                if one.HasField("dim_value") and axis not in variables:
                    loose.append(str(axis))
        if wrong:
            contradictions.append(Contradiction(name, shown(said), text, any(axis in variables for axis in wrong)))
        if loose:
            marks[name] = " ".join(loose)
    return contradictions, marks, changed


def only_declared(
    values: Iterable[onnx.ValueInfoProto], bound: Mapping[str, Collection[int]]
) -> dict[str, str]:
    """The marks of values of which inference knows nothing."""
    return {
        value.name: " ".join([RANK, *_fixed(value.type.tensor_type.shape, bound.get(value.name, ()))])
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def name_sizes(declared: Mapping[str, onnx.ValueInfoProto], graph: onnx.GraphProto) -> None:
    """Give sizes of values that inference does not know the dimension variables that are declared for them."""
    for value in graph.value_info:
        if value.name in declared:
            said, dims = declared[value.name].type.tensor_type.shape.dim, value.type.tensor_type.shape.dim
            if len(said) == len(dims):
                for one, other in zip(said, dims, strict=True):
                    if one.dim_param and not other.HasField("dim_value"):
                        other.dim_param = one.dim_param


def unmark(values: Iterable[onnx.ValueInfoProto]) -> None:
    """Remove marks that a file has."""
    for value in values:
        for index in reversed(range(len(value.metadata_props))):
            if value.metadata_props[index].key == MARK:
                del value.metadata_props[index]


def mark(graph: onnx.GraphProto, marks: Mapping[str, str], sure: Mapping[str, Shape]) -> None:
    """Mark values of `marks`, and all that is computed of them unless its shape is `sure`."""
    if not marks:
        return
    values = {value.name: value for value in [*graph.value_info, *graph.output]}
    found = dict(marks)
    for node in graph.node:
        if not found.keys().isdisjoint(reads(node)):
            for name in node.output:
                shape = values[name].type.tensor_type.shape if name in values else None
                if shape is not None and (name not in sure or _static(shape) != sure[name]):
                    found.setdefault(name, " ".join([RANK, *_fixed(shape, ())]))
    for name, text in found.items():
        if name in values:
            values[name].metadata_props.add(key=MARK, value=text)


def marked(value: onnx.ValueInfoProto) -> tuple[bool, frozenset[int]]:
    """Is its rank only declared, and of which axes is the size?"""
    words: list[str] = next((entry.value.split() for entry in value.metadata_props if entry.key == MARK), [])
    return RANK in words, frozenset(int(word) for word in words if word.isdecimal())


def shown(shape: onnx.TensorShapeProto) -> str:
    """A shape as a message shows it."""
    names = ["" if dim.dim_param.startswith(INVENTED) else dim.dim_param for dim in shape.dim]
    dims = zip(names, shape.dim, strict=True)
    sizes = [str(dim.dim_value) if dim.HasField("dim_value") else name or "?" for name, dim in dims]
    return f"[{', '.join(sizes)}]"


def _fixed(shape: onnx.TensorShapeProto, variables: Collection[int]) -> list[str]:
    return [str(axis) for axis, dim in enumerate(shape.dim) if dim.HasField("dim_value") and axis not in variables]


def _static(shape: onnx.TensorShapeProto) -> Shape | None:
    return tuple(dim.dim_value for dim in shape.dim) if all(dim.HasField("dim_value") for dim in shape.dim) else None
