"""`shape_rules`: the shapes that an operator's text gives operands that depend on others, as far as both are known.

Inference looks at few of them; kernels refuse what contradicts them, in the run.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx

from .attributes import plain_values
from .findings import Findings, label
from .signatures import canonical

Shape = tuple[int | None, ...]
"""Sizes; None for one that is open."""
Shapes = Callable[[int], Shape | None]
"""The shape of an operand whose rank is known."""
Rule = Callable[[Shapes, Mapping[str, Any], int], Iterator[tuple[int, Shape]]]
"""Operands by index with the shapes that they must have; of known shapes, attributes, the operator set's version."""
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _bias(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
    if weight := of(1):
        yield 2, weight[:1]


def _transposed_bias(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
    weight = of(1)
    if weight and len(weight) > 1:
        yield 2, (_times(weight[1], attributes.get("group", 1)),)


def _channels(*indices: int, since: int = 1) -> Rule:
    def rule(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
        x = of(0)
        if x and len(x) > 1 and version >= since:
            yield from ((index, x[1:2]) for index in indices)

    return rule


def _recurrent(gates: int) -> Rule:
    def rule(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
        x, recurrence = of(0), of(2)
        if x is None or len(x) != 3 or recurrence is None or len(recurrence) != 3:
            return
        directions, hidden = 1 + (attributes.get("direction") == "bidirectional"), recurrence[2]
        batch = x[0 if attributes.get("layout", 0) else 1]
        state = (batch, directions, hidden) if attributes.get("layout", 0) else (directions, batch, hidden)
        yield 1, (directions, _times(hidden, gates), x[2])
        yield 2, (directions, _times(hidden, gates), hidden)
        yield 3, (directions, _times(hidden, 2 * gates))
        yield 4, (batch,)
        yield from ((index, state) for index in ((5, 6) if gates == GATES["LSTM"] else (5,)))
        if gates == GATES["LSTM"]:
            yield 7, (directions, _times(hidden, 3))

    return rule


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor

EXACT: dict[str, Rule] = {
    "Conv": _bias,
    "ConvTranspose": _transposed_bias,
    "InstanceNormalization": _channels(1, 2),
    "BatchNormalization": _channels(1, 2, 3, 4, since=9),  # before, each element may have its own
    "GroupNormalization": _channels(1, 2, since=21),  # before, it is deprecated
    **{name: _recurrent(gates) for name, gates in GATES.items()},
}
"""By operator of the default domain: what operands must be."""


def _sum(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
    a, b = of(0), of(1)
    if a and b and len(a) == len(b) == 2:
        yield 2, (a[1 if attributes.get("transA", 0) else 0], b[0 if attributes.get("transB", 0) else 1])


def _slope(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
    x = of(0)
    if x is not None:
        yield 1, x


SPREAD: dict[str, tuple[int, Rule]] = {"Gemm": (7, _sum), "PRelu": (7, _slope)}
"""By operator, and from which operator set on: to what operands must be broadcastable, in one direction."""


def shape_rules(
    node: onnx.NodeProto, versions: Mapping[str, int], shapes: Mapping[str, Shape], findings: Findings
) -> None:
    """Rules of one node. `shapes`: those that are known, by name; `versions`: of the operator sets, by domain."""
    if canonical(node.domain) or (node.op_type not in EXACT and node.op_type not in SPREAD):
        return
    if any(one.ref_attr_name for one in node.attribute):
        return
    attributes = plain_values(node)

    def of(index: int) -> Shape | None:
        return shapes.get(node.input[index]) if index < len(node.input) and node.input[index] else None

    version = versions.get("", 1)
    for index, wanted in EXACT.get(node.op_type, _nothing)(of, attributes, version):
        if (found := of(index)) is not None and not (len(found) == len(wanted) and _spreads(found, wanted, ())):
            _say(node, index, found, f"must have {_shown(wanted)}", findings)
    since, spread = SPREAD.get(node.op_type, (0, _nothing))
    for index, wanted in spread(of, attributes, version) if version >= since else ():
        if (found := of(index)) is not None and not _spreads(found, wanted):
            _say(node, index, found, f"must be broadcastable to {_shown(wanted)}", findings)


def _nothing(of: Shapes, attributes: Mapping[str, Any], version: int) -> Iterator[tuple[int, Shape]]:
    return iter(())


def _spreads(shape: Shape, to: Shape, always: tuple[int, ...] = (1,)) -> bool:
    """May it be broadcastable to the other one, which stays as it is? Sizes of `always`, and open ones, fit any."""
    if len(shape) > len(to):
        return False
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return all(None in (size, wanted) or size == wanted or size in always for size, wanted in pairs)


def _shown(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _say(node: onnx.NodeProto, index: int, found: Shape, text: str, findings: Findings) -> None:
    what = f"operand {index}, {node.input[index]!r}, has the shape {_shown(found)}, it {text}"
    findings.error("E3376", label(node), what)
