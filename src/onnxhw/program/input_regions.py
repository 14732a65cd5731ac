"""Where the elements of an input lie, as regions of the input port, and in which order they travel."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ..isa import input_port as isa
from ..isa.input_port import LANES, REGIONS, InputRegion, stream_words, table_words
from ..isa.link import MAX_WORDS
from ..isa.move_timing import started
from ..isa.units import Unit
from .layout import Place
from .model import DeviceProgram, Entry
from .storage import PackedInput

Array8 = npt.NDArray[np.int8]


def inputs(program: DeviceProgram) -> list[str]:
    """The input tensors of activation memory in the order in which they travel; several ports may share one."""
    found = dict.fromkeys(port.tensor for port in program.inputs)
    return [name for name in found if not program.tensors[name].external]


def input_regions(program: DeviceProgram) -> list[InputRegion]:
    """The regions of all inputs."""
    return [each for entry in _entries(program) for each in regions(entry, program.config.word)]


def _entries(program: DeviceProgram) -> list[Entry]:
    return [program.tensors[name] for name in inputs(program)]


def input_table(program: DeviceProgram) -> npt.NDArray[np.uint32]:
    """The table of the input port."""
    return np.array(table_words(input_regions(program), program.config.word), np.uint32)


def input_stream(program: DeviceProgram, values: Mapping[str, Array8]) -> npt.NDArray[np.uint32]:
    """The words that travel for the model's int8 inputs ``(1, C, H, W)`` by tensor name."""
    data = b"".join(to_stream(program.tensors[name], values[name], program.config.word) for name in inputs(program))
    return np.frombuffer(data, "<u4").astype(np.uint32)


def latency(program: DeviceProgram) -> int:
    """Cycles from the acceptance of the last frame of input to the end of the run (`isa.input_port.latency`), frames
    being as long as may be.

    A run with moves begins with the external memory's start sequence, which is in it. If all inputs lie in external
    memory it counts from the start of the run (`isa.move_timing.started`): the last frame's way there is not in it.
    """
    if from_start(program):
        return started(program.config) + program.cycles
    external, moves = program.config.external, program.code.get(Unit.MOVE)
    wait = external.start_wait if external is not None and moves else 0
    return latency_of(_entries(program), program.config.word, wait + program.cycles)


def from_start(program: DeviceProgram) -> bool:
    """Whether `latency` counts from the start of the run: no input travels through the input port."""
    return bool(program.code.get(Unit.MOVE)) and not inputs(program)


def latency_of(entries: Sequence[Entry], word: int, cycles: int) -> int:
    """The same of inputs in a memory of `word` lanes, before a run of `cycles`."""
    found = [each for entry in entries for each in regions(entry, word)]
    if not found:  # nothing comes, and a run is all
        return cycles
    return isa.latency(found, word, cycles, last_frame(stream_words(found)))


def last_frame(words: int) -> int:
    """Which of so many words of the stream is the first of the last frame."""
    return max(0, words - 1) // MAX_WORDS * MAX_WORDS


def intake(program: DeviceProgram) -> int:
    """Cycles in which the port takes whole inputs that come at its full rate."""
    return isa.input_cycles(input_regions(program), program.config.word)


def travelling_words(entry: Entry) -> int:
    """Words of the stream of an input of a program."""
    return shape_words(entry.shape if isinstance(entry.storage, PackedInput) else entry.place.shape)


