"""One row of the benchmark per model and preset."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import golden, partition
from ..compiler import place_and_schedule
from ..compiler.cost import board_rates, waiting
from ..config import HwConfig
from ..engines import Engine
from ..errors import DoesNotFitError, UnsupportedError, UsageError
from ..ir.graph import Array8, Graph
from ..program.input_regions import intake
from ..program.model import DeviceProgram
from ..program.parts import Program
from ..report.premises import UNROUTED_HZ, premises
from ..report.profile import Profile, profile
from .peers import Peer, of_task
from .topologies import TOPOLOGIES

REFERENCE = {
    "ic": "ic_resnet8_int8_qdq",
    "kws": "kws_dscnn_int8_qdq",
    "vww": "vww_mobilenetv1_025_96_int8_qdq",
    "ad": "ad_autoencoder_int8_qdq",
}
"""File names of the MLPerf Tiny reference models."""


@dataclass
class BenchmarkRow:
    """One model on one preset. None: not measured, `note` says why.

    Figures are those of all `programs` together, where a model runs as several; nothing else of it is counted.
    `macs_nominal`: as the model has them, `macs_executed`: those that the hardware makes.
    `cycles_predicted`, `cycles_rtl`: from the acceptance of the last input to the result; `run_cycles` of them are the
    run's, and `intake_cycles` a whole input takes that comes at the port's full rate.
    `task`: the short name in `TOPOLOGIES`, empty for a file. `utilization`: MACs executed / (cycles x
    those of the array per cycle); a depthwise unit beside the array can make it more than 1.
    `patches`, `constant_channels`: what the cycles take for granted (`report.premises`). `waiting`: what a person waits
    for with these cycles (`compiler.cost.Latency`), at the rates of the preset's board; None if it has none.
    Resources, `fmax_mhz`, the `seed` it was routed with and `latency_ms` come from a routed result that is in the
    cache. `weights`: "reference", "random" or "file". `peers_ms`: milliseconds that others have published for the task,
    by device. `layers`: records of `report.profile.LayerRow`.
    """

    model: str
    task: str
    preset: str
    weights: str
    programs: int = 0
    macs_nominal: int | None = None
    macs_executed: int | None = None
    cycles_predicted: int | None = None
    cycles_rtl: int | None = None
    run_cycles: int | None = None
    intake_cycles: int | None = None
    equal: bool | None = None
    utilization: float | None = None
    lut: int | None = None
    ff: int | None = None
    dsp: int | None = None
    ebr: int | None = None
    fmax_mhz: float | None = None
    seed: int | None = None
    latency_ms: float | None = None
    note: str = ""
    patches: list[dict[str, Any]] = field(default_factory=list)
    constant_channels: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, Any] | None = None
    peers_ms: dict[str, float] = field(default_factory=dict)
    layers: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class BenchmarkResult:
    """A row, and the programs with their profiles."""

    row: BenchmarkRow
    programs: tuple[tuple[DeviceProgram, Profile], ...] = ()


@dataclass(frozen=True)
class BenchmarkModel:
    """A model of the benchmark: name and task (`BenchmarkRow`), the origin of its weights, and its file or bytes."""

    name: str
    task: str
    weights: str
    source: Path | bytes

    @property
    def graph(self) -> Graph:
        """The model as one graph; errors as `onnxhw.onnxmodel.read`."""
        return partition.load(self.source)


def reference_folder() -> Path | None:
    """Where the reference models are: ``ONNXHW_REFERENCE_MODELS``, or ``../shared/models`` beside a checkout."""
    chosen = os.environ.get("ONNXHW_REFERENCE_MODELS")
    folder = Path(chosen) if chosen else Path(__file__).resolve().parents[4] / "shared" / "models"
    return folder if folder.is_dir() else None


def model(name: str, random: bool = False) -> BenchmarkModel:
    """A model by short name (`TOPOLOGIES`; reference weights if they are there and not `random`), or an ONNX file.

    `UsageError` E2910 for anything else.
    """
    if name in TOPOLOGIES:
        folder = None if random else reference_folder()
        file = folder / f"{REFERENCE[name]}.onnx" if folder else None
        if file and file.is_file():
            return BenchmarkModel(REFERENCE[name].removesuffix("_int8_qdq"), name, "reference", file)
        built = TOPOLOGIES[name]
        return BenchmarkModel(built.__name__, name, "random", built().SerializeToString())
    if Path(name).suffix == ".onnx":
        return BenchmarkModel(Path(name).stem, "", "file", Path(name))
    raise UsageError("E2910", f"no benchmark model {name!r}", hint=f"models: {', '.join(TOPOLOGIES)}, or an .onnx file")


def measure(
    entry: BenchmarkModel, config: HwConfig, engine: Callable[[HwConfig], Engine] | None, routed: dict[str, Any] | None
) -> BenchmarkResult:
    """Compile, run one random inference of each program on an engine against the golden model, add the routed facts.

    `routed`: ``{"resources": {kind: (used, available)}, "fmax_mhz": ..., "seed": ...}`` of a cached bitstream of this
    preset.
    """
    row = BenchmarkRow(entry.name, entry.task, config.name, entry.weights, peers_ms=of_task(entry.task))
    try:
        placed = place_and_schedule(entry.source, config)
    except (DoesNotFitError, UnsupportedError) as error:
        row.note = f"{error.code} {' '.join(error.what.split())}"
        return BenchmarkResult(row)
    made, programs = placed.made, placed.made.programs
    found = [(program, profile(program)) for program in programs]
    row.programs, row.note = len(programs), _note(len(programs), len(made.parts) - len(programs))
    row.macs_nominal = sum(part.graph.macs() for part in placed.model.hardware)
    if not programs:
        return BenchmarkResult(row)
    row.cycles_predicted, row.macs_executed = made.latency, made.macs
    row.run_cycles, row.intake_cycles = made.cycles, sum(map(intake, programs))
    premise(row, config, made)
    row.utilization = round(made.utilization, 4)
    row.layers = [asdict(layer) for _, one in found for layer in one.layers]
    if engine:
        graphs = [part.graph for part in placed.model.hardware]
        row.cycles_rtl, row.equal = 0, True
        with engine(config) as opened:
            for graph, program in zip(graphs, programs, strict=True):
                inputs = _random(graph)
                result = opened.run(program, inputs)
                wanted = golden.run(graph, inputs)
                row.cycles_rtl += result.latency or 0
                got = result.outputs.items()
                row.equal &= all(np.array_equal(values, wanted[name].reshape(values.shape)) for name, values in got)
    if routed:
        for kind in ("lut", "ff", "dsp", "ebr"):
            setattr(row, kind, routed["resources"].get(kind, (None,))[0])
        row.fmax_mhz, row.seed = round(routed["fmax_mhz"], 2), routed["seed"]
        row.latency_ms = round(made.latency / routed["fmax_mhz"] / 1000, 4)
    return BenchmarkResult(row, tuple(found))


def premise(row: BenchmarkRow, config: HwConfig, made: Program) -> None:
    """What the cycles of a row take for granted, and what a person waits for."""
    found = premises(made.programs)
    row.patches, row.constant_channels = found["patches"], found["constant_channels"]
    if rates := board_rates(config):
        row.waiting = waiting(made.programs, rates).record()


def _note(programs: int, others: int) -> str:
    """What is not in the figures."""
    notes = []
    if not programs:
        notes.append("nothing of it runs on the hardware")
    if programs > 1:
        notes.append(f"{programs} programs that run in turn, without the time to load them")
    if programs and others:
        notes.append(f"without {others} part{'s' * (others > 1)} that the host runs")
    return "; ".join(notes)


def latencies(rows: Sequence[BenchmarkRow]) -> list[Peer]:
    """Ours beside the others', a line per preset; at the clock that its board aims at where nothing is routed."""
    found: list[Peer] = []
    for preset in dict.fromkeys(row.preset for row in rows):
        own = [row for row in rows if row.preset == preset and row.task and row.cycles_predicted]
        routed = next((row for row in own if row.fmax_mhz), None)
        wanted = next((row.waiting["clock_mhz"] for row in own if row.waiting), UNROUTED_HZ / 1e6)
        mhz = routed.fmax_mhz if routed and routed.fmax_mhz else wanted
        unrouted = "for no device" if preset == "virtual" else "not routed"
        clock = f"routed, {mhz:.1f} MHz" if routed else f"{unrouted}, at {mhz:.0f} MHz"
        ms = {row.task: row.cycles_predicted / mhz / 1000 for row in own if row.cycles_predicted}
        found += [Peer(f"onnxhw {preset} ({clock})", ms)] if ms else []
    return found


def _random(graph: Graph) -> dict[str, Array8]:
    random = np.random.default_rng(0)
    return {
        port.tensor: random.integers(-128, 128, graph.tensors[port.tensor].shape).astype(np.int8)
        for port in graph.inputs
    }
