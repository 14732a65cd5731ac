"""Rules of windows: kernels, strides, dilations, pads, groups of convolutions and pooling."""

from typing import Any

import onnx

from .enumerations import PAD
from .findings import Findings, label

LISTS = ("kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape")
CONVOLUTIONS = ("Conv", "ConvInteger", "FusedConv", "QLinearConv")
LARGEST = 4
"""How many times its input a window padded to the input's size may be. From twice on each window covers all of it, and
kernels and shape inference step through what is beyond."""


def window(
    node: onnx.NodeProto,
    attributes: dict[str, Any],
    shape: tuple[int, ...] | None,
    weight: tuple[int, ...] | None,
    findings: Findings,
) -> None:
    """All rules of one node; `shape` is its input's, `weight` its filter's (None for a pool), where they are known."""
    where = label(node)
    given: dict[str, list[int]] = {name: list(attributes[name]) for name in LISTS if name in attributes}
    spatial = _spatial(given, shape, weight, where, findings)
    if spatial is None or not _values(given, spatial, where, findings) or not _auto(attributes, given, where, findings):
        return
    if weight is not None:
        if "kernel_shape" in given and given["kernel_shape"] != list(weight[2:]):
            findings.error("E3384", where, f"kernel_shape is {given['kernel_shape']}, the weights are {list(weight)}")
            return
        if not _groups(node, attributes.get("group", 1), shape, weight, where, findings):
            return
    elif attributes.get("group", 1) < 1:
        findings.error("E3381", where, f"group is {attributes['group']}")
    kernel = given.get("kernel_shape") or (list(weight[2:]) if weight is not None else None)
    if node.op_type == "ConvTranspose":
        _added(given, kernel, shape, spatial, where, findings)
    elif kernel is not None and shape is not None:
        _extent(node, attributes, given, kernel, shape, findings)


def _spatial(
    given: dict[str, list[int]],
    shape: tuple[int, ...] | None,
    weight: tuple[int, ...] | None,
    where: str,
    findings: Findings,
) -> int | None:
    """The number of spatial dimensions, on which all lengths must agree (E3383)."""
    ranks = {name: len(values) / 2 if name == "pads" else len(values) for name, values in given.items()}
    if shape is not None:
        ranks["the input"] = len(shape) - 2
    if weight is not None:
        ranks["the weights"] = len(weight) - 2
    if len(set(ranks.values())) > 1 or any(rank < 1 or rank % 1 for rank in ranks.values()):
        text = ", ".join(f"{name}: {rank:g}" for name, rank in ranks.items())
        findings.error(
            "E3383", where, f"the numbers of spatial dimensions differ: {text}", "pads are two per dimension"
        )
        return None
    return int(next(iter(ranks.values()), 0))


def _values(given: dict[str, list[int]], spatial: int, where: str, findings: Findings) -> bool:
    for name in ("kernel_shape", "strides", "dilations"):
        if any(value < 1 for value in given.get(name, ())):
            findings.error("E3380", where, f"{name} is {given[name]}: every element must be at least 1")
            return False
    if any(value < 0 for value in given.get("pads", ())):
        findings.error("E3382", where, f"pads are {given['pads']}: none may be negative", "use Slice to cut")
        return False
    return True


def _auto(attributes: dict[str, Any], given: dict[str, list[int]], where: str, findings: Findings) -> bool:
    auto = attributes.get("auto_pad", "NOTSET")
    if auto not in PAD:  # a finding of `choice_rules`
        return False
    if auto != "NOTSET" and any(given.get("pads", ())):
        findings.error("E3385", where, f"auto_pad is {auto}, and there are pads {given['pads']}", "give one of them")
        return False
    return True


