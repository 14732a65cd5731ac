"""`Workload`: models converted once, and their exact cycles on a configuration."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import sched
from ..build.cache import Cache, key_of
from ..compiler.capacity import weight_bytes
from ..config import HwConfig
from ..ir.graph import Graph
from ..ir.text import text
from ..isa.instructions import UNITS, Array, Depthwise, Load, Ordered, Vector
from ..isa.microcode import length
from ..isa.timing import load_steps, pixels, tiles, vector_cycles
from ..onnxfile.limits import Limits
from ..onnxmodel.prepared import Source
from ..partition import read, refuse, require_hardware
from ..passes.variants import variants
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

    def least(self, config: HwConfig) -> "MemoryNeeds":
        """What any program of the models needs of a configuration's memories, as far as it is known at once."""
        graphs = [graph for _, parts in self.models for graph in parts]
        forms = [[one.graph for group in variants(graph, config) for one in group] for graph in graphs]
        bytes_ = max(min(map(weight_bytes, each)) for each in forms)
        return replace(LEAST, weight_depth=max(1, -(-bytes_ // config.weight_word)))

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
    """Of a workload on a configuration: per model the exact cycles of an inference, as `compile` predicts them, and the
    bytes that pass between core and on-chip memories; and what the programs use of the memories."""

    cycles: tuple[int, ...]
    traffic: tuple[int, ...]
    needs: MemoryNeeds


NEUTRAL = {"name": "", "multiplier": "dsp", "requant_dsps": 5, "array_fabric": 0}
"""Fields that change no cycle and no memory of a program: which multipliers are the device's cells."""


def measured(workload: Workload, config: HwConfig, code: str) -> Measured:
    """As `measure`, from the content cache if a configuration of the same cycles was measured by the same `code`."""
    neutral: dict[str, Any] = dict(NEUTRAL)
    key = key_of({"models": workload.digest, "code": code, "config": replace(config, **neutral).to_json()})
    cache = Cache(KIND)
    if found := cache.load(key):
        record = json.loads(found["measured.json"])
        return Measured(tuple(record["cycles"]), tuple(record["traffic"]), MemoryNeeds(**record["needs"]))
    made = measure(workload, config)
    record = {"cycles": made.cycles, "traffic": made.traffic, "needs": made.needs.record()}
    cache.store(key, {"measured.json": json.dumps(record).encode()}, label=", ".join(workload.names))
    return made


def measure(workload: Workload, config: HwConfig) -> Measured:
    """Schedule every model on a configuration. `DoesNotFitError` or `UnsupportedError` of the first part that cannot be
    scheduled: operations that `compile` would give to the host then are no point of a search."""
    needs, cycles, traffic = LEAST, list[int](), list[int]()
    for _, graphs in workload.models:
        programs = [sched.fastest(variants(graph, config), config) for graph in graphs]
        cycles.append(sum(map(latency, programs)))
        traffic.append(sum(map(memory_bytes, programs)))
        for program in programs:
            needs = needs.with_those_of(_needs(program))
    return Measured(tuple(cycles), tuple(traffic), needs)


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
