"""`part_entries`: the tensor table of a segment's schedule, where moves make some of the tensors.

A Concat or a Reshape of inputs is no instruction: it is there when its inputs are, which moves bring. The table tells
by a number of vector instructions when a tensor is there, so one of them has to be its *witness*: it waits for the
moves, and what comes next into these words waits for it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.units import Unit
from ..program.model import Entry
from ..sched import entries
from .part_schedule import ScheduledPart
from .regions import words_of

Words = npt.NDArray[np.int64]


def part_entries(part: ScheduledPart) -> dict[str, Entry]:
    """The tensors that operations of a segment make; left out are those of inputs that no vector instruction leaves as
    they are."""
    joined, count = _joined(part), len(part.candidate.code[Unit.VECTOR])
    found = {}
    for name, entry in entries(part.lowered, part.candidate).items():
        if not entry.op:
            continue
        if name in joined:
            entry = replace(entry, ready=max(1, entry.ready))
            if entry.ready > min(entry.last, count):
                continue
        found[name] = entry
    return found


def witnesses(part: ScheduledPart, config: HwConfig) -> Mapping[int, Words]:
    """Of vector instructions, by number from 1 on, the words of inputs that must be there when they are."""
    found: dict[int, list[Words]] = {}
    joined = _joined(part)
    for name, entry in part_entries(part).items() if joined else ():
        for mine in joined.get(name, ()):
            found.setdefault(entry.ready, []).append(words_of(part.places[mine], config))
    return {number: np.unique(np.concatenate(mine)) for number, mine in found.items()}


def _joined(part: ScheduledPart) -> dict[str, list[str]]:
    """Of tensors that operations make the inputs of which they consist in part."""
    buffers = {name: alias.buffer for name, alias in part.lowered.aliases.of.items()}
    inputs = {port.tensor for port in part.lowered.graph.inputs}
    found = {
        op.output: [name for name in inputs if buffers[name] == buffers[op.output]] for op in part.lowered.graph.ops
    }
    return {name: mine for name, mine in found.items() if mine}
