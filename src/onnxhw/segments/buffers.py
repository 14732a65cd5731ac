"""`assign`: addresses in external memory, and from which segment to which they are in use."""

from collections.abc import Sequence

from ..config import HwConfig
from ..errors import DoesNotFitError
from ..external import ExternalMemory
from ..ir.graph import Graph
from .estimate import weight_bytes
from .plan import Buffer, Segment, tensor_bytes, weights_of

ALIGN = 32
"""Bytes: so many the host's slot transfers at most (docs/external-memory.md)."""


def assign(graph: Graph, segments: Sequence[Segment], config: HwConfig, external: ExternalMemory) -> tuple[Buffer, ...]:
    """Buffers, the largest first, each at the lowest address that is free while it is in use.

    The model's inputs are there before the first segment, its outputs after the last. `DoesNotFitError` E5190 if
    external memory is too small.
    """
    first = {port.tensor: -1 for port in graph.inputs}
    last = {port.tensor: len(segments) for port in graph.outputs}
    for n, segment in enumerate(segments):
        for region in segment.outputs:
            first.setdefault(region.tensor, n)
            last[region.tensor] = max(n, last.get(region.tensor, n))
        for region in segment.loads:
            last[region.tensor] = max(n, last.get(region.tensor, n))
    # Stores go on while the next segment runs, so the place is not given away until that one has ended.
    wanted = [
        Buffer(name, 0, tensor_bytes(graph.tensors[name]), first[name], min(last.get(name, -1) + 1, len(segments)))
        for name in first
    ]
    keys = {key: words for segment in segments for key, words in weights_of(segment, config).items()}
    for op in dict.fromkeys(name for name, _ in keys):
        mine = {key: words for key, words in keys.items() if key[0] == op}
        wanted.append(Buffer(op, 0, weight_bytes(mine, config), -1, len(segments), weights=True))
    placed: list[Buffer] = []
    for buffer in sorted(wanted, key=lambda each: (-each.size, each.weights, each.name)):
        placed.append(_placed(buffer, placed))
    if (needed := max((buffer.address + buffer.size for buffer in placed), default=0)) > external.size:
        what = f"weights and activations need {needed} bytes of external memory, {config.name} has {external.size}"
        raise DoesNotFitError("E5190", what, hint="a smaller model, or a board with more external memory")
    return tuple(placed)


def _placed(buffer: Buffer, others: Sequence[Buffer]) -> Buffer:
    """At the lowest address at which it meets no other."""
    met = [other for other in others if other.first <= buffer.last and buffer.first <= other.last]
    address = 0
    for other in sorted(met, key=lambda each: each.address):
        if address + buffer.size <= other.address:
            break
        address = max(address, -(-(other.address + other.size) // ALIGN) * ALIGN)
    return Buffer(buffer.name, address, buffer.size, buffer.first, buffer.last, buffer.weights)