def shape_words(shape: tuple[int, int, int, int]) -> int:
    """Words of the stream of a tensor."""
    return -(-prod(shape) // LANES)


def require_regions(places: Sequence[Place], word: int) -> str:
    """Why inputs that lie there, one pixel or more to a word, are too many for the input port; else empty."""
    count = sum(len(_blocks(place, word)) for place in places)
    return f"the inputs lie in {count} regions of memory, the input port has {REGIONS}" if count > REGIONS else ""


def regions(entry: Entry, word: int) -> list[InputRegion]:
    """The regions of an input, in a memory of `word` lanes, in the order of their addresses.

    An input that is packed has one, whose gaps hold the zero point. Else each block of channels is one, and what lies
    in other lanes stays; blocks that follow each other without a gap are one.
    """
    if isinstance(entry.storage, PackedInput):
        found = [_packed(entry, entry.storage)]
    else:
        found = _blocks(entry.place, word)
    last = found.pop()
    return [*found, InputRegion(**{**vars(last), "ends": True})]


def to_stream(entry: Entry, values: Array8, word: int) -> bytes:
    """The bytes that travel for the model's int8 ``(1, C, H, W)``: its elements by address, then 0 to a whole word."""
    if isinstance(entry.storage, PackedInput):
        data: bytes = values[0].transpose(_axes(entry.storage, values.shape)).tobytes()
    else:
        stored, place = entry.store(values), entry.place
        lows = range(-place.lane, place.shape[1], word)
        data = b"".join(stored[0, max(0, low) : low + word].transpose(1, 2, 0).tobytes() for low in lows)
    return data + bytes(-len(data) % LANES)


def _axes(packed: PackedInput, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channel, row and column of an input in the order in which addresses run, the slowest first."""
    return (1, 2, 0) if _rows_outer(packed, shape) else (2, 1, 0)


def _rows_outer(packed: PackedInput, shape: tuple[int, ...]) -> bool:
    return (packed.row, shape[2]) >= (packed.column, shape[3])


def _packed(entry: Entry, packed: PackedInput) -> InputRegion:
    shape = entry.shape
    _, channels, height, width = shape
    axes = [(packed.row, height), (packed.column, width)]
    (inner, runs), (outer, rows) = axes[::-1] if _rows_outer(packed, shape) else axes
    run = channels
    if inner == channels or runs == 1:
        run, runs, inner = channels * runs, 1, channels * runs
    length = (runs - 1) * inner + run
    used = packed.first + (rows - 1) * outer + length
    return InputRegion(
        entry.place.base * packed.word, run, inner - run, runs, outer - length if rows > 1 else 0, rows,
        packed.first, packed.words * packed.word - used, entry.zero_point,
    )  # fmt: skip


def _blocks(place: Place, word: int) -> list[InputRegion]:
    """Channels of the first block if it begins in another lane than 0, those of whole blocks, and the last ones'."""
    _, channels, height, width = place.shape
    first = place.base * word + place.lane
    rows, end = [(width, word), (height, place.row * word)], place.lane + channels
    whole = range(-(-place.lane // word), end // word)
    parts: list[tuple[int, int, list[tuple[int, int]]]] = []
    if place.lane:
        parts.append((first, min(end, word) - place.lane, rows))
    if whole:
        low = (place.base + whole.start * place.plane) * word
        parts.append((low, word, [*rows, (len(whole), place.plane * word)]))
    if end % word and (end > word or not place.lane):
        parts.append(((place.base + end // word * place.plane) * word, end % word, rows))
    found: list[InputRegion] = []
    for part in parts:
        region, before = _nest(*part), found[-1] if found else None
        if before and region.rows == region.runs == before.rows == before.runs == 1 and before.end == region.first:
            found[-1] = InputRegion(before.first, before.run + region.run)
        else:
            found.append(region)
    return found


def _nest(first: int, run: int, levels: list[tuple[int, int]]) -> InputRegion:
    """A region of runs of so many bytes, repeated as `levels` say, innermost first: how often, and how far apart."""
    left: list[tuple[int, int]] = []
    for count, pitch in levels:
        if not left and (pitch == run or count == 1):
            run *= count
        elif left and pitch == left[-1][0] * left[-1][1]:
            left[-1] = left[-1][0] * count, left[-1][1]
        elif count > 1:
            left.append((count, pitch))
    assert len(left) <= 2, "whole words lie side by side"
    (runs, inner), (rows, outer) = (*left, (1, 0), (1, 0))[:2]
    gap = inner - run if runs > 1 else 0
    row_gap = outer - (run + gap) * (runs - 1) - run if rows > 1 else 0
    return InputRegion(first, run, gap, runs, row_gap, rows)
