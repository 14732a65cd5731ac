"""Place and route presets and report what they take and how fast they are.

    python bench/route.py ulx3s-25f:ulx3s-25f mini:ulx3s-12f --seeds 3
    python bench/route.py ulx3s-25f:ulx3s-25f --mhz 110 --seeds 5 --workers 2      every seed, the fastest is told
    python bench/route.py mini:ulx3s-85f --link usb                                with USB pins of the FPGA's own

Each argument is PRESET:BOARD; default is every board's own preset. A result that misses the clock is reported, not
refused. Results come from the bitstream cache when they are there. Of a run that is stopped no process is left, and the
tools' logs lie in --logs, a folder per preset and board, with the routed design (bench/late_ends.py).

With --workers and --record a seed is recorded when it is done, and what is recorded of the same design (its key says
so) is not routed again and stays, also on another machine: five seeds of a large board take hours.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from arguments import MOST_MHZ, number, whole

from onnxhw.board import Board, find
from onnxhw.board_tables import LINKS
from onnxhw.build import duration
from onnxhw.build.bitstream import Bitstream
from onnxhw.build.device import require
from onnxhw.build.flow import FlowOptions, build, key_for
from onnxhw.build.place_and_route import log_of
from onnxhw.build.stage import FlowEvent
from onnxhw.build.tools import package_of
from onnxhw.cli.common.interrupts import script_status
from onnxhw.cli.common.outdir import HINT, refuse_unwritable, write_atomically
from onnxhw.cli.common.pipeline import target
from onnxhw.cli.common.synthesis import top
from onnxhw.cluster import TaskPool, pool
from onnxhw.compiler.cost import line_rate
from onnxhw.devices import family_of
from onnxhw.errors import UsageError
from onnxhw.files import reason
from onnxhw.presets import preset

DEFAULT = ("mini:ulx3s-25f", "ulx3s-25f:ulx3s-25f", "ulx3s-25f:ulx3s-45f", "ulx3s-85f+sdram:ulx3s-85f")
COLUMNS = ("preset", "board", "lut", "ff", "dsp", "ebr", "fmax_mhz", "wanted_mhz", "timing_met", "seed", "seconds")
PACKAGES = ("amaranth", "amaranth-boards")
"""What decides over a result besides our sources and the packages of the family's tools."""
KEY = "key"
"""The file beside the logs that tells the key of the bitstream that they are of."""


def packages(board_name: str) -> tuple[str, ...]:
    """`PACKAGES` and those of the tools of a board's family, each once."""
    found = (package_of(tool).replace("_", "-") for tool in family_of(find(board_name)).tools)
    return (*PACKAGES, *dict.fromkeys(name for name in found if name))


class NotARecordError(ValueError):
    """A file where a record belongs."""


class Shown:
    """Prints a line per finished stage and per phase of place and route, on standard error; `seconds` of each stage."""

    def __init__(self) -> None:
        self.phase, self.seconds = "", dict[str, float]()

    def __call__(self, event: FlowEvent) -> None:
        phase = event.phase.partition(":")[0]
        if event.done:
            self.seconds[event.stage] = event.seconds
            print(f"  {event.stage} {event.seconds:.0f} s {event.text}", file=sys.stderr, flush=True)
        elif phase and phase != self.phase:
            print(f"  {event.stage} {event.text}, {phase} at {event.seconds:.0f} s", file=sys.stderr, flush=True)
        self.phase = phase


def route(
    name: str, board_name: str, *, clock_hz: int, seeds: Sequence[int], use_cache: bool, logs: Path, link: str
) -> dict[str, Any]:
    """Build one preset for one board, with one seed after the other until one meets the clock: its row of the table,
    and what names the bitstream. `link`: one of `LINKS`, the board's own if empty. E2903 before any work if the folder
    of its logs cannot be written."""
    board, shown = find(board_name), Shown()
    folder = logs / _stem(name, board.name, link)
    refuse(folder)
    hz = clock_hz or board.core_hz_of(name, link)
    design = _design(name, board, hz, link)
    start = time.monotonic()
    built = build(
        design,
        board,
        clock_hz=hz,
        options=FlowOptions(seeds=tuple(seeds)),
        progress=shown,
        use_cache=use_cache,
        require_timing=False,
        label=f"{name} on {board.name}",
        logs=folder,
    )
    if not built.cached:
        duration.store(name, board.name, shown.seconds)
    used = {kind: built.report.resources[kind][0] for kind in ("lut", "ff", "dsp", "ebr")}
    guess = family_of(board).estimate(design.config)
    row: dict[str, Any] = {"preset": name, "board": board.name, **({"link": link} if link else {}), **used}
    row["fmax_mhz"] = round(built.report.fmax_mhz, 1)
    row |= {"wanted_mhz": hz / 1e6, "timing_met": built.timing_met, "seed": built.seed}
    row |= {"seconds": round(time.monotonic() - start), "cached": built.cached, "critical_path": built.report.path}
    row["estimated"] = {"lut": guess.lut, "ff": guess.ff, "dsp": guess.dsp, "ebr": guess.ebr}
    digests = {str(built.seed): found} if (found := digest_of_log(built, folder)) else {}
    bitstream = hashlib.sha256(built.bitstream).hexdigest()
    return {"row": row, "key": built.key, "bitstream_sha256": bitstream, "logs_sha256": digests}


