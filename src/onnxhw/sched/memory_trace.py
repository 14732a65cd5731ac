"""Who holds which word when: the one account that the parts of the scheduler share.

A sequence of tasks is walked in one way (`accesses`), its steps are numbered in one way (`Access`), and what is known
of each word is seen in one way (`WordMap`): per buffer before buffers have an address, in activation memory after.
On it stand the readiness of operands (`readiness`), lifetimes and live ranges (`alloc`, `live_ranges`), ordering fields
(`emit`), the tensor table (`scheduler.entries`) and its proof (`reaching_definitions`). The checker (`checker`) reads
instructions instead, and nothing of this.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ..config import HwConfig
from ..ir.graph import Graph
from ..program.layout import Place
from .aliases import Aliases, block_count
from .task import TileTask, WordRegion

S = TypeVar("S", bound=np.generic)


class Access(NamedTuple):
    """What a step of a task reads or writes.

    Members
    -------
    task : position of the task in the sequence.
    step : the steps of the array, or the depthwise unit, of a task share a number; every vector step has its own,
        behind them.
    vectors : vector steps up to this one, which counts: a write's is the number of its instruction, from 1.
    """

    region: WordRegion
    task: int
    step: int
    vectors: int
    writes: bool = False


def accesses(tasks: Sequence[TileTask]) -> Iterator[Access]:
    """All accesses of a sequence in its order, what a step reads before what it writes."""
    step = vectors = 0
    for position, task in enumerate(tasks):
        for stream in task.arrays:
            for region in stream.reads:
                yield Access(region, position, step, vectors)
        for vector in task.vectors:
            step, vectors = step + 1, vectors + 1
            for operand in (vector.a, vector.b):
                if operand:
                    yield Access(operand, position, step, vectors)
            yield Access(vector.writes, position, step, vectors, writes=True)
        step += 1


class WordMap(Generic[S]):
    """A value for each word, seen by tensor and region: ``[blocks, H, W]``; tensors that share words share values."""

    def __init__(self, of: Mapping[str, npt.NDArray[S]]) -> None:
        self.of = of

    def __getitem__(self, region: WordRegion) -> npt.NDArray[S]:
        tensor, (block, end_block), (row, end_row), (column, end_column) = region
        return self.of[tensor][block:end_block, row:end_row, column:end_column]


def in_buffers(graph: Graph, aliases: Aliases, config: HwConfig, values: Mapping[str, npt.NDArray[S]]) -> WordMap[S]:
    """A map over the words of each buffer, `values` by buffer."""
    found = {}
    for name, tensor in graph.tensors.items():
        shape, first = (block_count(tensor, config), tensor.height, tensor.width), aliases.offset(tensor)
        found[name] = _view(values[aliases.of[name].buffer][first:], shape, aliases.plane(tensor))
    return WordMap(found)


def in_memory(places: Mapping[str, Place], config: HwConfig, values: npt.NDArray[S]) -> WordMap[S]:
    """A map over the words of activation memory."""
    found = {}
    for name, place in places.items():
        _, _, height, width = place.shape
        found[name] = _view(values[place.base :], (place.blocks(config.word), height, width), place.plane)
    return WordMap(found)


def _view(values: npt.NDArray[S], shape: tuple[int, int, int], plane: int) -> npt.NDArray[S]:
    """The first words, whose blocks are `plane` words apart, as blocks, rows and columns."""
    blocks, height, width = shape
    if plane == height * width:
        return values[: blocks * plane].reshape(shape)
    assert (blocks - 1) * plane + height * width <= len(values)
    (step,) = values.strides
    return as_strided(values, shape, (plane * step, width * step, step))


def spans(region: WordRegion, base: int, plane: int, row: int) -> list[tuple[int, int]]:
    """First and last word of each plane of a region of a tensor that begins at `base`."""
    low = base + region.rows[0] * row + region.cols[0]
    high = base + (region.rows[1] - 1) * row + region.cols[1] - 1
    return [(low + i * plane, high + i * plane) for i in range(*region.blocks)]
