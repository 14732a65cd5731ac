"""What the link's tests share: a core made of memory, and byte lines into a compiled simulation."""

import ctypes
import random
from collections import deque
from functools import cache
from pathlib import Path

import numpy as np
from amaranth import Cat, Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl.build import build, elaborate, ports_of
from onnxhw.engines.cxxrtl.design import Design
from onnxhw.isa.link import Info
from onnxhw.isa.memory import Control, Space
from onnxhw.rtl.core import Core
from onnxhw.rtl.link.commands import CommandEngine

CLOCK = 1_000_000
SPAN = 256
"""Host words of each space of `MemoryCore`."""
INPUT_WORDS = 6
"""Words of the stream of inputs."""
DONE = 0xFFFF
"""What ARRAY_DONE and VECTOR_DONE say from the start."""
POKED = ("run_cycles", "stop", "free", "bank_used")
"""Ports of `MemoryCore` that tests drive."""
PEEKED = ("running", "wild", "runs", "writes")
"""Those that they look at."""


class MemoryCore(wiring.Component):
    """The host port of `Core` before plain memories of `SPAN` words; a run lasts `run_cycles` cycles.

    `wild` tells that an address beyond them, or a memory during a run but for external memory and ACT in time, was
    written, or a word before another had landed; `runs` counts the runs. A run has done with its inputs once INPUT_FREE
    is not 0 and `free` is set; words wait while `bank_used`, and `stop` ends a run. One with moves that the host ends
    is `stopped`.
    """

    latency = 5

    def __init__(self, run_cycles: int = 3000) -> None:
        done = [DONE if register in (Control.ARRAY_DONE, Control.VECTOR_DONE) else 0 for register in range(SPAN)]
        self.storage = memory.MemoryData(shape=32, depth=16 * SPAN, init=done)
        super().__init__(
            {
                "host_space": In(4),
                "host_addr": In(24),
                "host_wdata": In(32),
                "host_wstrb": In(4),
                "host_we": In(1),
                "host_re": In(1),
                "host_rdata": Out(32),
                "host_rvalid": Out(1),
                "running": Out(1),
                "input_free": Out(1),
                "host_waiting": Out(1),
                "input_busy": Out(1),
                "input_over": Out(1, init=1),
                "run_cycles": In(32, init=run_cycles),
                "stop": In(1),
                "stopped": Out(1),
                "free": In(1, init=1),
                "bank_used": In(1),
                "wild": Out(1),
                "runs": Out(16),
                "writes": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(self.storage)
        write, read = mem.write_port(), mem.read_port()
        place = Cat(self.host_addr[:8], self.host_space)
        run = (self.host_space == Space.CONTROL) & (self.host_addr == Control.RUN)
        left, ended = Signal(32), Signal()
        latency = (self.host_space == Space.CONTROL) & (self.host_addr == Control.LATENCY)
        m.d.comb += [write.addr.eq(place), write.data.eq(self.host_wdata), write.en.eq(self.host_we & ~run & ~latency)]
        self._input(m)
        m.d.comb += [read.addr.eq(place), read.en.eq(1), self.running.eq(left != 0)]
        with m.If(self.running):
            m.d.sync += [left.eq(left - 1), ended.eq(left == 1)]
        with m.If(self.stop & ~self._later(m, self.stop)):
            m.d.sync += [left.eq(0), ended.eq(1)]
        free_from = Signal(32)
        with m.If(self.host_we & (self.host_space == Space.CONTROL) & (self.host_addr == Control.INPUT_FREE)):
            m.d.sync += free_from.eq(self.host_wdata)
        m.d.comb += self.input_free.eq(self.running & self.free & (free_from != 0))
        moves = Signal(32)
        with m.If(self.host_we & (self.host_space == Space.CONTROL) & (self.host_addr == Control.MOVE_COUNT)):
            m.d.sync += moves.eq(self.host_wdata)
        m.d.sync += self.stopped.eq(self.host_we & run & ~self.host_wdata[0] & self.running & (moves != 0))
        # A write that a used bank holds back is in the way of the next one; it shows four cycles after `host_we`.
        fresh = self.host_we & (self.host_space == Space.ACT)
        for _ in range(2):
            fresh = self._later(m, fresh)
        pending = Signal()
        m.d.sync += [pending.eq(fresh | (pending & self.bank_used)), self.host_waiting.eq(pending & self.bank_used)]
        with m.If(self.host_we & (pending | self.host_waiting)):
            m.d.sync += self.wild.eq(1)
        with m.If(self.host_we):
            m.d.sync += self.writes.eq(self.writes + 1)
            inputs = Cat(self.host_space == space for space in (Space.ACT, Space.INPUT, Space.EXTERNAL_INPUT))
            in_time = inputs.any() & self.input_free
            any_time = (self.host_space == Space.CONTROL) | (self.host_space == Space.EXTERNAL)
            outside = (self.host_addr >= SPAN) | (self.host_wstrb != 15)
            with m.If(outside | (self.running & ~any_time & ~in_time)):
                m.d.sync += self.wild.eq(1)
            with m.If(run & self.host_wdata[0]):
                m.d.sync += [left.eq(self.run_cycles), ended.eq(0), self.runs.eq(self.runs + 1)]
            with m.If(run & ~self.host_wdata[0]):
                m.d.sync += [left.eq(0), ended.eq(1)]
        asked, asked_run = self.host_re, run
        for _ in range(self.latency - 1):
            asked, asked_run = self._later(m, asked), self._later(m, asked_run)
        data = read.data
        for _ in range(self.latency - 2):
            data = self._later(m, data)
        m.d.sync += self.host_rvalid.eq(asked)
        m.d.sync += self.host_rdata.eq(data)
        with m.If(asked_run):
            m.d.sync += self.host_rdata.eq(Cat(self.running, ended))
        return m

    def _input(self, m):
        """Inputs are complete, some cycles late, when word `INPUT_WORDS` - 1 of the stream is written."""
        entered, busy = self.host_we & (self.host_space == Space.INPUT), Signal(5)
        for _ in range(4):
            entered = self._later(m, entered)
        m.d.comb += self.input_busy.eq(busy != 0)
        with m.If(entered):
            m.d.sync += busy.eq(20)
        with m.Elif(busy != 0):
            m.d.sync += busy.eq(busy - 1)
        with m.If(self.host_we & (self.host_space == Space.INPUT)):
            m.d.sync += self.input_over.eq(
                (self.host_addr >= INPUT_WORDS - 1) | (self.input_over & (self.host_addr != 0))
            )

    @staticmethod
    def _later(m, value):
        out = Signal(len(value))
        m.d.sync += out.eq(value)
        return out


class StreamLine:
    """A `ByteLine` to a compiled component with streams `i` (of `Received`) and `o`; a byte takes about a cycle."""

    def __init__(self, design: Design) -> None:
        self.design, self.cycles = design, 0
        self._in: deque[int] = deque()
        self._out = bytearray()
        self._run = design.library.stream_line_run
        self._run.restype = ctypes.c_size_t

    def run(self, cycles: int) -> None:
        self.cycles += cycles
        there = (ctypes.c_uint16 * len(self._in))(*self._in)
        back, made = ctypes.create_string_buffer(cycles), ctypes.c_size_t()
        count = ctypes.c_size_t(len(there))
        taken = self._run(self.design.handle, ctypes.c_uint64(cycles), there, count, back, ctypes.byref(made))
        for _ in range(taken):
            self._in.popleft()
        self._out += back.raw[: made.value]

    def exchange(self, data) -> bytes:
        """`data` may hold 0x100: a framing error."""
        self._in.extend(data)
        self.run(100)
        while self._in:
            self.run(100)
        out, self._out = bytes(self._out), bytearray()
        return out

    def seconds(self) -> float:
        return self.cycles / CLOCK


class NoisyLine:
    """Flips bits, drops, inserts and doubles bytes in both directions, each byte with probability `rate`."""

    def __init__(self, line, rate: float, seed: int) -> None:
        self.line, self.rate, self.rng = line, rate, random.Random(seed)
        self.faults = 0

    def spoil(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if self.rng.random() >= self.rate:
                out.append(byte)
                continue
            self.faults += 1
            kind = self.rng.choice(("flip", "flip", "drop", "insert", "double", "zero"))
            if kind == "flip":
                out.append(byte ^ 1 << self.rng.randrange(8))
            elif kind == "insert":
                out += bytes([self.rng.randrange(256), byte])
            elif kind == "double":
                out += bytes([byte, byte])
            elif kind == "zero":
                out.append(0)
        return bytes(out)

    def exchange(self, data: bytes) -> bytes:
        return self.spoil(self.line.exchange(self.spoil(data)))

    def seconds(self) -> float:
        return self.line.seconds()


class LoaderBench(wiring.Component):
    """A `CommandEngine` before a `MemoryCore`."""

    def __init__(self, loader, core) -> None:
        self.loader, self.core = loader, core
        super().__init__(
            {"i": In(loader.i.signature.flip()), "o": Out(stream.Signature(8)), "bad_frames": Out(16)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.loader = loader = self.loader
        m.submodules.core = core = self.core
        wiring.connect(m, wiring.flipped(self.i), loader.i)
        wiring.connect(m, loader.o, wiring.flipped(self.o))
        for name in ("space", "addr", "wdata", "wstrb", "we", "re"):
            m.d.comb += getattr(core, f"host_{name}").eq(getattr(loader, f"host_{name}"))
        m.d.comb += [loader.host_rdata.eq(core.host_rdata), loader.host_rvalid.eq(core.host_rvalid)]
        m.d.comb += [loader.running.eq(core.running), loader.input_free.eq(core.input_free)]
        m.d.comb += loader.host_waiting.eq(core.host_waiting)
        if hasattr(loader, "stopped"):
            m.d.comb += loader.stopped.eq(core.stopped)
        m.d.comb += [loader.input_busy.eq(core.input_busy), loader.input_over.eq(core.input_over)]
        with m.If(loader.bad_frame):
            m.d.sync += self.bad_frames.eq(self.bad_frames + 1)
        return m


@cache
def _library(info: Info, config: HwConfig | None) -> Path:
    """The compiled `LoaderBench`, before the core of a configuration or one made of memory."""
    core = MemoryCore() if config is None else Core(config)
    top = LoaderBench(CommandEngine(info), core)
    shown = [core.running] if config else [getattr(core, name) for name in (*POKED, *PEEKED)]
    driver = Path(__file__).with_name("stream_line.cc").read_text()
    text = elaborate(top, [*ports_of(top), *shown])
    return build(lambda: text, drivers=[driver], label="loader").path


class Bench:
    """A simulated loader before a core of a configuration, or one made of memory: its line, and what that holds."""

    def __init__(self, info: Info, config: HwConfig | None = None, run_cycles: int = 3000) -> None:
        self.design = Design(_library(info, config))
        self.line = StreamLine(self.design)
        if config is None:
            self.poke("free", 1)
            self.poke("run_cycles", run_cycles)

    def poke(self, name: str, value: int) -> None:
        """Drive one of `POKED`."""
        self.design.set(name, value)

    def peek(self, name: str) -> int:
        """One of `PEEKED`, or the number of `bad_frames`."""
        return self.design.get(name)

    def contents(self) -> np.ndarray:
        """Every word of every space: uint32 ``[16, SPAN]``."""
        return self.design.memory("top core memory").reshape(16, SPAN).copy()
