"""Place and route presets and report what they take and how fast they are.

    python bench/route.py ulx3s-25f:ulx3s-25f mini:ulx3s-12f --seeds 3
    python bench/route.py ulx3s-25f:ulx3s-25f --mhz 110 --seeds 5 --workers 2      every seed, the fastest is told

Each argument is PRESET:BOARD; default is every board's own preset. A result that misses the clock is reported, not
refused. Results come from the bitstream cache when they are there. Of a run that is stopped no process is left, and the
tools' logs lie in --logs, a folder per preset and board.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from onnxhw.board import find
from onnxhw.build import duration
from onnxhw.build.bitstream import Bitstream
from onnxhw.build.flow import FlowEvent, FlowOptions, build, log_of
from onnxhw.build.tools import package_of
from onnxhw.cli.common.interrupts import interruptible
from onnxhw.cli.common.pipeline import target
from onnxhw.cli.common.synthesis import top
from onnxhw.cluster import TaskPool, pool
from onnxhw.compiler.cost import line_rate
from onnxhw.devices import family_of
from onnxhw.errors import OnnxhwError
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
    name: str, board_name: str, *, clock_hz: int, seeds: Sequence[int], use_cache: bool, logs: Path
) -> dict[str, Any]:
    """Build one preset for one board, with one seed after the other until one meets the clock: its row of the table,
    and what names the bitstream."""
    board, shown = find(board_name), Shown()
    hz = clock_hz or board.core_hz
    config = target(board_name, name).at(hz).config
    start = time.monotonic()
    built = build(
        top(board, config, hz, line_rate(board, hz), board.link),
        board,
        clock_hz=hz,
        options=FlowOptions(seeds=tuple(seeds)),
        progress=shown,
        use_cache=use_cache,
        require_timing=False,
        label=f"{name} on {board.name}",
        logs=logs / f"{name}-{board.name}",
    )
    if not built.cached:
        duration.store(name, board.name, shown.seconds)
    used = {kind: built.report.resources[kind][0] for kind in ("lut", "ff", "dsp", "ebr")}
    guess = family_of(board).estimate(config)
    row: dict[str, Any] = {"preset": name, "board": board.name, **used, "fmax_mhz": round(built.report.fmax_mhz, 1)}
    row |= {"wanted_mhz": hz / 1e6, "timing_met": built.timing_met, "seed": built.seed}
    row |= {"seconds": round(time.monotonic() - start), "cached": built.cached, "critical_path": built.report.path}
    row["estimated"] = {"lut": guess.lut, "ff": guess.ff, "dsp": guess.dsp, "ebr": guess.ebr}
    digests = {str(built.seed): found} if (found := digest_of_log(built, logs / f"{name}-{board.name}")) else {}
    bitstream = hashlib.sha256(built.bitstream).hexdigest()
    return {"row": row, "key": built.key, "bitstream_sha256": bitstream, "logs_sha256": digests}


def digest_of_log(built: Bitstream, folder: Path) -> str:
    """The digest of the log of the run that made a bitstream, now or before; empty if there is none, or that of another
    run."""
    made, log = folder / KEY, folder / log_of(family_of(built.board), built.seed)
    if not built.cached:
        made.write_text(built.key, encoding="utf-8")
    if not (made.exists() and log.exists()) or made.read_text(encoding="utf-8") != built.key:
        return ""
    return hashlib.sha256(log.read_bytes()).hexdigest()


def sweep(name: str, board_name: str, seeds: int, workplace: TaskPool, **options: Any) -> dict[str, Any]:
    """As `route`, each seed a task of its own: of all seeds the fastest, the first of equal ones; `mhz_by_seed` in its
    row."""
    waiting = [workplace.submit(_route, name, board_name, seed, options) for seed in range(1, seeds + 1)]
    found = [wait() for wait in waiting]
    best = max(found, key=lambda each: float(each["row"]["fmax_mhz"]))
    best["row"]["mhz_by_seed"] = {str(each["row"]["seed"]): each["row"]["fmax_mhz"] for each in found}
    best["logs_sha256"] = {seed: digest for each in found for seed, digest in each["logs_sha256"].items()}
    return best


def _route(name: str, board_name: str, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    logs = options["logs"] / f"seed-{seed}"
    return route(name, board_name, seeds=[seed], **{**options, "logs": logs})


def record(folder: Path, found: dict[str, Any], words: str) -> None:
    """Write a result as ``routed/`` has them, with the digests of place and route's logs by seed so far as they are
    there; the seconds of one from the cache are those of the run that made it."""
    row = dict(found["row"])
    path = folder / (f"{row['preset']}.json" if row["preset"].startswith(row["board"]) else
                     f"{row['preset']}-on-{row['board']}.json")  # fmt: skip
    if row.pop("cached"):
        old = json.loads(path.read_text())["result"]["seconds"] if path.exists() else None
        noted = duration.expected(preset(row["preset"]), find(row["board"]))
        row["seconds"] = round(noted.seconds) if noted.stages else old
    digests = {"logs_sha256": found["logs_sha256"]} if found["logs_sha256"] else {}
    result = {
        "command": f"python bench/route.py {row['preset']}:{row['board']} {words}".strip(),
        "tools": {name: metadata.version(name) for name in packages(row["board"])},
        "key": found["key"],
        "bitstream_sha256": found["bitstream_sha256"],
        **digests,
        "result": row,
    }
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def at_least_one(text: str) -> int:
    """A positive whole number, for argparse."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def main() -> int:
    """Parse the arguments, print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=DEFAULT, metavar="PRESET:BOARD")
    parser.add_argument("--seeds", type=at_least_one, default=1, help="seeds to try until one meets the clock")
    parser.add_argument("--mhz", type=float, default=0.0, help="core clock; default: the board's")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--logs", type=Path, default=Path("build/route"), help="default: %(default)s")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write each result there, as in bench/routed")
    parser.add_argument("--workers", type=at_least_one, metavar="N",
                        help="every seed is routed, by so many processes; the fastest is recorded")  # fmt: skip
    parser.add_argument("--scheduler", default="", metavar="ADDRESS",
                        help="the same by the workers of a Dask scheduler")  # fmt: skip
    arguments = parser.parse_args()
    if arguments.record:
        arguments.record.mkdir(parents=True, exist_ok=True)  # before hours of work, not behind them
    rows, swept = [], bool(arguments.workers is not None or arguments.scheduler)
    for job in arguments.jobs:
        name, _, board = job.partition(":")
        print(f"{name} on {board or name}", file=sys.stderr)
        try:
            hz = round(arguments.mhz * 1e6)
            options = {"clock_hz": hz, "use_cache": not arguments.no_cache, "logs": arguments.logs}
            if swept:
                with pool(arguments.workers, arguments.scheduler) as workplace:
                    found = sweep(name, board or name, arguments.seeds, workplace, **options)
            else:
                found = route(name, board or name, seeds=range(1, arguments.seeds + 1), **options)
        except OnnxhwError as error:
            print(error.text(), file=sys.stderr)
            return error.exit_status
        rows.append(found["row"])
        if arguments.record:
            words = [f"--mhz {arguments.mhz:g}"] * bool(hz) + [f"--seeds {arguments.seeds}"] * (arguments.seeds > 1)
            words += ["--workers 1"] * swept  # how many does not change the result
            record(arguments.record, found, " ".join([*words, "--json"]))
        if not arguments.json:
            print("  ".join(f"{column}={rows[-1][column]}" for column in COLUMNS))
            print(f"  critical path: {rows[-1]['critical_path']}")
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    with interruptible():
        sys.exit(main())
