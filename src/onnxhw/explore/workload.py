"""`Workload`: models converted once, and their exact cycles on a configuration."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import Any

from .. import sched
from ..build.cache import Cache, key_of, sources
from ..compiler import compile_graph
from ..compiler.capacity import excess, largest_tensor, weight_bytes
from ..compiler.segmented import Forecast, SegmentedGraphs, on_chip_or_segmented
from ..config import ADDRESS_BITS, WINDOW, HwConfig
from ..ir.graph import Graph
from ..ir.text import text
from ..isa.instructions import UNITS, Array, Depthwise, Load, Ordered, Vector
from ..isa.microcode import length
from ..isa.timing import load_steps, pixels, tiles, vector_cycles
from ..onnxfile.limits import Limits
from ..onnxmodel.prepared import Source
from ..partition import read, refuse, require_hardware
from ..passes.dead_channel_elimination import eliminate_dead_channels
from ..passes.variants import variants
from ..program.external_use import moved_bytes
from ..program.input_regions import latency
from ..program.model import DeviceProgram

KIND = "explored"
"""The kind of cache entry that has the cycles of models on a configuration."""


@dataclass(frozen=True)
class Workload:
    """Models by name, each as the integer graphs of its hardware parts, which run in turn.

    `digest`: 32 hex digits over what was read, and how.
    """

    models: tuple[tuple[str, tuple[Graph, ...]], ...]
    digest: str

    @classmethod
    def of(
        cls, sources: Mapping[str, Source], *, limits: Limits | None = None, shapes: Mapping[str, int] | None = None,
        exact_softmax: bool = False,
    ) -> "Workload":  # fmt: skip
        """Of models by name. `InvalidModelError` (E3xxx); `UnsupportedError` for a model with nothing for the
        hardware, or with nodes that nothing runs."""
        found, state = [], hashlib.blake2b(digest_size=16)
        for name, source in sources.items():
            model = read(source, limits=limits, shapes=shapes, exact_softmax=exact_softmax)
            refuse(model)
            require_hardware(model, name)
            found.append((name, tuple(part.graph for part in model.hardware)))
            for graph in found[-1][1]:
                state.update(text(graph, constants=True).encode())
        return cls(tuple(found), state.hexdigest())

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of the weights of the part with the most, without its constant channels: what memory of any
        configuration must hold at once where there is no external one."""
        return max(min(map(weight_bytes, forms)) for forms in self._forms)

    @cached_property
    def activation_bytes(self) -> int:
        """Bytes of the largest tensor of all parts, without constant channels: the same of activation memory."""
        return max(min(map(largest_tensor, forms)) for forms in self._forms)

    @cached_property
    def _forms(self) -> list[list[Graph]]:
        """Of each part the graph, and where there are constant channels, the graph without them."""
        graphs = [graph for _, parts in self.models for graph in parts]
        return [[graph, *(one.graph for one in [eliminate_dead_channels(graph)] if one)] for graph in graphs]

    @cached_property
    def longest_strip(self) -> int:
        """Columns of the longest row that the depthwise unit reads at once, padding included; 0 if nothing is its."""
        found = 0
        for graph in (graph for _, parts in self.models for graph in parts):
            ops = (op for op in graph.ops if op.channelwise)
            widths = ((graph.tensors[op.output].width - 1) * op.window.strides[1] + WINDOW for op in ops)
            found = max(found, *widths, 0)
        return found

    def least(self, config: HwConfig) -> "MemoryNeeds":
        """What any program of the models needs of a configuration's memories, as far as it is known at once."""
        graphs = [graph for _, parts in self.models for graph in parts]
        forms = [[one.graph for group in variants(graph, config) for one in group] for graph in graphs]
        bytes_ = max(min(map(weight_bytes, each)) for each in forms)
        words = min(max(1, -(-bytes_ // config.weight_word)), 1 << ADDRESS_BITS["weight_depth"])
        return replace(LEAST, weight_depth=words)  # of what no address reaches, no device has the block RAMs

    @property
    def names(self) -> tuple[str, ...]:
        """The models' names."""
        return tuple(name for name, _ in self.models)


@dataclass(frozen=True)
class MemoryNeeds:
    """What programs use of the memories whose depth bounds no cycle: words, but `tables` by number."""

    weight_depth: int
    param_depth: int
    tables: int
    load_ucode: int
    array_ucode: int
    depthwise_ucode: int
    vector_ucode: int

    def with_those_of(self, other: "MemoryNeeds") -> "MemoryNeeds":
        """The larger of each."""
        pairs = zip(self.record().values(), other.record().values(), strict=True)
        return MemoryNeeds(*(max(pair) for pair in pairs))

    def record(self) -> dict[str, int]:
        """By the names of `HwConfig`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Measured:
    """Of a workload on a configuration: per model the exact cycles of an inference, as `compile` predicts them, the
    bytes that pass between core and on-chip memories of programs on the chip alone, and those between core and external
    memory of programs in segments; and what the programs on the chip alone use of the memories. With `forecast` cycles
    and bytes in segments are about right: within some 20 %."""

    cycles: tuple[int, ...]
    traffic: tuple[int, ...]
    needs: MemoryNeeds
    moved: tuple[int, ...] = ()
    forecast: bool = False

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Measured":
        """Inverse of `record`."""
        cycles, traffic, moved = (tuple(record[name]) for name in ("cycles", "traffic", "moved"))
        return cls(cycles, traffic, MemoryNeeds(**record["needs"]), moved, record["forecast"])

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "needs": self.needs.record()}


NEUTRAL = {"name": "", "multiplier": "dsp", "requant_dsps": 5, "array_fabric": 0}
"""Fields that change no cycle and no memory of a program: which multipliers are the device's cells."""


@lru_cache
def _code() -> str:
    """A digest of everything that decides over what `measure` finds: what makes programs, and how they are counted."""
    return sources("explore/workload.py")


Require = Callable[[MemoryNeeds], None]
"""Is told what programs use of memories at least, and raises if that is too much."""


def measured(
    workload: Workload, config: HwConfig, exact: bool = True, require: Require = lambda needs: None
) -> Measured:
    """As `measure`, from the content cache if a configuration of the same cycles was measured by the same code."""
    neutral: dict[str, Any] = dict(NEUTRAL)
    same = replace(config, **neutral).to_json()
    key = key_of({"models": workload.digest, "code": _code(), "config": same, "exact": str(exact)})
    cache = Cache(KIND)
    if found := cache.load(key):
        return Measured.from_record(json.loads(found["measured.json"]))
    made = measure(workload, config, exact, require)
    cache.store(key, {"measured.json": json.dumps(made.record()).encode()}, label=", ".join(workload.names))
    return made


def measure(
    workload: Workload, config: HwConfig, exact: bool = True, require: Require = lambda needs: None
) -> Measured:
    """Schedule every model on a configuration; with external memory, what is larger than the chip in segments. Unless
    `exact` these have a forecast, and programs on the chip alone are not proved, which changes no figure.
    `DoesNotFitError` or `UnsupportedError` of the first part that cannot be scheduled:
    operations that `compile` would give to the host then are no point of a search.

    Without external memory all parts are begun before one is finished, so what does not fit costs a fraction of what
    does; `require` is told what is known of the memories then, which is weights, parameters and tables."""
    needs, forecast, rows = LEAST, False, list[tuple[int, int, int]]()
    begun = [[_begun(graph, config) for graph in graphs] for _, graphs in workload.models]
    require(reduce(MemoryNeeds.with_those_of, (_constants(one) for parts in begun for one in parts if one), LEAST))
    for (_, graphs), parts in zip(workload.models, begun, strict=True):
        cycles = traffic = moved = 0
        for graph, one in zip(graphs, parts, strict=True):
            made = one.finished(exact) if one else _program_or_forecast(graph, config, exact)
            if isinstance(made, Forecast):
                cycles, moved, forecast = cycles + made.cycles, moved + made.moved_bytes, True
                continue
            cycles, bytes_ = cycles + latency(made), moved_bytes(made)
            moved += bytes_
            if not bytes_:
                traffic, needs = traffic + memory_bytes(made), needs.with_those_of(_needs(made))
        rows.append((cycles, traffic, moved))
    per_model = [tuple(figures) for figures in zip(*rows, strict=True)]
    return Measured(per_model[0], per_model[1], needs, per_model[2], forecast)


def _begun(graph: Graph, config: HwConfig) -> sched.BegunProgram | None:
    """A graph's program before the search for better cuts; None with external memory."""
    return sched.begin(variants(graph, config), config) if config.external is None else None


def _constants(begun: sched.BegunProgram) -> MemoryNeeds:
    images = begun.schedule.lowered.images
    sizes = images.weight_words, len(images.param_image), len(images.table_image)
    return LEAST.with_those_of(MemoryNeeds(*sizes, *(0 for _ in UNITS)))


def _program_or_forecast(graph: Graph, config: HwConfig, exact: bool) -> DeviceProgram | Forecast:
    if exact:
        return compile_graph(graph, config)
    return on_chip_or_segmented(
        bool(excess(graph, config)), lambda: sched.fastest(variants(graph, config), config, checked=False),
        lambda: SegmentedGraphs(config).forecast(graph),
    )  # fmt: skip


def _needs(program: DeviceProgram) -> MemoryNeeds:
    code = {unit: length(program.code.get(unit, [])) for unit in UNITS}
    sizes = len(program.weights), len(program.params), len(program.tables)
    return MemoryNeeds(*(max(1, size) for size in sizes), *(max(1, code[unit]) for unit in UNITS))


def memory_bytes(program: DeviceProgram) -> int:
    """Bytes that a run's units take from on-chip memories or put there: a weight word per load step, an activation word
    per pixel of array and depthwise unit, and a lane group each way per step of the vector unit."""
    config, steps = program.config, Counter[str]()
    for instructions in program.code.values():
        for one in instructions:
            steps[_kind(one)] += _steps(one, config)
    return (
        steps["load"] * config.weight_word
        + steps["array"] * config.rows
        + steps["depthwise"] * config.depthwise_lanes
        + steps["vector"] * 2 * config.lanes
    )


def _kind(instruction: Ordered) -> str:
    return str(instruction.UNIT)


def _steps(instruction: Ordered, config: HwConfig) -> int:
    if isinstance(instruction, Load):
        return tiles(instruction) * load_steps(instruction, config)
    if isinstance(instruction, (Array, Depthwise)):
        return tiles(instruction) * pixels(instruction)
    return vector_cycles(instruction, config) if isinstance(instruction, Vector) else 0


LEAST = MemoryNeeds(1, 1, 1, 1, 1, 1, 1)
"""Of no program at all."""
