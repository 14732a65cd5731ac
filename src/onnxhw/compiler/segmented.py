"""`SegmentedGraphs`: graphs larger than the chip, where there is external memory: one program of segments each.

What does not fit the chip is planned and linked (`onnxhw.segments`). A forecast is of a plan that is found in seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.states import State, interface
from ..isa.memory import host_stride
from ..passes.packed_inputs import packed_inputs
from ..program.model import DeviceProgram
from ..program.storage import PackedInput
from ..program.traffic import Traffic, external_traffic, plain_outputs
from ..program.variant import Variant
from ..segments import (
    QUICK,
    THOROUGH,
    Effort,
    PackedRegion,
    PartCycles,
    Plan,
    ScaledCycles,
    estimate_with_residents,
    kind,
    link,
    make_plan,
    sampled,
    sources_of,
)

TABLE_BYTES = 4 * 256
"""Of external memory for a table: a 32-bit word for each entry."""

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Forecast:
    """What a graph in segments takes, about: `cycles` of a run, bytes of external memory, those that move in a run, and
    what travels for an inference."""

    cycles: int
    segments: int
    external_bytes: int
    moved_bytes: int
    traffic: Traffic


class SegmentedGraphs:
    """Plans of graphs for a configuration; each graph is planned once, however often a model is placed."""

    def __init__(self, config: HwConfig) -> None:
        self.config, self._cycles = config, PartCycles(config)
        self._scaled = ScaledCycles(self._cycles)
        self.states: tuple[State, ...] = ()
        """Of the one graph of a model that has some. It is in segments, whatever its size."""
        self._plans: dict[tuple[object, ...], Plan | DoesNotFitError] = {}

    def program(self, graph: Graph) -> DeviceProgram:
        """The program of a graph in segments.

        `NoPartError` E5191: of an operation no part fits the chip; `DoesNotFitError` E5190: external memory is too
        small; `UnsupportedError` (E43xx): operations that cannot be mapped, whatever their size.
        """
        from .. import sched  # only here: it takes long to import

        plan, schedules = self._plan(graph, THOROUGH), self._cycles.schedules
        program = link(sampled(graph), plan, self.config, schedules, states=self.states)
        sched.check(program)
        return program

    def forecast(self, graph: Graph) -> Forecast:
        """What it will take, about, of a plan that is quick to find; errors as of `program`."""
        plan = self._plan(graph, QUICK)
        found = estimate_with_residents(plan, self.config, self._scaled)
        tables = TABLE_BYTES * _tables(plan, self.config)
        moved = found.weight_bytes + found.activation_bytes + tables
        cycles, size = found.cycles + round(tables / found.peak), plan.external_bytes
        sent = _traffic(plan, interface(graph, self.states), self.config)
        return Forecast(cycles, len(plan.segments), size, moved, sent)

    def _plan(self, graph: Graph, effort: Effort) -> Plan:
        """The plan of the graph as `sampled` makes it."""
        key = effort, *((op.output, op.inputs) for op in graph.ops), *(port.tensor for port in graph.outputs)
        if key not in self._plans:
            require_mapped(graph, self.config)
            cycles = self._cycles if effort.again else self._scaled
            try:
                self._plans[key] = make_plan(sampled(graph), self.config, cycles, effort=effort)
            except DoesNotFitError as error:
                self._plans[key] = error
        found = self._plans[key]
        if isinstance(found, DoesNotFitError):
            raise found
        return found


def _traffic(plan: Plan, graph: Graph, config: HwConfig) -> Traffic:
    """What travels for an inference: every source that segments load boxes of, or all of an input as it is."""
    names = dict.fromkeys(port.tensor for port in graph.inputs)
    packed: list[PackedRegion] = []
    wholes: set[str] = set()
    known: dict[object, list[Variant]] = {}
    for segment in plan.segments:
        loads = [
            (region, port.tensor) for region, port in zip(segment.inputs, segment.graph.inputs, strict=True)
            if region.tensor in names and region in segment.loads
        ]  # fmt: skip
        if not loads:
            continue
        parts = {name: segment.origins[name] for _, name in loads}
        alike = kind(segment.graph), *parts.values()
        if alike not in known:
            known[alike] = packed_inputs(segment.graph, config, parts)
        storage = known[alike][0].storage if known[alike] else {}
        for region, name in loads:
            found = storage.get(name, (None,))[0]
            if isinstance(found, PackedInput):
                packed.append((region, found))
            else:
                wholes.add(region.tensor)
    sources = set(sources_of(packed, config).values())
    whole = [prod(graph.tensors[name].shape[2:]) * -(-graph.tensors[name].channels // config.word) for name in wholes]
    stored = [each.storage.words for each in sources] + whole
    return external_traffic([words * host_stride(config.word) for words in stored], plain_outputs(graph), config.word)


def _tables(plan: Plan, config: HwConfig) -> int:
    """Tables that segments bring, about: those of functions of single elements that the segment before has not; none if
    all stay on chip."""
    found, before, known = 0, set[str](), set[str]()
    for segment in plan.segments:
        ops = {op.name for op in segment.graph.ops if op.elementwise and len(set(op.inputs)) == 1}
        found, before, known = found + len(ops - before), ops, known | ops
    return found if len(known) > config.tables else 0


def require_mapped(graph: Graph, config: HwConfig) -> None:
    """`UnsupportedError` for operations that the scheduler cannot map, of whatever size they were."""
    from .. import sched  # only here: it takes long to import

    try:
        sched.map_operations(graph, config)
    except UnsupportedError as error:
        if others := [each for each in sched.causes(error) if not isinstance(each, sched.TooLargeError)]:
            raise sched.combined(others) from error


def on_chip_or_segmented(too_large: bool, on_chip: Callable[[], T], segmented: Callable[[], U]) -> T | U:
    """What the scheduler makes of a graph on the chip alone, or if that is too small for it, what segments make;
    `too_large`: that is known before."""
    from .. import sched

    if too_large:
        return segmented()
    try:
        return on_chip()
    except DoesNotFitError:
        return segmented()
    except UnsupportedError as error:
        if not any(isinstance(each, sched.TooLargeError) for each in sched.causes(error)):
            raise
        return segmented()
