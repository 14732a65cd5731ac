"""The files of an output directory: what is written, and how it is read back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...compiler.cost import waiting, waiting_sentence
from ...driver.artifact import check_manifest
from ...driver.json_records import wrong_simulations
from ...errors import UsageError
from ...files import read_json, reason, sha256
from ...program.external_use import external_record, external_sentence
from ...program.input_regions import from_start, intake, latency
from ...program.model import DeviceProgram
from ...program.parts import Program
from ...program.throughput import throughput_of, throughput_sentence
from ...program.traffic import Rates
from ...report.page import page
from ...report.premises import premises
from ...report.profile import Profile, profile
from ...report.trace import trace
from ...runtime.loading import load
from .outdir import staged
from .placement_options import PlacementOptions

PROGRAM, MANIFEST, REPORT, TRACE, BITSTREAM = "program.ohw", "manifest.json", "report.html", "trace.json", "top.bit"
FLASH_IMAGE = "flash.bin"
"""What a standalone device loads from its board's flash memory, if the bitstream cannot hold the program."""
PLACEMENT = "placement.json"
"""Where each node runs."""
MODEL = "model.onnx"
"""A copy of the model, so that the directory can be simulated against it."""
SIMULATIONS = "simulations.json"
"""What `simulate` found about the directory's program, one record per engine."""


@dataclass(frozen=True)
class Directory:
    """An output directory as read; `manifest` and `simulations` are empty where the files are missing."""

    path: Path
    program: Program
    manifest: dict[str, Any]
    simulations: list[dict[str, Any]]

    @property
    def artifacts(self) -> dict[str, str]:
        """Path of every file of ours that is there, by name."""
        return artifacts(self.path)


def artifacts(folder: Path) -> dict[str, str]:
    """Path of every output file in a folder, by file name."""
    names = [BITSTREAM, FLASH_IMAGE, PROGRAM, MANIFEST, PLACEMENT, REPORT, TRACE]
    names += sorted(path.name for kind in ("report-*.html", "trace-*.json") for path in folder.glob(kind))
    return {name: str(folder / name) for name in names if (folder / name).exists()}


def read_directory(path: Path) -> Directory:
    """Read an output directory; E2906 if it is none, E2552 or E2907 if its manifest or its simulations are damaged,
    E2588 if the manifest is another program's, the errors of `onnxhw.runtime.loading.load` for its program."""
    if not (path / PROGRAM).is_file():
        other = f"has no {PROGRAM}, so it is no output directory" if path.is_dir() else "is no output directory"
        what = other if path.exists() else "does not exist"
        raise UsageError("E2906", what, where=str(path), hint="onnxhw compile MODEL -o DIR makes an output directory")
    program = load(path / PROGRAM)
    record = check_manifest(path, (part.config for part in program.programs))
    return Directory(path, program, record, _of_program(_simulations(path), path))


def program_hash(path: Path) -> str:
    """SHA-256 of the directory's program file: results of another program do not count."""
    return sha256(path / PROGRAM)


def record_simulation(path: Path, record: Mapping[str, Any]) -> None:
    """Keep the result of a simulation beside the program, one per engine, and show it in the report."""
    before = [old for old in _simulations(path) if old.get("engine") != record["engine"]]
    kept = [*before, {**record, "program_sha256": program_hash(path)}]
    found = read_directory(path)
    with staged(path) as stage:
        (stage / SIMULATIONS).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        refresh_report(stage, found, _of_program(kept, path), profiles(found.program))


def profiles(program: Program) -> list[Profile]:
    """The profile of each hardware part: each has a report of its own."""
    return [profile(part) for part in program.programs]


def waited(program: Program, rates: Rates | None) -> dict[str, Any] | None:
    """What a person waits for, for ``--json``; None where there is no line."""
    return waiting(program.programs, rates).record() if rates and program.programs else None


def continued(program: Program, rates: Rates | None) -> dict[str, Any] | None:
    """How many inferences a second one behind the other, for ``--json``; None where there is no line."""
    return throughput_of(program.programs, rates).record() if rates and program.programs else None


def refresh_report(
    stage: Path,
    found: Directory,
    simulations: Sequence[Mapping[str, Any]],
    summaries: Sequence[Profile],
) -> None:
    """Write a directory's reports, traces and manifest anew into `stage`."""
    write_reports(stage, found.program, summaries, found.manifest, simulations)
    note_reports(stage, found.manifest)


