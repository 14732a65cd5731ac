"""From a design to a bitstream: elaborate, synthesize, place and route, pack; cached by content.

``build(design, board)`` raises `TimingError` rather than return a bitstream that misses its clock. Everything happens
in a temporary directory; an interrupt ends the running tool and leaves nothing behind.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..board import Board
from ..errors import DoesNotFitError, TimingError, UsageError
from . import mapping, tools
from .built import Built, from_entry, to_entry
from .cache import Cache, key_of, sources
from .device import part_options, platform_of
from .phases import RouteLog
from .report import RouteReport, read_report
from .standalone import Location, bake, locate

FORMAT = "2"
"""Version of the flow itself; part of the key."""
NAME = "top"
DESIGNS = "design"
"""The kind of cache entry that tells the key of a bitstream by what its design is made of."""
PACKED = "packed"
"""The kind of a bitstream with other memory contents."""
STAGES = ("elaborate", "yosys", "nextpnr", "ecppack")
PLACER = "static"
"""nextpnr's placer: spreads the logic over the chip. Its default one, "heap", fills tiles to three quarters before it
takes the next, and leaves the rest of a large chip empty, which the router pays for."""
PLACERS = {"LFE5U-12F": "heap", "LFE5U-25F": "heap"}
"""Another one by device. ``ulx3s-25f`` fills these to four fifths, and "static" had found no legal places for it after
minutes in which "heap" was done."""

Progress = Callable[["Event"], None]


@dataclass(frozen=True)
class Event:
    """Progress: a stage (of `STAGES`), seconds since it began, whether it has ended, and what there is to say.

    `phase` is what place and route is doing, and how far it is (`RouteLog`).
    """

    stage: str
    seconds: float
    done: bool
    text: str = ""
    phase: str = ""


@dataclass(frozen=True)
class Options:
    """What else decides over the result. `seeds` are tried in order until one meets the clock."""

    seeds: tuple[int, ...] = (1,)
    synth_opts: tuple[str, ...] = ()
    nextpnr_opts: tuple[str, ...] = ()


def tool_versions() -> dict[str, str]:
    """The tools that decide over the bitstream; `ToolError` E7101 if one is missing."""
    return {tool: tools.version(tool) for tool in ("yosys", "nextpnr-ecp5", "ecppack")}


class _Stage:
    """Reports one stage: `tick` while it runs, an end when it is left."""

    def __init__(self, progress: Progress | None, name: str, text: str = "", log: RouteLog | None = None) -> None:
        self.progress, self.name, self.text, self.log = progress, name, text, log
        self.start = time.monotonic()

    def __enter__(self) -> "_Stage":
        self.tick(0.0)
        return self

    def tick(self, seconds: float) -> None:
        if self.progress:
            phase = self.log.look() if self.log else ""
            self.progress(Event(self.name, seconds, False, self.text, phase))

    def __exit__(self, kind: object, *_: object) -> None:
        if self.progress and kind is None:
            self.progress(Event(self.name, time.monotonic() - self.start, True, self.text))


def elaborate(design: Any, board: Board, options: Options) -> dict[str, str]:
    """The design's files for the tools: RTLIL, Yosys script, its last mapping, pin and clock constraints; no source
    paths in them."""
    platform = platform_of(board)
    sysconfig = f"SYSCONFIG {' '.join(board.sysconfig)};" if board.sysconfig else ""
    plan = platform.prepare(
        design, NAME, emit_src=False, synth_opts=list(options.synth_opts), script_after_synth=mapping.SCRIPT,
        add_preferences=sysconfig,
    )  # fmt: skip
    wanted = [f"{NAME}.il", f"{NAME}.ys", f"{NAME}.lpf"]
    files = {name: text if isinstance(text := plan.files[name], str) else text.decode() for name in wanted}
    return files | {mapping.FILE: mapping.text()}


def check_fit(counts: Mapping[str, int], board: Board, where: str = "") -> None:
    """`DoesNotFitError` E5201 with all resources that are too few, before place and route."""
    have = {
        "LUT4": board.resources.lut4, "flip-flops": board.resources.ff, "multipliers": board.resources.dsp,
        "block RAMs": board.resources.ebr,
    }  # fmt: skip
    over = [
        f"{counts[kind]} {kind}, {board.device} has {have[kind]}" for kind in have if counts.get(kind, 0) > have[kind]
    ]
    if over:
        hint = {
            "multipliers": "lower rows or cols, or use multiplier='fabric'",
            "block RAMs": "lower the memory depths or word",
            "LUT4": "lower rows, cols or lanes, or use multiplier='dsp'",
            "flip-flops": "lower rows, cols or lanes",
        }
        lower = next(hint[kind] for kind in hint if counts.get(kind, 0) > have[kind])
        raise DoesNotFitError(
            "E5201", f"needs {'; '.join(over)}", where=where or board.name, hint=lower + " or take a larger board"
        )


def synthesize(directory: Path, stage: _Stage) -> dict[str, int]:
    """Run Yosys in a directory that holds the files of `elaborate`; the cells of the result."""
    script = directory / f"{NAME}.ys"
    script.write_text(script.read_text() + "\ntee -q -o stat.json stat -json\n")
    tools.run("yosys", ["-q", "-l", f"{NAME}.rpt", f"{NAME}.ys"], directory, tick=stage.tick)
    counts = json.loads((directory / "stat.json").read_text())["design"]["num_cells_by_type"]
    get = counts.get
    return {
        "LUT4": get("LUT4", 0) + 2 * get("CCU2C", 0) + 6 * get("TRELLIS_DPR16X4", 0),
        "flip-flops": get("TRELLIS_FF", 0),
        "multipliers": get("MULT18X18D", 0),
        "block RAMs": get("DP16KD", 0),
    }


def log_of(seed: int) -> str:
    """The name of nextpnr's log."""
    return f"nextpnr-{seed}.log"


