"""What hardware parts take in time, and what the host would take for them: which of the two is quicker.

    hardware    bytes of an inference on the line + cycles of the core (+ bytes of the program, if several take turns)
    host        operations, taps, multiply-accumulates, weights and elements, each at a constant rate

The bytes and cycles are exact. The host's rates are constants, so that the same model is always placed in the same way:
those of one core of an EPYC (Zen 3). ``python bench/hostcost.py --rates`` measures them against the MLPerf Tiny
networks; another machine differs by a factor of two or so, and the line is mostly a factor of ten away.

An adapter's latency (a millisecond or more for each change of direction) is not counted: it is not the design's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from ..board import Board, boards
from ..config import HwConfig
from ..ir.graph import Graph, Op
from ..isa.link import USB_BAUD, fastest_rate
from ..presets import SDRAM
from ..program.model import DeviceProgram
from ..program.traffic import Rates, Traffic, frames_bytes, load_bytes, traffic_of
from .capacity import Fit, weight_bytes

Prefer = Literal["speed", "hardware"]
"""Where a part runs that the hardware can run: where it is quicker, or on the hardware."""

# The golden model, which runs parts that are left to the host: numpy, one core.
OP_NS = 40_000
"""Python and numpy calls of an operation."""
TAP_NS = 5_000
"""Calls for each tap of a window."""
MAC_NS = 0.2
"""BLAS in float32."""
SINGLE_MAC_NS = 3.5
"""Of convolutions with one channel per group, which are no matrix products."""
WEIGHT_NS = 1.5
"""Conversion to float."""
ELEMENT_NS = 12.0
"""Requantization in int64."""

# onnxruntime with its optimizations, one thread, for a whole model.
ORT_OP_NS = 3_000
"""Call of a fused kernel."""
ORT_MAC_NS = 0.035
"""int8 products with AVX2."""
ORT_ELEMENT_NS = 0.25
"""Requantization, fused."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one inference of a hardware part.

    `line`, `core`: of its `size` bytes and its cycles. `load`: of the `program` bytes of its program, which pass for
    each call if several programs take turns. `host`: of the golden model, which would run it instead. `onnxruntime`: of
    onnxruntime for the same operations. `computes`: it does more than join tensors.
    """

    line: float
    core: float
    load: float
    host: float
    onnxruntime: float
    size: int = 0
    program: int = 0
    computes: bool = True

    @property
    def hardware(self) -> float:
        """Line and core, the program being loaded."""
        return self.line + self.core


REFERENCE = "ulx3s"
"""How the names of the boards begin that figures are of where no board is named: ``--board`` is one unless given."""


def board_rates(config: HwConfig) -> Rates | None:
    """Line and clock of the board whose default the preset is, else of the first that offers it, of several of
    `REFERENCE`; None if none does."""
    name = config.name.removesuffix(SDRAM)
    owners = [board for board in boards().values() if board.offers(name)]
    owners.sort(key=lambda board: (not board.name.startswith(REFERENCE), board.preset.removesuffix(SDRAM) != name))
    if not owners:
        return None
    hz = owners[0].core_hz_of(config.name)
    return Rates(line_rate(owners[0], hz), hz)


def line_rate(board: Board, clock_hz: float, link: str = "") -> int:
    """Bits per second, ten to a byte, of a board's link at a clock of the core, the one that it has unless asked
    otherwise: the fastest rate of its serial adapter that the clock allows, or what USB counts as."""
    return USB_BAUD if (link or board.link) == "usb" else fastest_rate(clock_hz, board.baud)


def golden_ms(graph: Graph) -> float:
    """What the golden model takes for a graph on the host."""
    return sum(_golden_ns(graph, op) for op in graph.ops) / 1e6


def _golden_ns(graph: Graph, op: Op) -> float:
    elements = ELEMENT_NS * prod(graph.tensors[op.output].shape) + WEIGHT_NS * op.weight.size
    rate = SINGLE_MAC_NS if op.weight.shape[1] == 1 and not op.any_order else MAC_NS
    return OP_NS + TAP_NS * op.taps + rate * graph.macs_of(op) + elements


def onnxruntime_ms(program: DeviceProgram) -> float:
    """What onnxruntime takes for the operations of a program, of the model's sizes."""
    made = [entry.shape for entry in program.tensors.values() if entry.op]
    return _onnxruntime_ms(len(made), program.nominal, sum(map(prod, made)))


def _onnxruntime_ms(operations: int, macs: int, elements: int) -> float:
    return (ORT_OP_NS * operations + ORT_MAC_NS * macs + ORT_ELEMENT_NS * elements) / 1e6


def _joins(graph: Graph) -> bool:
    """Whether a graph only puts tensors together, perhaps each brought onto the result's grid before."""
    joined = any(op.joins and len(op.inputs) > 1 for op in graph.ops)
    return joined and all(op.moves or (op.elementwise and len(op.inputs) == 1) for op in graph.ops)


