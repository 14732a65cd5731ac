"""`specialise`: give every dimension variable its one value, and infer every shape."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from math import prod

import onnx

from ..errors import InvalidModelError, UnsupportedError, UsageError, short
from ..onnxfile.limits import DEFAULT, Limits
from .declared_shapes import CONTAINERS, INVENTED, Contradiction, bound_axes, mark, name_sizes, only_declared, unmark
from .inference import Shape, infer, plain, propagated, sizes, skeleton_of, static_shapes, undeclared
from .miscounted_windows import whole_windows
from .shape_surrogates import surrogates
from .specification.findings import Findings, raise_errors
from .specification.operators import operator_rules
from .specification.signatures import canonical
from .subgraph_copy import every_graph

log = logging.getLogger(__name__)

DECLARE = "runs give the inferred shape: export the model again, or declare that"
ADDRESSED = (1 << 63) // 16
"""Elements of 16 bytes, the widest type, that 64 bits can address."""

__all__ = ["Shape", "require_static", "specialise"]


def specialise(
    model: onnx.ModelProto,
    where: str = "model",
    shapes: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT,
    findings: Findings | None = None,
    batch: int | None = 1,
    lenient: bool = False,
) -> tuple[onnx.ModelProto, dict[str, Shape]]:
    """A copy of the model with its dimension variables replaced, and the static shapes of its values by name.

    `shapes` gives sizes: by the name of a dimension variable, which has one value in the whole model, or as
    ``input:axis``. A first dimension of an input that is still open counts as the batch and becomes 1 (said at level
    INFO, and as W3400 in `findings`), or what `batch` says; with None it stays open. **Values whose shape is not static
    are missing from the dict**: unknown rank, open dimensions, sequences and the like; `require_static` refuses them
    where the caller needs all inputs.

    Raises `UsageError` E2540 for a name in `shapes` that the model does not have, E2541 for a size that contradicts
    another; `InvalidModelError` E3010 for shapes or types that contradict each other, E3400 for a declared shape that
    is not the inferred one, E338x and E339x of `spec.operators`; `LimitError` E3410 and E3411 for inferred tensors
    beyond `limits.tensor_elements` or together beyond `limits.total_elements`. If `lenient`, an output or a value_info
    with another fixed size or rank than inferred is W3390 in `findings`, and the inferred shape counts; a dimension
    variable of two sizes stays an error.
    """
    fixed = deepcopy(model)
    findings = findings if findings is not None else Findings()
    _bind(fixed, dict(shapes or {}), where, findings, batch)
    unmark(_values(fixed.graph))
    declared = {value.name: value for value in fixed.graph.value_info}
    del fixed.graph.value_info[:]
    bound = bound_axes([*model.graph.value_info, *model.graph.output])
    named = [deepcopy(value) for value in fixed.graph.output]
    result = infer(fixed, where, lambda found: _limits(found, limits, where), bound)
    inferred, found, marks = result.graph, result.shapes, dict(result.marks)
    _outputs(result.contradictions, where, lenient, findings)
    for name, tensor in ((tensor.name, tensor) for tensor in fixed.graph.initializer):
        found.setdefault(name, tuple(tensor.dims))
    replaced, more, trusted = _without_schema(fixed, declared)
    if replaced.node:
        found = {**more, **found}
        _limits(found, limits, where)
    _declared(declared, found, result.counted, bound if lenient else None, findings)
    _variables([*declared.values(), *named], found, findings)
    _element_types(declared, inferred, findings)
    versions = {canonical(entry.domain): entry.version for entry in fixed.opset_import}
    operator_rules(fixed.graph, versions, found, {**sizes(inferred), **found}, findings)
    raise_errors(findings.found, where)
    name_sizes(declared, inferred)
    fixed.graph.value_info.extend(inferred.value_info)
    known = {value.name for value in [*inferred.input, *inferred.value_info, *inferred.output]}
    fixed.graph.value_info.extend(value for value in replaced.value_info if value.name not in known)
    del fixed.graph.output[:]
    fixed.graph.output.extend(inferred.output)
    mark(fixed.graph, {**only_declared(trusted, bound), **marks}, result.sure)
    return fixed, found


def require_static(model: onnx.ModelProto, shapes: Mapping[str, Shape], where: str = "model") -> None:
    """`UnsupportedError` E4003 with every input dimension that is open, E4005 for inputs that are no ranked tensors."""
    default = {tensor.name for tensor in model.graph.initializer}
    odd, dims = [], {}
    for value in model.graph.input:
        if value.name in shapes or value.name in default:
            continue
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            odd.append(f"input {value.name!r} is not a tensor of known rank")
            continue
        dims[value.name] = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in kind.shape.dim]
    if odd:
        raise UnsupportedError("E4005", "; ".join(odd), where=where)
    if error := dynamic(dims, where):
        raise error


def dynamic(dims: Mapping[str, Sequence[int | str | None]], where: str) -> UnsupportedError | None:
    """E4003 with every open dimension of the inputs by name, a symbol or None there; None if there is no such."""
    found = [(name, axis, dim or "") for name, sizes in dims.items()
             for axis, dim in enumerate(sizes) if not isinstance(dim, int)]  # fmt: skip
    if not found:
        return None
    what = "; ".join(f"input {name!r} has a dynamic dimension {dim or '?'!r} on axis {axis}"
                     for name, axis, dim in found)  # fmt: skip
    flags = dict.fromkeys(f"--shape {dim or f'{name}:{axis}'}=1" for name, axis, dim in found)
    return UnsupportedError(
        "E4003", what, where=where, hint=f"export with a fixed size, or say it (here 1): {' '.join(flags)}"
    )


def _bind(
    model: onnx.ModelProto, wanted: dict[str, int], where: str, findings: Findings, batch: int | None
) -> None:
    """Put sizes in place of dimension variables, everywhere."""
    graph = model.graph
    default = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in default}
    values: dict[str, int] = {}
    known = {dim.dim_param for value in _values(graph) for dim in _dims(value.type) if dim.dim_param}
    for key, size in wanted.items():
        if size < 0:
            raise UsageError("E2541", f"a dimension cannot be {size}", where=key)
        if key in known:
            _agree(values, key, size, key)
    for key, size in wanted.items():
        if key not in known:
            dim = _named(inputs, key, known, where)
            if dim.HasField("dim_value") and dim.dim_value != size:
                raise UsageError("E2541", f"is {dim.dim_value} in the model, not {size}", where=key)
            if dim.dim_param:
                _agree(values, dim.dim_param, size, key)
            dim.dim_value = size
    for value in inputs.values():
        if batch is None:
            break
        dims = value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else []
        if dims and not dims[0].HasField("dim_value") and dims[0].dim_param not in values:
            name = dims[0].dim_param or "?"
            log.info("input %s: batch dimension %r set to %d", value.name, name, batch)
            findings.info(
                "W3400",
                f"input {value.name!r}",
                f"its open first dimension {name!r} is taken as the batch, and as {batch}",
                f"--shape {dims[0].dim_param or f'{value.name}:0'}=SIZE sets another",
            )
            if dims[0].dim_param:
                values[dims[0].dim_param] = batch
            dims[0].dim_value = batch
    if values:
        for value in _values(graph):
            for dim in _dims(value.type):
                if dim.dim_param in values:
                    dim.dim_value = values[dim.dim_param]


def _agree(values: dict[str, int], name: str, size: int, key: str) -> None:
    if values.setdefault(name, size) != size:
        raise UsageError(
            "E2541", f"{name!r} has one value in the whole model: {values[name]} or {size}, not both", where=key
        )


def _named(
    inputs: dict[str, onnx.ValueInfoProto], key: str, known: set[str], where: str
) -> onnx.TensorShapeProto.Dimension:
    name, _, axis = key.rpartition(":")
    if name in inputs and axis.isdecimal() and int(axis) < len(inputs[name].type.tensor_type.shape.dim):
        dim: onnx.TensorShapeProto.Dimension = inputs[name].type.tensor_type.shape.dim[int(axis)]
        return dim
    places = [
        f"{one}:{axis}" for one, value in inputs.items()
        for axis, dim in enumerate(value.type.tensor_type.shape.dim) if not dim.HasField("dim_value")
    ]  # fmt: skip
    raise UsageError(
        "E2540",
        f"the model has no dimension {short(key)}",
        where=where,
        hint=f"dimensions: {', '.join([*sorted(known), *places][:12]) or 'none'}",
    )


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """Inputs, outputs and value_info of a graph and the graphs in it: dimension variables are not scoped."""
    for one in every_graph(graph):
        yield from (*one.input, *one.output, *one.value_info)


def _dims(kind: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    """The dimensions of a type, in sequences, maps and optionals too."""
    while (name := kind.WhichOneof("value")) in CONTAINERS:
        kind = kind.map_type.value_type if name == "map_type" else getattr(kind, name).elem_type
    if name in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(kind, name).shape.dim


def _without_schema(
    model: onnx.ModelProto, declared: Mapping[str, onnx.ValueInfoProto]
) -> tuple[onnx.GraphProto, Mapping[str, Shape], list[onnx.ValueInfoProto]]:
    """Values behind operators that onnx knows no schema of, by surrogates, and as the model declares them; their
    static shapes; and which are only declared."""
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    names = {name for node in model.graph.node if node.domain not in ("", "ai.onnx") for name in node.output}
    if not names:
        return onnx.GraphProto(), {}, []
    skeleton = skeleton_of(model)
    found = surrogates(skeleton, opset)
    whole_windows(skeleton, undeclared)
    trusted = [declared[name] for name in sorted(names & set(declared))]
    sure = static_shapes(plain(skeleton)) if trusted and found else {}
    loose = [value for value in trusted if value.name not in sure]
    skeleton.graph.value_info.extend(trusted)
    if not found and not trusted:
        return onnx.GraphProto(), {}, []
    first = plain(skeleton)
    whole = static_shapes(first)
    if all(name in whole for node in skeleton.graph.node for name in node.output if name):
        return first, whole, loose
    second = propagated(skeleton, first)
    return second, static_shapes(second), loose


def _elements(shape: Shape) -> int:
    """The number of elements; for none, the product of the other sizes where numpy could not even shape nothing so."""
    others = prod(size for size in shape if size)
    return prod(shape) or (others if others > ADDRESSED else 0)


def _limits(shapes: Mapping[str, Shape], limits: Limits, where: str) -> None:
    counts = Counter(shapes.values())  # of few shapes
    total = sum(prod(shape) * count for shape, count in counts.items())
    odd = any(min(shape, default=0) < 0 or _elements(shape) > limits.tensor_elements for shape in counts)
    if not odd and total <= limits.total_elements:
        return
    total = 0
    for name, shape in shapes.items():
        if min(shape, default=0) < 0:
            raise InvalidModelError("E3010", f"{name!r} would have the shape {list(shape)}", where=where)
        elements = _elements(shape)
        limits.check("E3410", "tensor_elements", elements, f"{name!r} has a number of elements of", where)
        total += elements
    limits.check("E3411", "total_elements", total, "all its tensors have a number of elements of", where)


def _outputs(contradictions: list[Contradiction], where: str, lenient: bool, findings: Findings) -> None:
    """What outputs are declared with: E3010, or W3390 if `lenient`; E3400 where a variable is said to have two."""
    for one in contradictions:
        if not lenient:
            what = f"shapes contradict each other: output {one.name!r}: {one.text}"
            raise InvalidModelError("E3010", what, where=where)
        say = findings.error if one.bound else findings.warning
        say("E3400" if one.bound else "W3390", f"output {one.name!r}", one.text, DECLARE)


def _declared(
    declared: Mapping[str, onnx.ValueInfoProto],
    shapes: Mapping[str, Shape],
    counted: Mapping[str, Shape],
    bound: Mapping[str, Collection[int]] | None,
    findings: Findings,
) -> None:
    """E3400: what value_info says of a value must not contradict what is inferred, by us or (`counted`) by onnx.

    With `bound`, the axes with variables, it is W3390 unless it is the size of a variable.
    """
    for name, value in declared.items():
        shape, kind = shapes.get(name), value.type.tensor_type
        if shape is None or not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            continue
        said = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        if any(_agrees(said, one) for one in (shape, counted.get(name, shape))):
            continue
        fixed = bound is not None and (
            len(said) != len(shape) or all(said[axis] in (None, shape[axis]) for axis in bound.get(name, ()))
        )
        say = findings.warning if fixed else findings.error
        say(
            "W3390" if fixed else "E3400",
            f"value {name!r}",
            f"value_info says its shape is {said}, inferred is {list(shape)}",
            "remove value_info, or export the model again",
        )


def _variables(declared: Iterable[onnx.ValueInfoProto], shapes: Mapping[str, Shape], findings: Findings) -> None:
    """E3400: a dimension variable has one value in the whole model, so what is inferred must not give it two."""
    first: dict[str, tuple[int, str]] = {}
    for value in declared:
        shape, dims = shapes.get(value.name), value.type.tensor_type.shape.dim
        if shape is not None and len(shape) != len(dims):
            continue  # said elsewhere
        for size, dim in zip(shape or (), dims, strict=False):
            name = dim.dim_param
            if not name or name.startswith(INVENTED):
                continue
            known, where = first.setdefault(name, (size, value.name))
            if known != size:
                findings.error(
                    "E3400",
                    f"value {value.name!r}",
                    f"variable {name!r} has one value in the whole model: {known} in {where!r}, {size} here",
                    f"declare another variable there, or say its size: --shape {name}={max(known, size)}",
                )


def _agrees(said: list[int | None], shape: Shape) -> bool:
    return len(said) == len(shape) and all(one in (None, size) for one, size in zip(said, shape, strict=True))


def _element_types(declared: Mapping[str, onnx.ValueInfoProto], inferred: onnx.GraphProto, findings: Findings) -> None:
    """E3400 for a tensor whose element type is another in value_info than what is inferred."""
    for value in inferred.value_info:
        said = declared[value.name].type if value.name in declared else None
        if said is None or not said.HasField("tensor_type") or not value.type.HasField("tensor_type"):
            continue
        one, other = said.tensor_type.elem_type, value.type.tensor_type.elem_type
        if other and one != other:
            names = {number: name for name, number in onnx.TensorProto.DataType.items()}
            findings.error(
                "E3400",
                f"value {value.name!r}",
                f"value_info says its elements are {names.get(one, one)}, inferred is {names.get(other, other)}",
                "remove value_info, or export the model again",
            )