def place_and_route(directory: Path, board: Board, seed: int, options: Options, stage: _Stage) -> RouteReport:
    """Run nextpnr with one seed; leaves ``top.config``, ``routed.json`` and ``report.json``.

    Timing failures are let pass here, so that the report is written; `build` refuses them.
    """
    arguments = [
        *part_options(board), "--seed", str(seed),
        "--json", f"{NAME}.json", "--lpf", f"{NAME}.lpf", "--textcfg", f"{NAME}.config", "--write", "routed.json",
        "--report", "report.json", "--timing-allow-fail", "--quiet", "--log", log_of(seed),
        "--placer", PLACERS.get(board.device, PLACER), *options.nextpnr_opts,
    ]  # fmt: skip
    tools.run("nextpnr-ecp5", arguments, directory, tick=stage.tick)
    return read_report(json.loads((directory / "report.json").read_text()))


def pack(config: str, key: str, tick: tools.Tick | None = None) -> bytes:
    """The bitstream of a textual configuration; the first 32 bits of `key` become its USERCODE."""
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
        directory = Path(scratch)
        (directory / f"{NAME}.config").write_text(config)
        arguments = [
            "--compress",
            "--usercode",
            str(int(key[:8], 16)),
            "--input",
            f"{NAME}.config",
            "--bit",
            f"{NAME}.bit",
        ]
        tools.run("ecppack", arguments, directory, tick=tick)
        return (directory / f"{NAME}.bit").read_bytes()


def build(
    design: Any,
    board: Board,
    *,
    clock_hz: int,
    options: Options | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
    use_cache: bool = True,
    require_timing: bool = True,
    label: str = "",
    recipe: Mapping[str, str] | None = None,
    logs: Path | None = None,
) -> Built:
    """Make the bitstream of a design (any Elaboratable that asks the platform for its pins), or take it from the cache.

    `clock_hz` is the frequency of the core's clock; the constraint itself comes from the PLL or the board's oscillator,
    and a design in which no clock is constrained to it is refused. Errors: `DoesNotFitError` E5201 before place and
    route, `TimingError` E6101 or E6102 (unless `require_timing` is false) about the best result, `ToolError` E71xx. A
    result that misses its clock is kept, too, and refused again. With a `recipe`, everything that the design is made
    of, a result that is in the cache is found without elaborating it. The tools' logs are copied to the folder `logs`,
    however the run ends.
    """
    options = options or Options(seeds=board.seeds[:1])
    versions, store = tool_versions(), cache or Cache("bitstream")
    quick = _quick_key(recipe, board, clock_hz, options, versions) if recipe and use_cache else ""
    designs = Cache(DESIGNS, store.folder.parent)
    key, files = _known(designs, quick), dict[str, str]()
    found = store.load(key) if key else None
    if found is None:
        with _Stage(progress, "elaborate"):
            files, key = _prepare(design, board, clock_hz, options, versions)
        found = store.load(key) if use_cache else None
    if found is not None:
        result = from_entry(found, key, board, clock_hz, versions)
    else:
        result = _run(files, key, board, clock_hz, options, versions, progress, logs)
        if use_cache:
            store.store(key, to_entry(result), label=label or f"{board.name} {clock_hz / 1e6:g} MHz")
    if quick and files:
        designs.store(quick, {"key": key.encode()}, label=label)
    if require_timing and not result.timing_met:
        raise timing_error(result, options)
    return result


def cached(
    design: Any, board: Board, *, clock_hz: int, options: Options | None = None, cache: Cache | None = None,
    recipe: Mapping[str, str] | None = None,
) -> Built | None:
    """What `build` would take from the cache, timing met or not; None if it would have to build."""
    options, versions = options or Options(seeds=board.seeds[:1]), tool_versions()
    store = cache or Cache("bitstream")
    quick = _quick_key(recipe, board, clock_hz, options, versions) if recipe else ""
    key = _known(Cache(DESIGNS, store.folder.parent), quick)
    key = key or _prepare(design, board, clock_hz, options, versions)[1]
    found = store.load(key)
    return None if found is None else from_entry(found, key, board, clock_hz, versions)