def _design(name: str, board: Board, hz: int, link: str) -> Any:
    """What a preset is on a board; the errors of `require`."""
    link, config = link or board.link, target(board.name, name).at(hz).config
    require(board, link, config.external)
    return top(board, config, hz, line_rate(board, hz, link), link)


def _stem(name: str, board_name: str, link: str) -> str:
    """What the files of a preset on a board are called."""
    return "-".join(filter(None, (name, board_name, link)))


def digest_of_log(built: Bitstream, folder: Path) -> str:
    """The digest of the log of the run that made a bitstream, now or before; empty if there is none, or that of another
    run, or if a full disk keeps it from being told which it is."""
    made, log = folder / KEY, folder / log_of(family_of(built.board), built.seed)
    try:
        if not built.cached:
            made.write_text(built.key, encoding="utf-8")
        if not (made.exists() and log.exists()) or made.read_text(encoding="utf-8") != built.key:
            return ""
        return hashlib.sha256(log.read_bytes()).hexdigest()
    except OSError as error:
        print(f"  the digest of {log} is not told: {reason(error)}", file=sys.stderr)
        return ""


def refuse(folder: Path) -> None:
    """A `UsageError` E2903 if a folder cannot be made or written to, whatever is wrong with its name."""
    try:
        refuse_unwritable(folder)
    except OSError as error:  # its name is too long
        raise UsageError("E2903", f"cannot be made: {reason(error)}", where=str(folder), hint=HINT) from None


def sweep(
    name: str, board_name: str, seeds: int, workplace: TaskPool, *, folder: Path | None, words: str, **options: Any
) -> dict[str, Any]:
    """As `route`, each seed a task of its own, and recorded in `folder` as soon as it and those before it are done: of
    all seeds the fastest (`fastest`), those that are recorded there of the same design among them."""
    design, found = "", dict[str, dict[str, Any]]()
    if folder:
        board = find(board_name)
        link = options["link"]
        hz = options["clock_hz"] or board.core_hz_of(name, link)
        design = key_for(_design(name, board, hz, link), board, hz, FlowOptions(seeds=()))
        found = recorded(record_of(folder, name, board.name, link), design) if options["use_cache"] else {}
    missing = [seed for seed in range(1, seeds + 1) if str(seed) not in found]
    waiting = {str(seed): workplace.submit(_route, name, board_name, seed, options) for seed in missing}
    for seed, wait in waiting.items():
        found[seed] = wait()
        if folder:
            record(folder, {**fastest(found), "design": design}, words)
    return fastest(found)