def of_graph(graph: Graph, cycles: int, moved: Traffic, weights: int, rates: Rates) -> Cost:
    """Of a part that is not scheduled to its end; `weights` are the bytes of its program as far as they are known."""
    elements = sum(prod(graph.tensors[op.output].shape) for op in graph.ops)
    return Cost(
        rates.line_ms(moved.alone), rates.core_ms(cycles), rates.line_ms(weights), golden_ms(graph),
        _onnxruntime_ms(len(graph.ops), graph.macs(), elements), moved.alone, weights,
        not _joins(graph),
    )  # fmt: skip


def of_fit(graphs: Sequence[Graph], found: Fit, rates: Rates) -> list[Cost]:
    """Of the parts of a fit, whose programs are at least their weights; none if one does not fit."""
    if len(found.parts) < len(graphs):
        return []
    return [
        of_graph(graph, cycles, moved, frames_bytes(-(-weight_bytes(graph) // 4)), rates)
        for graph, (cycles, moved) in zip(graphs, found.parts, strict=True)
    ]


def of_program(graph: Graph, program: DeviceProgram, rates: Rates) -> Cost:
    """Of a part with its program."""
    return of_graph(graph, program.cycles, traffic_of(program), load_bytes(program), rates)


NEGLIGIBLE = 1 / 50
"""Share of the host's time for a model below which a part is not worth a program of its own: at 96 pixels YOLOv8n with
decoded boxes took three programs and 3,409,778 bytes of the line per inference, and takes one and 50,912."""


def slower(costs: Sequence[Cost]) -> set[int]:
    """The parts, by index, that the host runs so that an inference of the model takes least; none if that were all.

    Several programs are loaded in turn for every call, one alone only once. So either those stay that are quicker with
    their loading, or one alone. A model of which nothing is quicker on the hardware stays there: whoever compiles it
    for a board wants to see it on the board, and is told what the host takes. But parts with next to none of its work
    go, and those that only join tensors, for which all programs would be loaded anew for every call.
    """
    if len(costs) < 2:
        return set()
    saved = [cost.host - cost.hardware for cost in costs]
    several = {at for at, cost in enumerate(costs) if saved[at] >= cost.load}
    together = sum(saved[at] - costs[at].load for at in several)
    best = max(range(len(costs)), key=lambda at: saved[at])
    kept = {best} if saved[best] >= 0 else set()
    if len(several) > 1 and together > saved[best]:
        kept = several
    if not kept:
        work = sum(cost.host for cost in costs)
        some_compute = any(cost.computes for cost in costs)
        return {
            at for at, cost in enumerate(costs)
            if cost.host < NEGLIGIBLE * work or (some_compute and not cost.computes)
        }  # fmt: skip
    return {*range(len(costs))} - kept


@dataclass(frozen=True)
class Latency:
    """What a person waits for: one inference of all hardware parts alone, in milliseconds.

    `size`: bytes on the line, one after the other, of which `load` load programs that take turns. `host_ms`: about what
    onnxruntime takes for the same operations on one core.
    """

    rates: Rates
    size: int
    load: int
    core_ms: float
    host_ms: float

    @property
    def line_ms(self) -> float:
        """Of all bytes."""
        return self.rates.line_ms(self.size)

    @property
    def host_faster(self) -> bool:
        """Whether the host alone would be faster."""
        return self.host_ms < self.line_ms + self.core_ms

    def record(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "baud": self.rates.baud,
            "clock_mhz": self.rates.clock_hz / 1e6,
            "bytes": self.size,
            "load_bytes": self.load,
            "line_ms": round(self.line_ms, 4),
            "core_ms": round(self.core_ms, 4),
            "host_ms": round(self.host_ms, 4),
            "host_faster": self.host_faster,
        }


def waiting(programs: Sequence[DeviceProgram], rates: Rates) -> Latency:
    """Of programs that run one after the other; one alone is loaded before."""
    load = sum(map(load_bytes, programs)) if len(programs) > 1 else 0
    size = load + sum(traffic_of(program).alone for program in programs)
    core = sum(rates.core_ms(program.cycles) for program in programs)
    return Latency(rates, size, load, core, sum(map(onnxruntime_ms, programs)))


def waiting_sentence(record: Mapping[str, Any]) -> str:
    """A record of `Latency`, for people."""
    load = f", {record['load_bytes']:,} of them to load its programs" if record["load_bytes"] else ""
    quicker = ", which is faster" if record["host_faster"] else ""
    line, core, host = (ms_text(record[name]) for name in ("line_ms", "core_ms", "host_ms"))
    return (
        f"one inference alone: {record['bytes']:,} bytes{load}, {line} ms on the line at {record['baud']:,} baud, and "
        f"{core} ms in the core at {record['clock_mhz']:g} MHz; the host alone would take about {host} ms "
        f"(onnxruntime, one core){quicker}"
    )


def ms_text(time: float) -> str:
    """Milliseconds with three digits, and all before the point."""
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def all_waiting(costs: Sequence[Cost], rates: Rates) -> Latency:
    """The same from the costs of parts."""
    load = sum(cost.program for cost in costs) if len(costs) > 1 else 0
    size = sum(cost.size for cost in costs)
    return Latency(rates, size + load, load, sum(c.core for c in costs), sum(c.onnxruntime for c in costs))
