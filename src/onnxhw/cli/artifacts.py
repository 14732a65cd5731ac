"""The files of an output directory: what is written, and how it is read back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..cost import waiting, waiting_sentence
from ..errors import UsageError
from ..files import read_json, reason, sha256
from ..host.artifact import check_manifest
from ..host.records import wrong_simulations
from ..loading import load_any
from ..program.mixed import MixedProgram
from ..program.model import Program
from ..program.traffic import Rates
from ..proof import load
from ..report.kept import premises
from ..report.page import page
from ..report.profile import Profile, profile
from ..report.trace import trace
from .choice import Choice
from .outdir import staged

PROGRAM, MANIFEST, REPORT, TRACE, BITSTREAM = "program.ohw", "manifest.json", "report.html", "trace.json", "top.bit"
PLACEMENT = "placement.json"
"""Where each node runs, for a model in parts."""
MODEL = "model.onnx"
"""A copy of the model, so that the directory can be simulated against it."""
SIMULATIONS = "simulations.json"
"""What `simulate` found about the directory's program, one record per engine."""


ProgramT = TypeVar("ProgramT", bound=Program | MixedProgram)


@dataclass(frozen=True)
class Directory(Generic[ProgramT]):
    """An output directory as read; `manifest` and `simulations` are empty where the files are missing."""

    path: Path
    program: ProgramT
    manifest: dict[str, Any]
    simulations: list[dict[str, Any]]

    @property
    def artifacts(self) -> dict[str, str]:
        """Path of every file of ours that is there, by name."""
        return artifacts(self.path)


def artifacts(folder: Path) -> dict[str, str]:
    """Path of every output file in a folder, by file name."""
    names = [BITSTREAM, PROGRAM, MANIFEST, PLACEMENT, REPORT, TRACE]
    names += sorted(path.name for kind in ("report-*.html", "trace-*.json") for path in folder.glob(kind))
    return {name: str(folder / name) for name in names if (folder / name).exists()}


def read_directory(path: Path) -> Directory[Program]:
    """Read an output directory; E2906 if it is none, E2552 or E2907 if its manifest or its simulations are
    damaged, E2588 if the manifest is another program's, E2510 for parts, E2460 for a program that fails its proof."""
    return _read(path, load)


def read_any(path: Path) -> Directory[Program | MixedProgram]:
    """The same, also for a program in parts."""
    return _read(path, load_any)


def _read(path: Path, loaded: Callable[[Path], ProgramT]) -> Directory[ProgramT]:
    if not (path / PROGRAM).is_file():
        what = "does not exist" if not path.exists() else f"has no {PROGRAM}" if path.is_dir() else "is not a directory"
        raise UsageError("E2906", f"no output directory: {what}", where=str(path), hint="onnxhw compile MODEL -o DIR")
    program = loaded(path / PROGRAM)
    record = check_manifest(path, (part.config for part in programs(program)))
    return Directory(path, program, record, _of_program(_simulations(path), path))


def program_hash(path: Path) -> str:
    """SHA-256 of the directory's program file: results of another program do not count."""
    return sha256(path / PROGRAM)


def record_simulation(path: Path, record: Mapping[str, Any]) -> None:
    """Keep the result of a simulation beside the program, one per engine, and show it in the report."""
    before = [old for old in _simulations(path) if old.get("engine") != record["engine"]]
    kept = [*before, {**record, "program_sha256": program_hash(path)}]
    found = read_any(path)
    with staged(path) as stage:
        (stage / SIMULATIONS).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        refresh_report(stage, found, _of_program(kept, path), profiles(found.program))


def programs(program: Program | MixedProgram) -> list[Program]:
    """The program itself, or its parts for the hardware: each has a report of its own."""
    return program.programs if isinstance(program, MixedProgram) else [program]


def profiles(program: Program | MixedProgram) -> list[Profile]:
    """The profile of each of `programs`."""
    return [profile(part) for part in programs(program)]


def waited(parts: Sequence[Program], rates: Rates | None) -> dict[str, Any] | None:
    """What a person waits for, for ``--json``; None where there is no line."""
    return waiting(parts, rates).record() if rates and parts else None


def refresh_report(
    stage: Path,
    found: Directory[Any],
    simulations: Sequence[Mapping[str, Any]],
    summaries: Sequence[Profile],
) -> None:
    """Write a directory's reports, traces and manifest anew into `stage`."""
    write_reports(stage, found.program, summaries, found.manifest, simulations)
    note_reports(stage, found.manifest)


def write_reports(
    folder: Path,
    program: Program | MixedProgram,
    summaries: Sequence[Profile],
    manifest: Mapping[str, Any],
    simulations: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write report and trace of every hardware part; from the second on, with its number after their stems."""
    parts = programs(program)
    record = waited(parts, Choice.recorded(manifest).rates)
    line = [waiting_sentence(record)] if record else []
    for number, (part, summary) in enumerate(zip(parts, summaries, strict=True)):
        own = [_of_part(record, number, part) for record in simulations]
        write_report(folder, part, summary, manifest, own, f"-{number}" if number else "", line)


def _of_part(record: Mapping[str, Any], number: int, part: Program) -> Mapping[str, Any]:
    """A simulation's record with the cycles of one hardware part, where it has them for each."""
    cycles = record.get("part_cycles")
    if not isinstance(cycles, list):
        return record
    run = cycles[number] if number < len(cycles) else None  # a run ends with the first part that differs
    return {**record, "cycles": run, "predicted_cycles": part.cycles}


def _of_program(simulations: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The results that belong to the directory's present program."""
    return [record for record in simulations if record.get("program_sha256") == program_hash(path)]


def write_report(
    folder: Path,
    program: Program,
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


def report_record(found: Directory[Any], summaries: Sequence[Profile]) -> dict[str, Any]:
    """The report for ``--json``; of a model in parts, `parts` has one for each on the hardware."""
    program: Program | MixedProgram = found.program
    parts = programs(program)
    record = {
        "model": program.model,
        "preset": parts[0].config.name,
        "config": parts[0].config.fingerprint,
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        "predicted_cycles": program.cycles,
        **premises(parts),
        "waiting": waited(parts, Choice.recorded(found.manifest).rates),
        "simulations": found.simulations,
        "manifest": found.manifest,
        "artifacts": found.artifacts,
    }
    details = [_details(part, summary) for part, summary in zip(parts, summaries, strict=True)]
    if not isinstance(program, MixedProgram):
        return {**record, **details[0]}
    peak = program.cycles * parts[0].config.macs_per_cycle
    return {**record, "utilization": program.macs / peak if peak else 0.0, "parts": details}


def _details(program: Program, summary: Profile) -> dict[str, Any]:
    return {
        "model": program.model,
        "macs_executed": program.macs,
        "macs_nominal": program.nominal,
        "predicted_cycles": summary.cycles,
        "utilization": summary.utilization,
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