def fastest(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Of results by seed the fastest, the lowest of equal ones, with `mhz_by_seed` in its row, and all in `seeds`."""
    seeds = {seed: found[seed] for seed in sorted(found, key=int)}
    best = max(seeds.values(), key=lambda each: float(each["row"]["fmax_mhz"]))
    row = {**best["row"], "mhz_by_seed": {seed: each["row"]["fmax_mhz"] for seed, each in seeds.items()}}
    return {**best, "row": row, "seeds": seeds}


def recorded(path: Path, design: str) -> dict[str, dict[str, Any]]:
    """What a record has by seed of a design, whose key without seeds is `design`."""
    found = written(path)
    return dict(found["seeds"]) if found.get("design") == design else {}


def written(path: Path) -> dict[str, Any]:
    """A record of `record`'s; empty if there is none yet. `NotARecordError`: the file is something else."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not (isinstance(found, dict) and {"key", "result"} <= found.keys()):
        raise NotARecordError(f"{path} is no record of a route: move it away, or name another folder")
    return found


def _route(name: str, board_name: str, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    logs = options["logs"] / f"seed-{seed}"
    return route(name, board_name, seeds=[seed], **{**options, "logs": logs})


def record_of(folder: Path, name: str, board_name: str, link: str = "") -> Path:
    """The file of a preset on a board, as ``routed/`` has them, with another link than the board's own."""
    stem = name if name.startswith(board_name) else f"{name}-on-{board_name}"
    return folder / f"{stem}{f'-{link}' if link else ''}.json"


def record(folder: Path, found: dict[str, Any], words: str) -> None:
    """Write a result as ``routed/`` has them, with the digest of place and route's log if it is there, and of a sweep
    all that is known by seed; the seconds of one from the cache are those of the run that made it."""
    path = record_of(folder, found["row"]["preset"], found["row"]["board"], found["row"].get("link", ""))
    before = written(path)
    row = _row(found, before["result"]["seconds"] if before else None)
    seeds = {seed: {**each, "row": _row(each, None)} for seed, each in found.get("seeds", {}).items()}
    digests = {"logs_sha256": found["logs_sha256"]} if found["logs_sha256"] and not seeds else {}
    result = {
        "command": f"python bench/route.py {row['preset']}:{row['board']} {words}".strip(),
        "tools": {name: metadata.version(name) for name in packages(row["board"])},
        "key": found["key"],
        "bitstream_sha256": found["bitstream_sha256"],
        **digests,
        "result": row,
        **({"design": found["design"], "seeds": seeds} if seeds else {}),
    }
    write_atomically(path, (json.dumps(result, indent=2) + "\n").encode())


def _row(found: Mapping[str, Any], seconds: int | None) -> dict[str, Any]:
    """A result's row as it is recorded; `seconds` if it came from the cache and nothing else is known."""
    row = {**found["row"]}
    if row.pop("cached", False):
        noted = duration.expected(preset(row["preset"]), find(row["board"]))
        row["seconds"] = round(noted.seconds) if noted.stages else seconds
    return row


def main() -> int:
    """Parse the arguments, print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=DEFAULT, metavar="PRESET:BOARD")
    parser.add_argument("--seeds", type=whole(1), default=1, help="seeds to try until one meets the clock")
    parser.add_argument("--mhz", type=number(1, MOST_MHZ), default=0.0, help="core clock; default: the board's")
    parser.add_argument("--link", choices=LINKS, default="", help="default: the board's own")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--logs", type=Path, default=Path("build/route"), help="default: %(default)s")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write each result there, as in bench/routed")
    parser.add_argument("--workers", type=whole(1), metavar="N",
                        help="every seed is routed, by so many processes; the fastest is recorded")  # fmt: skip
    parser.add_argument("--scheduler", default="", metavar="ADDRESS",
                        help="the same by the workers of a Dask scheduler")  # fmt: skip
    arguments = parser.parse_args()
    for folder in filter(None, (arguments.record, None if arguments.scheduler else arguments.logs)):
        refuse(folder)  # logs lie where the workers are
    rows, swept = [], bool(arguments.workers is not None or arguments.scheduler)
    for job in arguments.jobs:
        name, _, board = job.partition(":")
        print(f"{name} on {board or name}", file=sys.stderr)
        try:
            if arguments.record:  # told before hours of work, as is a folder that cannot be made
                written(record_of(arguments.record, name, find(board or name).name, arguments.link))
            hz = round(arguments.mhz * 1e6)
            words = [f"--link {arguments.link}"] * bool(arguments.link) + [f"--mhz {arguments.mhz:g}"] * bool(hz)
            words += [f"--seeds {arguments.seeds}"] * (arguments.seeds > 1)
            words += ["--workers 1"] * swept  # how many does not change the result
            spoken = " ".join([*words, "--json"])
            options = {"clock_hz": hz, "use_cache": not arguments.no_cache, "logs": arguments.logs}
            options["link"] = arguments.link
            if swept:
                options |= {"folder": arguments.record, "words": spoken}
                with pool(arguments.workers, arguments.scheduler) as workplace:
                    found = sweep(name, board or name, arguments.seeds, workplace, **options)
            else:
                found = route(name, board or name, seeds=range(1, arguments.seeds + 1), **options)
                if arguments.record:
                    record(arguments.record, found, spoken)
        except NotARecordError as error:
            parser.error(f"--record: {error}")
        rows.append(found["row"])
        if not arguments.json:
            print("  ".join(f"{column}={rows[-1][column]}" for column in COLUMNS))
            print(f"  critical path: {rows[-1]['critical_path']}")
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
