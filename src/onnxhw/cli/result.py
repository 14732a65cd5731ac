"""What ``compile`` and ``synth`` write and print."""

import hashlib
import platform
import shutil
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from ..build.manifest import Manifest
from ..program import container
from ..program.model import Program
from ..report.profile import profile
from .artifacts import MANIFEST, MODEL, PROGRAM, artifacts, write_report
from .output import Output
from .pipeline import Target

TOOLS = ("onnx", "numpy", "protobuf")
"""Packages on which a program depends; the flow adds its own tools."""


def write_artifacts(
    stage: Path, program: Program, chosen: Target, model: Path, manifest: Manifest | None = None
) -> Manifest:
    """Write program, model, report, trace and manifest; the manifest as completed.

    `manifest`: what a bitstream flow knows already; files that it has put into `stage` are noted too.
    """
    manifest = manifest or Manifest()
    manifest.board, manifest.device = chosen.board.name, chosen.board.device
    manifest.preset, manifest.config = chosen.config.name, chosen.config.fingerprint
    manifest.model_sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    manifest.tools |= {name: metadata.version(name) for name in TOOLS}
    manifest.tools |= {"onnxhw": __version__, "python": platform.python_version()}
    container.save(program, stage / PROGRAM)
    shutil.copyfile(model, stage / MODEL)
    write_report(stage, program, profile(program), asdict(manifest))
    for path in sorted(stage.iterdir()):
        manifest.add_file(path.name, path.read_bytes())
    (stage / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def result(program: Program, chosen: Target, manifest: Manifest, folder: Path, *, cached: bool) -> dict[str, Any]:
    """The record for ``--json``. What only a routed design has is null without one."""
    routed = bool(manifest.fmax_mhz)
    return {
        "model": program.model,
        "board": chosen.board.name,
        "preset": chosen.config.name,
        "config": chosen.config.fingerprint,
        "predicted_cycles": program.cycles,
        "macs": program.macs,
        "resources": manifest.resources if routed else estimated(chosen),
        "resources_estimated": not routed,
        "clock_mhz": manifest.clock_hz / 1e6 if routed else None,
        "fmax_mhz": manifest.fmax_mhz if routed else None,
        "timing_met": manifest.timing_met if routed else None,
        "seed": manifest.seed if routed else None,
        "cached": cached,
        "artifacts": artifacts(folder),
    }


def estimated(chosen: Target) -> dict[str, dict[str, int]]:
    """Resources before synthesis: block RAMs and multipliers exactly, logic about."""
    from ..build.estimate import estimate

    found, have = estimate(chosen.config), chosen.board.resources
    return {
        "lut": {"used": found.lut, "available": have.lut4},
        "ff": {"used": found.ff, "available": have.ff},
        "dsp": {"used": found.dsp, "available": have.dsp},
        "ebr": {"used": found.ebr, "available": have.ebr},
    }


def print_result(output: Output, record: dict[str, Any]) -> None:
    """The result: as JSON, or a few lines and where the files lie."""
    if output.json:
        output.data(record)
        return
    array = f"{record['macs']:,} MACs in {record['predicted_cycles']:,} cycles"
    output.line(f"{record['model']} on {record['board']}, preset {record['preset']}: {array}")
    if record["fmax_mhz"]:
        latency = record["predicted_cycles"] / record["clock_mhz"] / 1000
        met = "met" if record["timing_met"] else "NOT met"
        output.line(f"clock {record['clock_mhz']:.2f} MHz {met} (Fmax {record['fmax_mhz']:.2f} MHz), "
                    f"{latency:.3f} ms per inference{', cached bitstream' if record['cached'] else ''}")  # fmt: skip
    used = [f"{name} {value['used']:,} of {value['available']:,}" for name, value in record["resources"].items()]
    if used:
        output.line(("about " if record["resources_estimated"] else "") + ", ".join(used))
    for name, path in record["artifacts"].items():
        output.line(f"  {name:14} {path}")
