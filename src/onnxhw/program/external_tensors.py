"""Inputs and outputs that lie in external memory: their words, in the pieces that a program says."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..isa.memory import host_stride
from .layout import from_host, to_host
from .model import DeviceProgram, Entry
from .storage import Array8

Words = npt.NDArray[np.uint32]


def external_words(entry: Entry, values: Array8, word: int) -> Iterator[tuple[int, Words]]:
    """Host words of external memory that hold an input, each run with its first address; `word`: W."""
    stride = host_stride(word)
    for piece in entry.external:
        mine = values[piece.box.slices]
        if piece.storage is not None:
            mine = piece.storage.store(mine, entry.zero_point)
        yield piece.place.base * stride, to_host(piece.place.pack(mine, word).reshape(-1, word), word)


def state_words(program: DeviceProgram) -> Iterator[tuple[int, Words]]:
    """Host words of external memory that hold the initial values of states, each run with its first address."""
    for state in program.states:
        yield from external_words(program.tensors[state.read], state.initial, program.config.word)


def word_runs(entry: Entry, word: int) -> list[tuple[int, int]]:
    """First host word, and number of host words, of each piece."""
    stride, places = host_stride(word), [piece.place for piece in entry.external]
    return [(p.base * stride, p.blocks(word) * p.shape[2] * p.shape[3] * stride) for p in places]


def external_inputs(program: DeviceProgram) -> list[str]:
    """The input tensors of external memory; several ports may share one."""
    found = dict.fromkeys(port.tensor for port in program.inputs)
    return [name for name in found if program.tensors[name].external]


def external_span(entry: Entry, word: int) -> tuple[int, int]:
    """First host word, and number of host words, of an output."""
    place, stride = entry.external[0].place, host_stride(word)
    return place.base * stride, place.blocks(word) * place.plane * stride


def external_tensor(entry: Entry, words: Words, word: int) -> Array8:
    """The output that these host words hold."""
    place = entry.external[0].place
    shape = place.blocks(word), *place.shape[2:], word
    return place.unpack(from_host(words, word).reshape(shape), word)
