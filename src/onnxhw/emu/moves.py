"""`move`: what a `Move` does to the memories of a `Machine`."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..isa.external_instructions import ADDRESS, Move
from ..isa.memory import Space, host_stride

WORD = 4
"""Bytes of a host word."""


class MovedMemories(Protocol):
    """The memories of a `Machine` that moves reach."""

    act: npt.NDArray[np.int8]
    weights: npt.NDArray[np.uint8]
    params: npt.NDArray[np.uint64]
    tables: npt.NDArray[np.int8]
    external: npt.NDArray[np.uint32]

    @property
    def microcode(self) -> Mapping[Space, npt.NDArray[np.uint32]]: ...


def move(machine: MovedMemories, instruction: Move) -> None:
    """Copy the words of an instruction; `InternalError` E1121 for an address outside its memory, E1122 for a memory
    that it cannot reach."""
    i = instruction
    memory = memory_bytes(machine, i)
    chip, external = move_addresses(i)
    size, stride = memory.shape[1], host_stride(memory.shape[1])
    external %= len(machine.external)
    if (last := int(chip.max()) // stride) >= len(memory):
        raise InternalError("E1121", f"word {last} of {len(memory)}", where=i.text())
    words, places = np.divmod(chip, stride)
    # A word's last host words may be wider than what is left of it, or have nothing of it.
    lanes = places[:, None] * WORD + np.arange(WORD)
    there = lanes < size
    rows = np.broadcast_to(words[:, None], lanes.shape)
    if i.store:
        found = np.zeros(lanes.shape, np.uint8)
        found[there] = memory[rows[there], lanes[there]]
        machine.external[external] = found.view("<u4").reshape(-1)
    else:
        given = machine.external[external].astype("<u4").view(np.uint8).reshape(-1, WORD)
        memory[rows[there], lanes[there]] = given[there]


def move_addresses(i: Move) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Host words of the memory and words of external memory, modulo 2**24, in the order in which they are moved."""
    block, run, word = np.meshgrid(np.arange(i.block_n), np.arange(i.run_n), np.arange(i.word_n), indexing="ij")
    chip = (i.chip + block * i.c_block + run * i.c_run + word) & ADDRESS
    external = (i.external + block * i.e_block + run * i.e_run + word) & ADDRESS
    return chip.reshape(-1), external.reshape(-1)


def memory_bytes(machine: MovedMemories, i: Move) -> npt.NDArray[np.uint8]:
    """A view of the memory that an instruction reaches: its words' bytes."""
    if i.space == Space.ACT:
        return machine.act.view(np.uint8)
    if i.store:
        raise InternalError("E1122", "only activation memory can be stored", where=i.text())
    if i.space == Space.WEIGHT:
        return machine.weights
    if i.space == Space.PARAM:
        return machine.params.view(np.uint8)
    if i.space == Space.TABLE:
        return machine.tables.view(np.uint8).reshape(-1, 1)
    if i.space in machine.microcode:
        return machine.microcode[Space(i.space)].view(np.uint8).reshape(-1, WORD)
    raise InternalError("E1122", f"no move reaches space {i.space}", where=i.text())
