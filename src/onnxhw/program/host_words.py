"""A program as host words: its memories, and its tensors on their way back from activation memory."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..isa.memory import Space, host_stride, word_bytes
from ..isa.microcode import pack
from ..isa.units import Unit
from .input_regions import input_table, inputs
from .layout import Place, from_host, to_host
from .model import DeviceProgram

Words = npt.NDArray[np.uint32]


def memories(program: DeviceProgram) -> Iterator[tuple[Space, Words]]:
    """The memories of the core that a program brings along, as host words from address 0 on; empty ones are left out.

    Of microcode that moves bring as the run goes on, the words that are there at its begin: as many as the ring has.
    """
    for unit in Unit:
        if code := program.code.get(unit):
            words = np.array(pack(code), np.uint32)
            yield unit.microcode, words[: unit.ucode(program.config)] if program.code.get(Unit.MOVE) else words
    if program.weights.size:
        yield Space.WEIGHT, to_host(program.weights, word_bytes(program.config, Space.WEIGHT))
    if program.params.size:
        yield Space.PARAM, to_host(program.params.astype("<u8").view(np.uint8), word_bytes(program.config, Space.PARAM))
    if program.tables.size:
        # Entry order: int8 value v is at index v + 128.
        yield Space.TABLE, program.tables.reshape(-1).view(np.uint8).astype(np.uint32)
    if inputs(program):
        yield Space.INPUT_TABLE, input_table(program)


def tensor_spans(program: DeviceProgram, name: str) -> list[tuple[int, int]]:
    """Host address in ACT and number of host words of the pieces of a tensor."""
    word = program.config.word
    stride = host_stride(word)
    return [(address * stride, count * stride) for address, _, count in _pieces(program.tensors[name].place, word)]


def tensor_of(program: DeviceProgram, name: str, pieces: Sequence[Words]) -> npt.NDArray[np.int8]:
    """The tensor whose pieces (see `tensor_spans`) have been read."""
    word, entry = program.config.word, program.tensors[name]
    shape = entry.place.blocks(word), *entry.place.shape[2:]
    return entry.restore(entry.place.unpack(from_host(np.concatenate(pieces), word).reshape(*shape, word), word))


@lru_cache(maxsize=256)
def _pieces(place: Place, word: int) -> list[tuple[int, int, int]]:
    """The address_runs of a tensor's addresses; kept, because every run asks again."""
    return address_runs(place.addresses(word).reshape(-1))


def address_runs(addresses: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Runs of consecutive addresses: ``(first address, first index, length)``."""
    starts = np.flatnonzero(np.diff(addresses, prepend=addresses[:1] - 2) != 1)
    ends = np.append(starts[1:], len(addresses))
    return [(int(addresses[a]), int(a), int(b - a)) for a, b in zip(starts, ends, strict=True)]
