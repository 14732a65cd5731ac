"""`whole_windows`: pools and transposed convolutions with the padding that they have, where onnx's inference miscounts.

Of a pool in ceil mode, a last window that would start behind the input and its padding in front is not made: not by
runtimes, and not by inference from operator set 22 on. Before, inference counts it. To a ConvTranspose that is padded
to ``input * stride`` inference adds output_padding, and of an output_shape below the input's it makes one of rank 2.
"""

from collections.abc import Callable, Mapping, Sequence

import onnx
from onnx import helper

from .pooling import PoolAttributes
from .specification.functions import every_node
from .specification.signatures import canonical

FIXED = 22
"""The operator set from which onnx's inference is right."""
ROUNDS = 8
"""Most rounds; each needs the shapes that the one before has mended."""
AUTO = onnx.AttributeProto(s=b"NOTSET")
"""The default of auto_pad."""
SAME = (b"SAME_UPPER", b"SAME_LOWER")
POOLS = ("MaxPool", "AveragePool", "LpPool")
READ = ("kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode")
ADDED = ("auto_pad", "output_padding", "output_shape", "pads")
"""Of a ConvTranspose, the attributes that say how much of what its windows reach is its result."""
Shape = tuple[int, ...]
Sizes = tuple[int | None, ...]
"""A shape of which some sizes may be open."""


def rounded_up(node: onnx.NodeProto) -> bool:
    """Is this a pool in ceil mode?"""
    return (
        node.op_type in POOLS
        and canonical(node.domain) == ""
        and any(attribute.name == "ceil_mode" and attribute.i for attribute in node.attribute)
    )


def added_to(node: onnx.NodeProto) -> bool:
    """Is this a ConvTranspose of which inference may miscount?"""
    given = {attribute.name: attribute for attribute in node.attribute}
    return (
        node.op_type == "ConvTranspose"
        and canonical(node.domain) == ""
        and ("output_shape" in given or ("output_padding" in given and given.get("auto_pad", AUTO).s in SAME))
    )


def miscounted(node: onnx.NodeProto) -> bool:
    """Is this a node that `whole_windows` looks at?"""
    return rounded_up(node) or added_to(node)


def whole_windows(
    model: onnx.ModelProto, inferred: Callable[[onnx.ModelProto], Mapping[str, Sizes]]
) -> Mapping[str, Shape]:
    """Rewrite such pools of the main graph, and such ConvTranspose, in place; the result is good for shapes only.

    `inferred` gives the shapes of a model's values. What it gives at first is returned where it is static, if something
    was to do: models may declare these shapes, because inference has written them. Outputs that do lose their shape.
    """
    opset = max((entry.version for entry in model.opset_import if canonical(entry.domain) == ""), default=FIXED)
    found = [node for node in model.graph.node if rounded_up(node)] if opset < FIXED else []
    found += [node for node in every_node(model.graph.node) if added_to(node)]
    if not found:
        return {}
    windows = [(node, onnx.NodeProto.FromString(node.SerializeToString())) for node in found]
    counted = shapes = inferred(model)
    for _ in range(ROUNDS):
        before = [node.SerializeToString() for node in found]
        for node, original in windows:
            node.CopyFrom(original)
            write = _write if rounded_up(node) else _write_transposed
            write(node, [shapes.get(name) for name in node.input])
        if before == [node.SerializeToString() for node in found]:
            break
        shapes = inferred(model)
    if shapes is counted:
        return {}
    for value in model.graph.output:
        sizes = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        if value.name in shapes and sizes == counted.get(value.name) != shapes[value.name]:
            value.type.tensor_type.ClearField("shape")
    whole = {name: tuple(size for size in shape if size is not None) for name, shape in counted.items()}
    return {name: shape for name, shape in whole.items() if len(shape) == len(counted[name])}


def _write(node: onnx.NodeProto, operands: Sequence[Sizes | None]) -> None:
    """Padding that makes the windows of a pool, if inference counts one more."""
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute if one.name in READ}
    given["auto_pad"] = given.get("auto_pad", b"NOTSET").decode(errors="replace")
    kernel, shape = given.get("kernel_shape", []), operands[0] if operands else None
    if shape is None or len(shape) != len(kernel) + 2:
        return
    if given["auto_pad"] in ("SAME_UPPER", "SAME_LOWER"):  # as many windows as steps, whatever ceil_mode
        _without(node, "ceil_mode")
        return
    if given["auto_pad"] not in ("NOTSET", "VALID"):
        return
    pool = PoolAttributes(**given)
    if min([*kernel, *pool.steps, *pool.spread], default=0) < 1 or not len(kernel) == len(pool.steps) == len(
        pool.spread
    ):
        return
    sizes = [  # an open one stays open, whatever is written
        (k - 1) * spread + 1 if size is None else size
        for size, k, spread in zip(shape[2:], kernel, pool.spread, strict=True)
    ]
    try:
        pads, beyond = pool.around(sizes)
    except ValueError:  # lists of other lengths, or no window at all: the operator's rules say so
        return
    parts = zip(sizes, pads, beyond, kernel, pool.steps, pool.spread, strict=True)
    rests = [(size + sum(pad) - (k - 1) * spread - 1, extra, step) for size, pad, (_, extra), k, step, spread in parts]
    if all(-(-rest // step) == (rest + extra) // step for rest, extra, step in rests):
        return
    ends = [after + extra for (_, after), (_, extra) in zip(pads, beyond, strict=True)]
    _without(node, "ceil_mode", "auto_pad", "pads")
    node.attribute.append(helper.make_attribute("pads", [before for before, _ in pads] + ends))


def _write_transposed(node: onnx.NodeProto, operands: Sequence[Sizes | None]) -> None:
    """Explicit padding and output_padding of the same result, as far as sizes are known."""
    x, w = (*operands, None, None)[:2]
    given = {one.name: list(one.ints) for one in node.attribute}
    kernel = given.get("kernel_shape") or list((w or ())[2:])
    rank = len(kernel)
    lists = [given.get(name) or [default] * rank
             for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))]  # fmt: skip
    wanted, sizes = given.get("output_shape"), list((x or ())[2:]) or [None] * rank
    if not rank or None in kernel or any(len(one) != rank for one in (*lists, sizes, wanted or kernel)):
        return
    if wanted and not any(size is not None and size > one for size, one in zip(sizes, wanted, strict=True)):
        return
    ends, more = [], []
    for axis, (k, step, spread, extra) in enumerate(zip(kernel, *lists, strict=True)):
        size = sizes[axis]
        beyond = (k - 1) * spread + 1 + extra - step  # what windows reach behind size * step
        if wanted and size is not None:
            beyond += size * step - wanted[axis]
        ends.append(max(beyond, 0))
        more.append(extra - min(beyond, 0) if wanted else extra)
    _without(node, *ADDED)
    node.attribute.append(helper.make_attribute("pads", [0] * rank + ends))
    node.attribute.append(helper.make_attribute("output_padding", more))


def _without(node: onnx.NodeProto, *names: str) -> None:
    """Remove attributes."""
    others = [one for one in node.attribute if one.name not in names]
    del node.attribute[:]
    node.attribute.extend(others)
