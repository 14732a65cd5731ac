"""One row of the benchmark per model and preset."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import frontend, golden
from ..compiler import compile as compile_model
from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError, UsageError
from ..ir.graph import Array8, Graph
from ..program.model import Program
from ..program.result import Result
from ..report.profile import profile
from .topologies import TOPOLOGIES

REFERENCE = {
    "ic": "ic_resnet8_int8_qdq",
    "kws": "kws_dscnn_int8_qdq",
    "vww": "vww_mobilenetv1_025_96_int8_qdq",
    "ad": "ad_autoencoder_int8_qdq",
}
"""File names of the MLPerf Tiny reference models."""

Execute = Callable[[dict[str, Array8], bool], Result]
Runner = Callable[[Program], AbstractContextManager[Execute]]


@dataclass
class Row:
    """One model on one preset. None: not measured, `note` says why.

    `utilization`: MACs / (cycles x peak MACs per cycle). Resources, `fmax_mhz` and `latency_ms` come from a routed
    result that is in the cache. `weights`: "reference", "random" or "file".
    """

    model: str
    preset: str
    weights: str
    macs: int
    cycles_predicted: int | None = None
    cycles_rtl: int | None = None
    equal: bool | None = None
    utilization: float | None = None
    lut: int | None = None
    ff: int | None = None
    dsp: int | None = None
    ebr: int | None = None
    fmax_mhz: float | None = None
    latency_ms: float | None = None
    note: str = ""
    layers: list[dict[str, Any]] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """The row for ``--json``."""
        return asdict(self)


@dataclass(frozen=True)
class Model:
    """A model of the benchmark: its name, where its weights are from, and its graph."""

    name: str
    weights: str
    graph: Graph


def reference_folder() -> Path | None:
    """Where the reference models are: ``ONNXHW_REFERENCE_MODELS``, or ``../shared/models`` beside a checkout."""
    chosen = os.environ.get("ONNXHW_REFERENCE_MODELS")
    folder = Path(chosen) if chosen else Path(__file__).resolve().parents[4] / "shared" / "models"
    return folder if folder.is_dir() else None


def model(name: str) -> Model:
    """A model by short name (`TOPOLOGIES`; reference weights if they are there), or an ONNX file.

    `UsageError` E2910 for anything else.
    """
    if name in TOPOLOGIES:
        folder = reference_folder()
        file = folder / f"{REFERENCE[name]}.onnx" if folder else None
        if file and file.is_file():
            return Model(REFERENCE[name].removesuffix("_int8_qdq"), "reference", frontend.load(file))
        built = TOPOLOGIES[name]
        return Model(built.__name__, "random", frontend.load(built().SerializeToString()))
    if Path(name).suffix == ".onnx":
        return Model(Path(name).stem, "file", frontend.load(name))
    raise UsageError("E2910", f"no benchmark model {name!r}", hint=f"models: {', '.join(TOPOLOGIES)}, or an .onnx file")


def measure(entry: Model, config: HwConfig, runner: Runner | None, routed: dict[str, Any] | None) -> Row:
    """Compile, run one random inference on `runner`'s engine against the golden model, add the routed facts.

    `routed`: ``{"resources": {kind: (used, available)}, "fmax_mhz": ...}`` of a cached bitstream of this preset.
    """
    row = Row(entry.name, config.name, entry.weights, entry.graph.macs())
    try:
        program = compile_model(entry.graph, config)
    except (DoesNotFitError, UnsupportedError) as error:
        row.note = f"{error.code} {' '.join(error.what.split())}"
        return row
    found = profile(program)
    row.cycles_predicted, row.utilization = program.cycles, round(found.utilization, 4)
    row.layers = [asdict(layer) for layer in found.layers]
    if runner:
        inputs = _random(entry.graph)
        with runner(program) as execute:
            result = execute(inputs, False)
        wanted = golden.run(entry.graph, inputs)
        row.cycles_rtl = result.cycles
        row.equal = all(np.array_equal(got, wanted[name].reshape(got.shape)) for name, got in result.outputs.items())
    if routed:
        for kind in ("lut", "ff", "dsp", "ebr"):
            setattr(row, kind, routed["resources"].get(kind, (None,))[0])
        row.fmax_mhz = round(routed["fmax_mhz"], 2)
        row.latency_ms = round(program.cycles / routed["fmax_mhz"] / 1000, 4)
    return row


def _random(graph: Graph) -> dict[str, Array8]:
    random = np.random.default_rng(0)
    return {
        port.tensor: random.integers(-128, 128, graph.tensors[port.tensor].shape).astype(np.int8)
        for port in graph.inputs
    }
