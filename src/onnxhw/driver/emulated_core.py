"""`EmulatedCore`: the core's host port, with the emulator behind it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..emu.counters import counters
from ..emu.machine import Machine
from ..emu.order import steps, time_order
from ..emu.ring_decode import decode_rings
from ..emu.rings import Fetch, fetches
from ..errors import OnnxhwError
from ..isa.external_instructions import COUNT_BITS, kinds
from ..isa.input_port import LANES, REGION_STRIDE, REGIONS, from_table, latency, stream_words
from ..isa.instructions import UNITS, Code, Ordered
from ..isa.memory import (
    COUNTERS,
    ENDED,
    MOVE_COUNTERS,
    RING_SIZE,
    WATCHDOG,
    Control,
    Space,
    host_stride,
    word_bytes,
)
from ..isa.microcode import unpack
from ..isa.move_timing import started
from ..isa.timeline import Timeline, timeline
from ..isa.units import Unit, ucode_words, units_of
from ..program.input_scatter import Scattered, scatter
from ..program.layout import from_host, to_host

Words = npt.NDArray[np.uint32]
READABLE = (Space.CONTROL, Space.ACT, Space.EXTERNAL)


@dataclass(frozen=True)
class _Decoded:
    """What the memories hold: the program, its times, the order of its instructions, its counters, and what is fetched
    behind which of them. `source`: the words of external memory that have microcode, from the first on to behind the
    last."""

    code: Code
    times: Timeline
    order: list[Unit]
    counters: dict[str, int]
    fetches: Mapping[int, list[Fetch]]
    source: tuple[int, int]


class EmulatedCore:
    """Memories as host words; a write of 1 to Control.RUN executes whatever they hold, at once.

    A run takes no time here, so the device is never seen busy; cycles and counters are those of the timeline. A
    program that means nothing, or is longer than its budget, ends as the watchdog would end it.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        sizes = {
            Space.CONTROL: 64,
            Space.ACT: config.act_words,
            Space.WEIGHT: config.weight_depth,
            Space.PARAM: config.param_depth,
            Space.TABLE: config.tables * 256,
            Space.INPUT_TABLE: REGIONS * REGION_STRIDE,
            **{unit.microcode: ucode_words(config, unit) for unit in (*UNITS, *units_of(config))},
        }
        self.memory = {
            space: np.zeros(size * host_stride(word_bytes(config, space)), np.uint32) for space, size in sizes.items()
        }
        if config.external is not None:
            self.memory[Space.EXTERNAL] = np.zeros(config.external.host_words, np.uint32)
        fingerprint = int(config.fingerprint, 16)
        self.memory[Space.CONTROL][Control.FINGERPRINT_LOW] = fingerprint & 0xFFFFFFFF
        self.memory[Space.CONTROL][Control.FINGERPRINT_HIGH] = fingerprint >> 32
        self._machine = Machine(config)
        if config.external is not None:
            # A run changes these, and the host finds them so.
            self._machine.external = self.memory[Space.EXTERNAL]
            self._machine.microcode = {unit.microcode: self.memory[unit.microcode] for unit in units_of(config)}
        self._decoded: _Decoded | None = None
        self._stream = bytearray()
        """Words of input from the first on, as far as they have come."""
        self.input_over = True
        self._frame: int | None = None
        """Where in the stream the last words came, until a run takes them."""
        self.runs = 0
        """Runs since power-up."""

    def write(self, space: int, address: int, words: npt.ArrayLike, step: int = 1) -> None:
        """Host words `address`, `address + step`, ... of a space; what lies outside the memory is dropped."""
        values = np.asarray(words, np.uint32)
        if space == Space.CONTROL:
            self._control(address, values)
            return
        if space == Space.INPUT:
            self._input(address, values)
            return
        if space == Space.EXTERNAL_INPUT:
            space = Space.EXTERNAL
        memory = self.memory.get(Space(space)) if space in list(Space) else None
        if memory is not None:
            there = memory[address : address + len(values) * step : step]
            there[:] = values[: len(there)]
            if space == Space.EXTERNAL and self._decoded is not None:
                first, end = self._decoded.source
                if first < address + len(values) * step and address < end:
                    self._decoded = None
            elif space != Space.ACT:
                self._decoded = None

    def read(self, space: int, address: int, count: int, step: int = 1) -> Words:
        """`count` host words `address`, `address + step`, ... of CONTROL, ACT or EXTERNAL; 0 outside."""
        out = np.zeros(count, np.uint32)
        if space in READABLE and (space != Space.EXTERNAL or self.config.external is not None):
            found = self.memory[Space(space)][address : address + count * step : step]
            out[: len(found)] = found
        return out

    def _input(self, address: int, values: Words) -> None:
        """Words of the stream of inputs; when the last has come all are put into their places."""
        if address == 0:
            self._stream.clear()
            self.input_over = False
        if self.input_over:
            return  # words behind the last are dropped
        self._frame = address
        self._stream += values.astype("<u4").tobytes()
        word = self.config.word
        parts, size = _placed(self.memory[Space.INPUT_TABLE].tobytes(), word, self.config.act_bytes)
        if len(self._stream) >= size:
            self.input_over = True
            stream = np.frombuffer(bytes(self._stream), np.int8)
            act = self.memory[Space.ACT].view(np.int8)
            for part in parts:
                act[part.filled] = part.fill
                act[part.places] = stream[part.source]

    def _control(self, address: int, values: Words) -> None:
        registers = self.memory[Space.CONTROL]
        writable = [*range(Control.LOAD_COUNT, Control.INPUT_FREE + 1)]
        if self.config.external is not None:
            writable.append(Control.MOVE_COUNT)
        for register, value in enumerate(values.tolist(), address):
            if register in writable:
                registers[register] = value
                self._decoded = None
            elif register == Control.RUN and value & 1:
                self._run()

    def _run(self) -> None:
        """Execute the program in the memories."""
        registers = self.memory[Space.CONTROL]
        self.runs += 1
        budget = int(registers[Control.BUDGET])
        try:
            found = self._decoded = self._decoded or self._decode()
            times = found.times
            if budget and times.cycles > budget:
                raise _StoppedError
            self._execute(found)
        except (OnnxhwError, _StoppedError, ValueError, IndexError, KeyError):
            self._decoded = None
            registers[Control.RUN] = ENDED | WATCHDOG
            registers[Control.CYCLES] = budget
            for register in (*COUNTERS, *MOVE_COUNTERS):
                registers[register] = 0
            return
        registers[Control.RUN] = ENDED
        registers[Control.CYCLES] = times.cycles
        registers[Control.LATENCY] = self._latency(times.cycles, moves=bool(found.code[Unit.MOVE]))
        for register in (*COUNTERS, *MOVE_COUNTERS):
            registers[register] = found.counters.get(register.name.lower(), 0)
        self._remember(times)

    def _latency(self, cycles: int, *, moves: bool) -> int:
        """What a device measures whose inputs end with this run's start; without inputs 0, or with moves from the
        start."""
        frame, self._frame = self._frame, None
        if frame is None:
            return started(self.config) + cycles if moves else 0
        table, external = self.memory[Space.INPUT_TABLE].tobytes(), self.config.external
        wait = external.start_wait if external is not None and moves else 0
        return _begun(table, self.config.word, frame) + wait + cycles

    def _decode(self) -> _Decoded:
        """What the memories hold; the machine gets its constants."""
        registers, config, machine = self.memory[Space.CONTROL], self.config, self._machine
        counts = {unit: int(registers[unit.registers.count]) for unit in Unit}
        code: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
        source = 0, 0
        if counts[Unit.MOVE]:
            counts = {unit: count % (1 << COUNT_BITS) for unit, count in counts.items()}
            code, source = decode_rings(config, self.memory, counts)
        else:
            for unit in UNITS:
                code[unit] = list(unpack(kinds(config)[unit], self.memory[unit.microcode].tolist(), counts[unit]))
        machine.weights[:] = from_host(self.memory[Space.WEIGHT], config.weight_word)
        machine.params[:] = from_host(self.memory[Space.PARAM], word_bytes(config, Space.PARAM)).view("<u8")
        machine.tables[:] = self.memory[Space.TABLE].astype(np.uint8).view(np.int8).reshape(-1, 256)
        times = timeline(config, code)
        found = fetches(config, code, times)
        return _Decoded(code, times, time_order(times), counters(code, times), found, source)

    def _execute(self, found: _Decoded) -> None:
        machine, word = self._machine, self.config.word
        machine.act[:] = from_host(self.memory[Space.ACT], word).view(np.int8)
        machine.forget()
        for number, (unit, index) in enumerate(steps(found.code, found.order)):
            machine.execute(found.code[unit][index])
            for fetch in found.fetches.get(number, ()):
                fetch.check(machine)
        self.memory[Space.ACT][:] = to_host(machine.act.view(np.uint8), word)

    def _remember(self, times: Timeline) -> None:
        """Fill the ring of the last issued instructions; of units that issue together the first is entered."""
        taken: dict[int, int] = {}
        for unit in Unit:
            number = unit.number
            for index, span in enumerate(times.spans[unit]):
                taken.setdefault(span.issue, number << 28 | index & 0xFFFF)
        registers = self.memory[Space.CONTROL]
        registers[Control.RING : Control.RING + RING_SIZE] = 0
        last = sorted(taken.items())
        for number in range(max(0, len(last) - RING_SIZE), len(last)):
            registers[Control.RING + number % RING_SIZE] = last[number][1]
        registers[Control.RING_HEAD] = len(last) % RING_SIZE


@lru_cache(maxsize=8)
def _placed(table: bytes, word: int, size: int) -> tuple[list[Scattered], int]:
    """Where bytes of the stream go by the words of a table, in an image of host words of a memory of `size` bytes, and
    how many there are."""
    regions = from_table(np.frombuffer(table, np.uint32).tolist(), word)
    if any(min(each.run, each.runs, each.rows) < 1 or each.end > size for each in regions):
        return [], sys.maxsize  # no table of ours: inputs are never complete
    return scatter(regions, word, 4 * host_stride(word)), LANES * stream_words(regions)


@lru_cache(maxsize=8)
def _begun(table: bytes, word: int, after: int) -> int:
    """Cycles from the acceptance of the last frame of input to the begin of the run."""
    return latency(from_table(np.frombuffer(table, np.uint32).tolist(), word), word, 0, after)


class _StoppedError(Exception):
    """The run does not end by itself within its budget."""