def write_reports(
    folder: Path,
    program: Program,
    summaries: Sequence[Profile],
    manifest: Mapping[str, Any],
    simulations: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write report and trace of every hardware part; from the second on, with its number after their stems."""
    rates = PlacementOptions.recorded(manifest).rates
    alone, many = waited(program, rates), continued(program, rates)
    line = [waiting_sentence(alone), throughput_sentence(many)] if alone and many else []
    for number, (part, summary) in enumerate(zip(program.programs, summaries, strict=True)):
        own = [_of_part(record, number, part) for record in simulations]
        external = external_record([part], part.config) if part.in_segments else None
        said = [external_sentence(external), *line] if external else line
        write_report(folder, part, summary, manifest, own, f"-{number}" if number else "", said)


def _of_part(record: Mapping[str, Any], number: int, part: DeviceProgram) -> Mapping[str, Any]:
    """A simulation's record with the cycles of one hardware part, where it has them for each."""
    cycles = record.get("part_cycles")
    if not isinstance(cycles, list):
        return record
    run = cycles[number] if number < len(cycles) else None  # a run ends with the first part that differs
    return {**record, "cycles": run, "predicted_cycles": latency(part)}


def _of_program(simulations: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The results that belong to the directory's present program."""
    return [record for record in simulations if record.get("program_sha256") == program_hash(path)]


def write_report(
    folder: Path,
    program: DeviceProgram,
    profile: Profile,
    manifest: Mapping[str, Any],
    simulations: Sequence[Mapping[str, Any]] = (),
    suffix: str = "",
    line: Sequence[str] = (),
) -> None:
    """Write report.html and trace.json into `folder`, with `suffix` after their stems; `line` is what the page says of
    line and host."""
    report, times = (folder / name.replace(".", f"{suffix}.") for name in (REPORT, TRACE))
    report.write_text(page(program, profile, manifest, simulations, line), encoding="utf-8")
    mhz = manifest.get("clock_hz", 0) / 1e6 if manifest.get("fmax_mhz") else None  # what it runs at, as in the report
    times.write_text(trace(program, profile, mhz), encoding="utf-8")


def note_reports(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest again with the hashes of the new reports and traces; nothing if there is no manifest."""
    if not manifest:
        return
    files = dict(manifest.get("files", {}))
    for kind in ("report*.html", "trace*.json"):
        for path in sorted(folder.glob(kind)):
            files[path.name] = sha256(path)
    text = json.dumps({**manifest, "files": files}, indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def report_record(found: Directory, summaries: Sequence[Profile]) -> dict[str, Any]:
    """The report for ``--json``; `parts` has one for each hardware part, `layers` and `units` are of all together."""
    program = found.program
    parts = [_details(part, summary) for part, summary in zip(program.programs, summaries, strict=True)]
    return {
        **described(program),
        "predicted_cycles": program.latency,
        "utilization": program.utilization,
        **premises(program.programs),
        "waiting": waited(program, PlacementOptions.recorded(found.manifest).rates),
        "throughput": continued(program, PlacementOptions.recorded(found.manifest).rates),
        "layers": [row for part in parts for row in part["layers"]],
        "units": together([part["units"] for part in parts], "unit"),
        "parts": parts,
        "simulations": found.simulations,
        "manifest": found.manifest,
        "artifacts": found.artifacts,
    }


def described(program: Program) -> dict[str, Any]:
    """What every record says of a program."""
    config = program.config
    return {
        "model": program.name,
        "preset": config.name if config else None,
        "config": config.fingerprint if config else None,
        "run_cycles": program.cycles,
        "intake_cycles": sum(map(intake, program.programs)),
        "cycles_from": "start" if any(map(from_start, program.programs)) else "input",
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        "external": external_record(program.programs, config),
        "states": [
            {"output": state.output, "input": state.input, "bytes": state.initial.size}
            for part in program.programs for state in part.states
        ],
    }  # fmt: skip


def together(tables: Sequence[Sequence[Mapping[str, Any]]], name: str) -> list[dict[str, Any]]:
    """The rows of several tables by their `name`, numbers added up."""
    found: dict[str, dict[str, Any]] = {}
    for row in (row for table in tables for row in table):
        known = found.setdefault(row[name], {})
        known.update({key: value if key == name else known.get(key, 0) + value for key, value in row.items()})
    return list(found.values())


def _details(program: DeviceProgram, summary: Profile) -> dict[str, Any]:
    return {
        "model": program.model,
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        "predicted_cycles": latency(program),
        "run_cycles": summary.cycles,
        "utilization": summary.utilization,
        "external": external_record([program], program.config),
        "layers": [asdict(row) for row in summary.layers],
        "units": [asdict(row) for row in summary.units],
    }


def _simulations(path: Path) -> list[dict[str, Any]]:
    """What `simulate` has found; E2907 if the file is damaged."""
    try:
        found: list[dict[str, Any]] = read_json(path / SIMULATIONS)
        if why := wrong_simulations(found):
            raise ValueError(why)
        return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        what, hint = f"cannot be read: {reason(error)}", "remove it and simulate again"
        raise UsageError("E2907", what, where=str(path / SIMULATIONS), hint=hint) from error
