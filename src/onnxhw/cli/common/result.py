"""What ``compile`` and ``synth`` write and print."""

import json
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from ... import __version__
from ...build.manifest import Manifest
from ...compiler.cost import waiting_sentence
from ...files import sha256
from ...ir.parts import GoldenPart, HostPart
from ...partition import PartitionedModel
from ...preprocess import Preprocess
from ...program import container
from ...program.external_use import external_record, external_sentence
from ...program.input_regions import latency
from ...program.parts import Program, ProgramPart
from ...program.throughput import throughput_sentence
from ...report.premises import premises, sentences
from .artifacts import (
    MANIFEST,
    MODEL,
    PLACEMENT,
    PROGRAM,
    artifacts,
    continued,
    described,
    profiles,
    waited,
    write_reports,
)
from .flash_boot import boot_sentence
from .output import Output
from .pipeline import BoardTarget
from .placement_options import BY_DEFAULT, PlacementOptions
from .read_options import TRUSTED, ReadOptions

AS_IS = Preprocess()
"""Nothing was declared."""
TOOLS = ("onnx", "numpy", "protobuf")
"""Packages on which a program depends; the flow adds its own tools."""


def write_artifacts(
    stage: Path,
    partitioned: PartitionedModel,
    program: Program,
    chosen: BoardTarget,
    model: Path,
    manifest: Manifest | None = None,
    reading: ReadOptions = TRUSTED,
    preprocess: Preprocess = AS_IS,
    choice: PlacementOptions = BY_DEFAULT,
) -> Manifest:
    """Write program, model, placement, manifest, and report and trace of each hardware part; the manifest as completed.

    `manifest`: what a bitstream flow knows already; files that it has put into `stage` are noted too.
    """
    manifest = _described(manifest or Manifest(), chosen, model, reading, preprocess, choice)
    container.save(program, stage / PROGRAM)
    shutil.copyfile(model, stage / MODEL)
    rows = [asdict(row) for row in partitioned.placement]
    (stage / PLACEMENT).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    write_reports(stage, program, profiles(program), asdict(manifest))
    return _finished(manifest, stage)


def _described(
    manifest: Manifest,
    chosen: BoardTarget,
    model: Path,
    reading: ReadOptions,
    preprocess: Preprocess,
    choice: PlacementOptions,
) -> Manifest:
    manifest.board, manifest.device = chosen.board.name, chosen.board.device
    manifest.preset, manifest.config = chosen.config.name, chosen.config.fingerprint
    manifest.model_sha256 = sha256(model)
    manifest.shapes, manifest.limits = list(reading.shapes), list(reading.limits)
    manifest.exact_softmax, manifest.persist = reading.exact_softmax, list(reading.persist)
    manifest.preprocess, manifest.choice = preprocess.record(), choice.record()
    manifest.tools |= {name: metadata.version(name) for name in TOOLS}
    manifest.tools |= {"onnxhw": __version__, "python": platform.python_version()}
    return manifest


def _finished(manifest: Manifest, stage: Path) -> Manifest:
    for path in sorted(stage.iterdir()):
        manifest.add_file(path.name, path.read_bytes())
    (stage / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def result(
    partitioned: PartitionedModel,
    program: Program,
    chosen: BoardTarget,
    manifest: Manifest,
    folder: Path,
    *,
    cached: bool,
) -> dict[str, Any]:
    """The record for ``--json``. What only a routed design has is null without one."""
    routed = bool(manifest.fmax_mhz)
    return {
        **described(program),
        "board": chosen.board.name,
        "preset": chosen.config.name,
        "config": chosen.config.fingerprint,
        "predicted_cycles": program.latency,
        **premises(program.programs),
        "waiting": waited(program, PlacementOptions.recorded(asdict(manifest)).rates),
        "throughput": continued(program, PlacementOptions.recorded(asdict(manifest)).rates),
        "resources": manifest.resources if routed else estimated(chosen),
        "resources_estimated": not routed,
        "clock_mhz": manifest.clock_hz / 1e6 if routed else None,
        "fmax_mhz": manifest.fmax_mhz if routed else None,
        "timing_met": manifest.timing_met if routed else None,
        "critical_path": manifest.critical_path if routed else None,
        "seed": manifest.seed if routed else None,
        "boot": manifest.boot or None,
        "cached": cached,
        "artifacts": artifacts(folder),
        "parts": [_part(part) for part in program.parts],
        "placement": partitioned.counts(),
    }


def _part(part: ProgramPart) -> dict[str, Any]:
    if isinstance(part, HostPart):
        return {"where": "host", "nodes": len(part.nodes)}
    if isinstance(part, GoldenPart):
        return {"where": "host", "operations": len(part.graph.ops), "macs_nominal": part.graph.macs()}
    return {
        "where": "hardware", "operations": len(part.layers),
        "predicted_cycles": latency(part), "run_cycles": part.cycles,
        "macs_executed": part.macs, "macs_nominal": part.nominal,
        "external": external_record([part], part.config),
    }  # fmt: skip


def macs_text(record: Mapping[str, Any]) -> str:
    """The multiply-accumulates of a record, those of the model beside those that are executed where they differ."""
    executed, nominal = record["macs_executed"], record["macs_nominal"]
    text = f"{executed:,} multiply-accumulates"
    return text if executed == nominal else f"{text} executed ({nominal:,} in the model)"


def estimated(chosen: BoardTarget) -> dict[str, dict[str, int]]:
    """Resources before synthesis: block RAMs and multipliers exactly, logic about."""
    from ...devices import family_of

    found, have = family_of(chosen.board).estimate(chosen.config), chosen.board.resources
    return {
        "lut": {"used": found.lut, "available": have.lut4},
        "ff": {"used": found.ff, "available": have.ff},
        "dsp": {"used": found.dsp, "available": have.dsp},
        "ebr": {"used": found.ebr, "available": have.ebr},
    }


def print_result(output: Output, record: dict[str, Any]) -> None:
    """The result: as JSON, or a few lines and where the files lie."""
    output.data(record)
    array = f"{macs_text(record)} in {record['predicted_cycles']:,} cycles"
    output.line(f"{record['model']} on {record['board']}, preset {record['preset']}: {array}")
    if record["fmax_mhz"]:
        ms = record["predicted_cycles"] / record["clock_mhz"] / 1000
        met = "met" if record["timing_met"] else "NOT met"
        output.line(f"clock {record['clock_mhz']:.2f} MHz {met} (Fmax {record['fmax_mhz']:.2f} MHz), "
                    f"{ms:.3f} ms per inference{', cached bitstream' if record['cached'] else ''}")  # fmt: skip
        output.line(f"critical path: {record['critical_path']}")
    if record["boot"]:
        output.line(boot_sentence(record["boot"]))
    for line in sentences(record["constant_channels"]):
        output.line(line)
    if record["external"] and record["external"]["segments"]:
        output.line(external_sentence(record["external"]))
    if record["waiting"]:
        output.line(waiting_sentence(record["waiting"]))
        output.line(throughput_sentence(record["throughput"]))
    used = [f"{name} {value['used']:,} of {value['available']:,}" for name, value in record["resources"].items()]
    if used:
        output.line(("about " if record["resources_estimated"] else "") + ", ".join(used))
    nodes = ", ".join(f"{count} {where}" for where, count in record["placement"].items() if count)
    output.line(f"{len(record['parts'])} part{'s in turn' * (len(record['parts']) > 1)}; nodes: {nodes}")
    for name, path in record["artifacts"].items():
        output.line(f"  {name:14} {path}")
