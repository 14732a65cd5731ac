"""A program as host words: what is written through the host port before a run, and read after it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import MismatchError
from ..isa.memory import UCODE_SPACES, Control, Space, host_stride, word_bytes
from ..program.layout import from_host, to_host
from ..program.model import Program

Words = npt.NDArray[np.uint32]

RUNNING, ENDED, WATCHDOG = 1, 2, 4
"""Bits of Control.RUN when read."""
COUNTERS = [register for register in Control if Control.LOAD_DONE <= register <= Control.BUSY_VECTOR]
"""Registers that `Result.counters` holds."""


def budget(program: Program) -> int:
    """Cycles after which the watchdog ends a run: twice the prediction, so that a late end can still be examined."""
    return 2 * program.cycles + 1024


def program_image(program: Program) -> Iterator[tuple[Space, int, Words]]:
    """Space, host address and words of everything that a program brings along; the counts come first."""
    counts = [len(program.code.get(unit, ())) for unit in UCODE_SPACES]
    yield Space.CONTROL, int(Control.LOAD_COUNT), np.array([*counts, budget(program)], np.uint32)
    for unit, space in UCODE_SPACES.items():
        words = [word for instruction in program.code.get(unit, ()) for word in instruction.encode()]
        if words:
            yield space, 0, np.array(words, np.uint32)
    if program.weights.size:
        yield Space.WEIGHT, 0, to_host(program.weights, word_bytes(program.config, Space.WEIGHT))
    if program.params.size:
        yield Space.PARAM, 0, program.params.astype("<u8").view("<u4").astype(np.uint32)
    if program.tables.size:
        # Entry order: int8 value v is at index v + 128.
        yield Space.TABLE, 0, program.tables.reshape(-1).view(np.uint8).astype(np.uint32)


def input_image(program: Program, inputs: Mapping[str, npt.NDArray[np.int8]]) -> Iterator[tuple[int, Words]]:
    """Host address in ACT and words of every input tensor."""
    word = program.config.word
    for name, values in inputs.items():
        place = program.tensors[name].place
        data = place.pack(values, word).reshape(-1, word)
        for address, first, count in _stretches(place.addresses(word).reshape(-1)):
            yield address * host_stride(word), to_host(data[first : first + count], word)


def output_addresses(program: Program, name: str) -> list[tuple[int, int]]:
    """Host address in ACT and number of host words of the pieces of a tensor."""
    word = program.config.word
    stride = host_stride(word)
    spans = _stretches(program.tensors[name].place.addresses(word).reshape(-1))
    return [(address * stride, count * stride) for address, _, count in spans]


def tensor_of(program: Program, name: str, pieces: Sequence[Words]) -> npt.NDArray[np.int8]:
    """The tensor whose pieces (see `output_addresses`) have been read."""
    word, place = program.config.word, program.tensors[name].place
    shape = place.addresses(word).shape
    return place.unpack(from_host(np.concatenate(pieces), word).reshape(*shape, word), word)


def watchdog(program: Program, status: int, cycles: int, counts: Sequence[int]) -> MismatchError:
    """What to say of a run that has not ended by itself."""
    done = ", ".join(
        f"{unit} {n} of {len(program.code.get(unit, ()))}" for unit, n in zip(UCODE_SPACES, counts, strict=False)
    )
    state = "the watchdog ended it" if status & WATCHDOG else f"status {status}"
    return MismatchError(
        "E8402",
        f"the run has not ended after {cycles} cycles ({program.cycles} predicted; {state}); completed: {done}",
        where=program.model,
        hint="onnxhw bisect names the first difference",
    )


def _stretches(addresses: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Runs of consecutive addresses: ``(first address, first index, length)``."""
    starts = np.flatnonzero(np.diff(addresses, prepend=addresses[:1] - 2) != 1)
    ends = np.append(starts[1:], len(addresses))
    return [(int(addresses[a]), int(a), int(b - a)) for a, b in zip(starts, ends, strict=True)]
