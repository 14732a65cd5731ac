"""Which tensors share memory by construction: reshapes and concatenations that move nothing.

Every tensor is a stack of blocks of H * W words, one per W channels (`program.Place`). A *buffer* owns
memory; every other tensor is a run of blocks inside a buffer::

    y = Reshape(x), C and H * W kept      ->  y lies where x lies
    y = Concat(a, b, c), b begins and ends at a multiple of W (or ends y)
                                          ->  b lies inside y, at block (start of b) / W

A part that cannot lie inside (unaligned, a second use, already inside something) is copied by the
concatenation's own instructions. The rows of a larger tensor that a buffer may be (`with_planes`) have other rows of
that one between their blocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..config import HwConfig
from ..errors import UnsupportedError
from ..ir.graph import Graph, Op, Tensor
from ..program.layout import Place


@dataclass(frozen=True)
class Alias:
    """Tensor blocks inside a buffer: the first block's number."""

    buffer: str
    block: int


@dataclass(frozen=True)
class Aliases:
    """Where all tensors live: `of` each tensor, words of each buffer in `size`, and the `copied` parts.

    `copied` holds (name of the Concat, position of the part) for parts that need instructions; `planes` words from one
    block to the next of buffers of which they are more than H * W.
    """

    of: dict[str, Alias]
    size: dict[str, int]
    copied: set[tuple[str, int]]
    planes: Mapping[str, int] = field(default_factory=dict)

    def plane(self, tensor: Tensor) -> int:
        """Words from one block of the tensor to the next."""
        return self.planes.get(self.of[tensor.name].buffer, tensor.height * tensor.width)

    def offset(self, tensor: Tensor) -> int:
        """Words from the buffer's base to the tensor's."""
        return self.of[tensor.name].block * self.plane(tensor)

    def place(self, tensor: Tensor, bases: dict[str, int]) -> Place:
        """Where the tensor lies, given the bases of the buffers."""
        base = bases[self.of[tensor.name].buffer] + self.offset(tensor)
        return Place(base, self.plane(tensor), tensor.width, tensor.shape)

    def with_planes(self, planes: Mapping[str, int], graph: Graph, config: HwConfig) -> "Aliases":
        """The same where blocks of these tensors, and of what shares their buffers, are so many words apart."""
        found, size = {self.of[name].buffer: plane for name, plane in planes.items()}, dict(self.size)
        for buffer, plane in found.items():
            tensor = graph.tensors[buffer]
            size[buffer] = (block_count(tensor, config) - 1) * plane + tensor.height * tensor.width
        return replace(self, size=size, planes=found)


def block_count(tensor: Tensor, config: HwConfig) -> int:
    """Channel blocks of a tensor."""
    return -(-tensor.channels // config.word)


def find_aliases(graph: Graph, config: HwConfig) -> Aliases:
    """Aliases of all tensors; `UnsupportedError` E4302 for a reshape that would have to move data."""
    parents: dict[str, tuple[str, int]] = {}
    copied: set[tuple[str, int]] = set()
    for op in graph.ops:
        if op.joins and len(op.inputs) == 1:
            _check_free(op, graph)
            parents[op.output] = (op.inputs[0], 0)
        elif op.joins:
            _join(op, graph, config, parents, copied)
    of = {name: _resolve(name, parents) for name in graph.tensors}
    sizes = {}
    for name, alias in of.items():
        if name == alias.buffer:
            tensor = graph.tensors[name]
            sizes[name] = block_count(tensor, config) * tensor.height * tensor.width
    return Aliases(of, sizes, copied)


def _resolve(name: str, parents: dict[str, tuple[str, int]]) -> Alias:
    block = 0
    while name in parents:
        name, offset = parents[name]
        block += offset
    return Alias(name, block)


def _check_free(op: Op, graph: Graph) -> None:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    if x.channels == y.channels and x.height * x.width == y.height * y.width:
        return
    raise UnsupportedError(
        "E4302",
        f"reshape {x.shape} -> {y.shape} changes which elements share a pixel, so it would have to move data",
        where=op.where,
        hint="reshapes that keep the channels are free; flatten before a Gemm is folded into its weights",
        operation=op.name,
    )


def _join(
    op: Op, graph: Graph, config: HwConfig, parents: dict[str, tuple[str, int]], copied: set[tuple[str, int]]
) -> None:
    start = 0
    seen: set[str] = set()
    for position, name in enumerate(op.inputs):
        stop = start + graph.tensors[name].channels
        last = position == len(op.inputs) - 1
        aligned = start % config.word == 0 and (last or stop % config.word == 0)
        free = name not in parents and name not in seen
        if aligned and free and not _operands_meet(op, name, seen, graph, parents):
            parents[name] = (op.output, start // config.word)
            seen.add(name)
        else:
            copied.add((op.name, position))
        start = stop


def _operands_meet(op: Op, name: str, seen: set[str], graph: Graph, parents: dict[str, tuple[str, int]]) -> bool:
    """Whether an operation computes with this part and another of one buffer: its operands need different banks."""
    trial = {**parents, **dict.fromkeys(seen, (op.output, 0)), name: (op.output, 0)}
    for other in graph.ops:
        if not other.moves and len(set(other.inputs)) > 1:
            buffers = [_resolve(operand, trial).buffer for operand in other.inputs]
            before = [_resolve(operand, parents).buffer for operand in other.inputs]
            if buffers[0] == buffers[1] and before[0] != before[1]:
                return True
    return False


def producers(graph: Graph) -> dict[str, Op]:
    """The operation that makes each tensor."""
    return {op.output: op for op in graph.ops}
