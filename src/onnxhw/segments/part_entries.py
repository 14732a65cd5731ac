"""`part_entries`: the tensor table of a segment's schedule beside moves; `witnesses`: what moves must leave alone.

The table tells by a number of vector instructions when a tensor is there, all of it. The last of these is the tensor's
*witness*: what moves bring of it comes before (a Concat of inputs is no instruction), and what comes next into its
words waits for the witness, though all that reads them may have ended.
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
    """Of vector instructions, by number from 1 on, the words of tensors that are complete with them."""
    found: dict[int, list[Words]] = {}
    for entry in part_entries(part).values():
        if entry.ready:
            found.setdefault(entry.ready, []).append(words_of(entry.place, config))
    return {number: np.unique(np.concatenate(mine)) for number, mine in found.items()}


def _joined(part: ScheduledPart) -> dict[str, list[str]]:
    """Of tensors that operations make the inputs of which they consist in part."""
    buffers = {name: alias.buffer for name, alias in part.lowered.aliases.of.items()}
    inputs = {port.tensor for port in part.lowered.graph.inputs}
    found = {
        op.output: [name for name in inputs if buffers[name] == buffers[op.output]] for op in part.lowered.graph.ops
    }
    return {name: mine for name, mine in found.items() if mine}
