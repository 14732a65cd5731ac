"""`EmulatedCore`: the core's host port, with the emulator behind it."""

import sys
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..emu.counters import counters
from ..emu.machine import Machine
from ..emu.order import steps, time_order
from ..errors import OnnxhwError
from ..isa.external_instructions import kinds
from ..isa.input_port import LANES, REGION_STRIDE, REGIONS, from_table, latency, stream_words
from ..isa.instructions import UNITS, Code, Ordered
from ..isa.memory import (
    COUNTERS,
    ENDED,
    RING_SIZE,
    WATCHDOG,
    Control,
    Space,
    host_stride,
    word_bytes,
)
from ..isa.microcode import unpack
from ..isa.timing import Timeline, timeline
from ..isa.units import Unit, ucode_words
from ..program.input_scatter import Scattered, scatter
from ..program.layout import from_host, to_host

Words = npt.NDArray[np.uint32]
DATA = (Space.ACT, Space.EXTERNAL)
"""Memories that hold no part of a program."""


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
            **{unit.microcode: ucode_words(config, unit) for unit in UNITS},
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
        self._decoded: tuple[Code, Timeline, list[Unit], dict[str, int]] | None = None
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
        memory = self.memory.get(Space(space)) if space in list(Space) else None
        if memory is not None:
            there = memory[address : address + len(values) * step : step]
            there[:] = values[: len(there)]
            if space not in DATA:
                self._decoded = None

    def read(self, space: int, address: int, count: int, step: int = 1) -> Words:
        """`count` host words `address`, `address + step`, ... of CONTROL, ACT or EXTERNAL; 0 outside."""
        out = np.zeros(count, np.uint32)
        if space in (Space.CONTROL, *DATA) and (space != Space.EXTERNAL or self.config.external is not None):
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
        writable = range(Control.LOAD_COUNT, Control.INPUT_FREE + 1)
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
            code, times, order, counts = self._decoded = self._decoded or self._decode()
            if budget and times.cycles > budget:
                raise _StoppedError
            self._execute(code, order)
        except (OnnxhwError, _StoppedError, ValueError, IndexError, KeyError):
            registers[Control.RUN] = ENDED | WATCHDOG
            registers[Control.CYCLES] = budget
            registers[Control.LOAD_DONE : max(COUNTERS) + 1] = 0
            return
        registers[Control.RUN] = ENDED
        registers[Control.CYCLES] = times.cycles
        registers[Control.LATENCY] = self._latency(times.cycles)
        for register in COUNTERS:
            registers[register] = counts[register.name.lower()]
        self._remember(times)

    def _latency(self, cycles: int) -> int:
        """What a device measures whose inputs end with this run's start; 0 if there were none."""
        frame, self._frame = self._frame, None
        if frame is None:
            return 0
        table = self.memory[Space.INPUT_TABLE].tobytes()
        return _begun(table, self.config.word, frame) + cycles

    def _decode(self) -> tuple[Code, Timeline, list[Unit], dict[str, int]]:
        """Program, timeline, order and counters of what the memories hold; the machine gets its constants."""
        registers, config, machine = self.memory[Space.CONTROL], self.config, self._machine
        code: dict[Unit, list[Ordered]] = {}
        for unit in UNITS:
            count = int(registers[unit.registers.count])
            code[unit] = list(unpack(kinds(config)[unit], self.memory[unit.microcode].tolist(), count))
        machine.weights[:] = from_host(self.memory[Space.WEIGHT], config.weight_word)
        machine.params[:] = from_host(self.memory[Space.PARAM], word_bytes(config, Space.PARAM)).view("<u8")
        machine.tables[:] = self.memory[Space.TABLE].astype(np.uint8).view(np.int8).reshape(-1, 256)
        times = timeline(config, code)
        return code, times, time_order(times), counters(code, times)

    def _execute(self, code: Code, order: list[Unit]) -> None:
        machine, word = self._machine, self.config.word
        machine.act[:] = from_host(self.memory[Space.ACT], word).view(np.int8)
        machine.forget()
        for unit, index in steps(code, order):
            machine.execute(code[unit][index])
        self.memory[Space.ACT][:] = to_host(machine.act.view(np.uint8), word)

    def _remember(self, times: Timeline) -> None:
        """Fill the ring of the last issued instructions; of units that issue together the first is entered."""
        taken: dict[int, int] = {}
        for unit in UNITS:
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
