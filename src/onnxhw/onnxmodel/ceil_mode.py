"""`whole_windows`: pools in ceil mode written without it, where onnx's inference would give them a window too many.

A last window that would start behind the input and its padding in front is not made: not by runtimes, and not by
inference from operator set 22 on. Before, inference counts it.
"""

from collections.abc import Callable, Mapping

import onnx
from onnx import helper

from .pooling import Pool
from .specification.signatures import canonical

FIXED = 22
"""The operator set from which onnx's inference is right."""
ROUNDS = 8
"""Most rounds; each needs the shapes that the one before has mended."""
POOLS = ("MaxPool", "AveragePool", "LpPool")
READ = ("kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode")
Shapes = Mapping[str, tuple[int, ...]]


def rounded_up(node: onnx.NodeProto) -> bool:
    """Is this a pool in ceil mode?"""
    return (
        node.op_type in POOLS
        and canonical(node.domain) == ""
        and any(attribute.name == "ceil_mode" and attribute.i for attribute in node.attribute)
    )


def whole_windows(model: onnx.ModelProto, inferred: Callable[[onnx.ModelProto], Shapes]) -> Shapes:
    """Rewrite such pools of the main graph in place; the result is good for shapes only.

    `inferred` gives the static shapes of a model's values. What it gives at first is returned, if something was to do:
    models may declare these shapes, because inference has written them. Outputs that do lose their shape.
    """
    opset = max((entry.version for entry in model.opset_import if canonical(entry.domain) == ""), default=FIXED)
    pools = [
        (node, onnx.NodeProto.FromString(node.SerializeToString())) for node in model.graph.node if rounded_up(node)
    ]
    if opset >= FIXED or not pools:
        return {}
    counted = shapes = inferred(model)
    for _ in range(ROUNDS):
        before = [node.SerializeToString() for node, _ in pools]
        for node, original in pools:
            node.CopyFrom(original)
            _write(node, shapes.get(node.input[0]) if node.input else None)
        if before == [node.SerializeToString() for node, _ in pools]:
            break
        shapes = inferred(model)
    if shapes is counted:
        return {}
    for value in model.graph.output:
        sizes = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        if value.name in shapes and sizes == counted.get(value.name) != shapes[value.name]:
            value.type.tensor_type.ClearField("shape")
    return counted


def _write(node: onnx.NodeProto, shape: tuple[int, ...] | None) -> None:
    """Padding that makes the windows of `node`, if inference counts one more."""
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute if one.name in READ}
    given["auto_pad"] = given.get("auto_pad", b"NOTSET").decode(errors="replace")
    kernel = given.get("kernel_shape", [])
    if shape is None or len(shape) != len(kernel) + 2:
        return
    if given["auto_pad"] in ("SAME_UPPER", "SAME_LOWER"):  # as many windows as steps, whatever ceil_mode
        _without(node, "ceil_mode")
        return
    if given["auto_pad"] not in ("NOTSET", "VALID"):
        return
    pool = Pool(**given)
    if min([*kernel, *pool.steps, *pool.spread], default=0) < 1:
        return
    try:
        pads, beyond = pool.around(shape[2:])
    except ValueError:  # lists of other lengths, or no window at all: the operator's rules say so
        return
    parts = zip(shape[2:], pads, beyond, kernel, pool.steps, pool.spread, strict=True)
    rests = [(size + sum(pad) - (k - 1) * spread - 1, extra, step) for size, pad, (_, extra), k, step, spread in parts]
    if all(-(-rest // step) == (rest + extra) // step for rest, extra, step in rests):
        return
    ends = [after + extra for (_, after), (_, extra) in zip(pads, beyond, strict=True)]
    _without(node, "ceil_mode", "auto_pad", "pads")
    node.attribute.append(helper.make_attribute("pads", [before for before, _ in pads] + ends))


def _without(node: onnx.NodeProto, *names: str) -> None:
    """Remove attributes."""
    others = [one for one in node.attribute if one.name not in names]
    del node.attribute[:]
    node.attribute.extend(others)