def _quick_key(
    recipe: Mapping[str, str], board: Board, clock_hz: int, options: Options, versions: Mapping[str, str]
) -> str:
    """A key over what `_prepare` makes its own of, without making it."""
    return key_of({
        **{f"recipe {name}": text for name, text in recipe.items()}, "tools": json.dumps(versions, sort_keys=True),
        "flow": sources("build/flow.py"), "mapping": mapping.text(), "board": repr(board), "clock": str(clock_hz),
        "options": repr(options),
    })  # fmt: skip


def _known(designs: Cache, quick: str) -> str:
    """The key of the result that a quick key was seen to mean; empty if none was."""
    found = designs.load(quick) if quick else None
    return found["key"].decode() if found else ""


def _prepare(
    design: Any, board: Board, clock_hz: int, options: Options, versions: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """The tools' input files, and the key of the result: everything that it depends on."""
    files = elaborate(design, board, options)
    key = key_of({
        **files, "format": FORMAT, "tools": json.dumps(versions, sort_keys=True), "clock": str(clock_hz),
        "board": repr((board.device, board.package, board.speed)), "options": repr(options),
        # Not where it is the usual one, as in FORMAT 2 from the start: those results stay good.
        **({"placer": PLACERS[board.device]} if board.device in PLACERS else {}),
    })  # fmt: skip
    return files, key


def timing_error(result: Built, options: Options) -> TimingError:
    """What the user reads when the clock is not met."""
    report = result.report
    if not result.constrained:
        found = ", ".join(f"{net} at {clock.wanted:g} MHz" for net, clock in report.clocks.items()) or "none"
        what = (
            f"no clock is constrained to {result.clock_hz / 1e6:g} MHz, nothing shows that it is met; clocks: {found}"
        )
        return TimingError("E6102", what, where=result.board.name)
    clock = report.clocks[report.worst]
    tried = f"{len(options.seeds)} seed{'s' if len(options.seeds) > 1 else ''} tried"
    return TimingError(
        "E6101",
        f"reaches {clock.achieved:.1f} MHz, not {clock.wanted:.1f} MHz ({tried}, best: {result.seed}); "
        f"critical path {report.path}",
        where=result.board.name,
        hint=report.remedy or "a lower clock (--freq), other placements (--seeds 5) or a smaller preset",
    )


def _run(
    files: Mapping[str, str], key: str, board: Board, clock_hz: int, options: Options, versions: dict[str, str],
    progress: Progress | None, logs: Path | None,
) -> Built:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch, _kept(directory := Path(scratch), logs):
        for name, text in files.items():
            (directory / name).write_text(text)
        with _Stage(progress, "yosys") as stage:
            counts = synthesize(directory, stage)
        check_fit(counts, board)
        best: tuple[RouteReport, int, str, list[Location]] | None = None
        for seed in options.seeds:
            with _Stage(progress, "nextpnr", f"seed {seed}", RouteLog(directory / log_of(seed))) as stage:
                report = place_and_route(directory, board, seed, options, stage)
                fmax = f"{report.fmax_mhz:.1f} MHz" if report.clocks else "no clock"
                stage.text = f"seed {seed}: {fmax}"
            if best is None or _slack(report) > _slack(best[0]):
                config = (directory / f"{NAME}.config").read_text()
                best = (report, seed, config, locate(json.loads((directory / "routed.json").read_text())))
            if report.timing_met:
                break
    if best is None:
        raise UsageError("E2340", "seeds must name at least one seed")
    report, seed, config, locations = best
    with _Stage(progress, "ecppack") as stage:
        bitstream = pack(config, key, stage.tick)
    return Built(bitstream, config, report, seed, key, clock_hz, board, versions, locations)


@contextmanager
def _kept(directory: Path, logs: Path | None) -> Iterator[None]:
    """Copy the tools' logs to `logs` when the block ends, however it does."""
    try:
        yield
    finally:
        if logs:
            logs.mkdir(parents=True, exist_ok=True)
            for path in (*directory.glob("*.rpt"), *directory.glob("*.log")):
                shutil.copy(path, logs / path.name)


def _slack(report: RouteReport) -> float:
    """How well the worst clock is met: achieved over wanted."""
    clock = report.clocks.get(report.worst)
    return clock.achieved / clock.wanted if clock else 0.0


def with_memories(result: Built, images: Mapping[str, Sequence[int]], *, progress: Progress | None = None) -> Built:
    """The same routed design with other memory contents (see `standalone.bake`); packs in seconds, never routes.

    What was packed before is taken from the cache.
    """
    config = bake(result.config, result.locations, images)
    key, store = key_of({"base": result.key, "config": config}), Cache(PACKED)
    found = store.load(key)
    if found is None:
        with _Stage(progress, "ecppack") as stage:
            found = {f"{NAME}.bit": pack(config, key, stage.tick)}
        store.store(key, found, label=f"{result.board.name} {result.clock_hz / 1e6:g} MHz, with memories")
    bitstream = found[f"{NAME}.bit"]
    return replace(result, bitstream=bitstream, config=config)