def _groups(
    node: onnx.NodeProto,
    group: int,
    shape: tuple[int, ...] | None,
    weight: tuple[int, ...],
    where: str,
    findings: Findings,
) -> bool:
    if group < 1:
        findings.error("E3381", where, f"group is {group}")
        return False
    transposed = node.op_type == "ConvTranspose"
    channels = shape[1] if shape is not None else None
    wanted = weight[0] if transposed else weight[1] * group
    grouped = weight[0] % group if not transposed or channels is None else channels % group
    if grouped or (channels is not None and channels != wanted):
        findings.error(
            "E3381",
            where,
            f"{group} groups do not fit weights {list(weight)}"
            + (f" and an input of {channels} channels" if channels is not None else ""),
        )
        return False
    return True


def _added(
    given: dict[str, list[int]],
    kernel: list[int] | None,
    shape: tuple[int, ...] | None,
    spatial: int,
    where: str,
    findings: Findings,
) -> None:
    """E3374 for an output_padding of ConvTranspose that no stride or dilation leaves room for; E3375 for a result that
    is empty, or an output_shape beyond its windows and what may be added to them."""
    extra = given.get("output_padding") or [0] * spatial
    strides, dilations = (given.get(name) or [1] * spatial for name in ("strides", "dilations"))
    if any(not 0 <= more < max(steps) for more, *steps in zip(extra, strides, dilations, strict=True) if more):
        what = f"output_padding is {extra}: 0 or more, and less than stride {strides} or dilation {dilations}"
        findings.error("E3374", where, what)
        return
    wanted, pads = given.get("output_shape"), given.get("pads") or [0] * (2 * spatial)
    if wanted is not None and min(wanted, default=1) < 1:
        findings.error("E3375", where, f"output_shape is {wanted}: every element must be at least 1")
    elif kernel is not None and shape is not None and min(shape[2:], default=0) > 0:
        reached = [
            (size - 1) * stride + (k - 1) * dilation + 1
            for size, k, stride, dilation in zip(shape[2:], kernel, strides, dilations, strict=True)
        ]
        if wanted is None:
            total = map(sum, zip(pads[:spatial], pads[spatial:], strict=True))
            if any(size + more <= less for size, more, less in zip(reached, extra, total, strict=True)):
                findings.error("E3375", where, f"pads {pads} leave nothing of what its windows make, {reached}")
            return
        most = [size + max(more, step - 1) for size, more, step in zip(reached, extra, strides, strict=True)]
        if any(one > limit for one, limit in zip(wanted, most, strict=True)):
            findings.error("E3375", where, f"output_shape is {wanted}, its windows make at most {most}")


def _extent(
    node: onnx.NodeProto,
    attributes: dict[str, Any],
    given: dict[str, list[int]],
    kernel: list[int],
    shape: tuple[int, ...],
    findings: Findings,
) -> None:
    """E3388 for a window larger than its padded input, or much larger than one that is padded as needed; E3389 for a
    pool's pads larger than its window.

    With ceil_mode the last window may leave the padded input, by less than its stride: the only one may, too.
    """
    spatial, where = len(kernel), label(node)
    dilations = given.get("dilations") or [1] * spatial
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    pads = given.get("pads") or [0] * (2 * spatial)
    before, after = pads[:spatial], pads[spatial:]
    if node.op_type not in CONVOLUTIONS and any(
        pad > size for pad, size in [*zip(before, reach, strict=True), *zip(after, reach, strict=True)]
    ):
        findings.error("E3389", where, f"pads {pads} are larger than the window {reach}")
    if attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        if any(0 < LARGEST * size < one for size, one in zip(shape[2:], reach, strict=True)):
            what = f"the window {reach} is more than {LARGEST} times its input {list(shape[2:])}"
            findings.error("E3388", where, what)
        return
    padded = [size + low + high for size, low, high in zip(shape[2:], before, after, strict=True)]
    strides = given.get("strides") or [1] * spatial
    beyond = [stride - 1 if attributes.get("ceil_mode", 0) else 0 for stride in strides]
    if any(0 < size < one - more for size, one, more in zip(padded, reach, beyond, strict=True)):
        findings.error("E3388", where, f"the window {reach} is larger than its padded input {padded}")
