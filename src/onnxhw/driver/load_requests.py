"""The commands that load a program into a device, and the numbers by which it names the program afterwards."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa.instructions import UNITS
from ..isa.link import Command, load_record
from ..isa.memory import Space
from ..isa.units import Unit
from ..program.external_tensors import state_words
from ..program.host_words import memories
from ..program.model import DeviceProgram
from .framing import crc32c
from .inferences import pieces
from .link import Request


def load_requests(program: DeviceProgram, *, image: bool) -> list[Request]:
    """RESET, the words of all memories and COMMIT; before them, with `image`, those of external memory and their own
    COMMIT. States have their initial values before the COMMIT: a program that is complete has states that are."""
    requests = [Request(Command.RESET, address=3 if image else 1)]
    if image:
        writes = list(image_writes(program))
        requests += [*writes, Request(Command.COMMIT, Space.EXTERNAL, count=1, payload=_bytes([load_crc(writes)]))]
    writes, counts = list(program_writes(program)), run_counts(program)
    commit = Request(Command.COMMIT, count=1 + len(counts), payload=_bytes([load_crc(writes), *counts]))
    return [*requests, *state_writes(program), *writes, commit]


def word_writes(space: int, address: int, words: npt.NDArray[Any]) -> Iterator[Request]:
    """WRITE of 32-bit words from host-word `address` of a memory on."""
    return pieces(space, address, words.reshape(-1).astype("<u4").tobytes(), 1)


def program_writes(program: DeviceProgram) -> Iterator[Request]:
    """WRITE of the core's memories."""
    for space, words in memories(program):
        yield from word_writes(space, 0, words)


def state_writes(program: DeviceProgram) -> list[Request]:
    """WRITE of the initial values of states. They are counted as no part of the program, as inputs are."""
    return [request for first, words in state_words(program)
            for request in word_writes(Space.EXTERNAL_INPUT, first, words)]  # fmt: skip


def image_writes(program: DeviceProgram) -> Iterator[Request]:
    """WRITE of the program's image of external memory; none without one."""
    return word_writes(Space.EXTERNAL, 0, program.external)


def load_crc(writes: list[Request]) -> int:
    """The CRC-32C that the device has over these WRITEs."""
    return crc32c(b"".join(load_record(each.space, each.address, each.payload) for each in writes))


def run_counts(program: DeviceProgram) -> list[int]:
    """Contents of Control.LOAD_COUNT .. INPUT_FREE, with external memory MOVE_COUNT, too."""
    array, vector = program.input_free
    counts = [*(len(program.code.get(unit, ())) for unit in UNITS), program.cycles, array | vector << 16]
    return counts if program.config.external is None else [*counts, len(program.code.get(Unit.MOVE, ()))]


def _bytes(words: list[int]) -> bytes:
    return np.array(words, "<u4").tobytes()
