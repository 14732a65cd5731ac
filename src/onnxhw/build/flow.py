"""From a design to a bitstream: elaborate, synthesize, place and route, pack; cached by content.

``build(design, board)`` raises `TimingError` rather than return a bitstream that misses its clock. Everything happens
in a temporary directory; an interrupt ends the running tool and leaves nothing behind.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..board import Board
from ..devices import family_of
from ..devices.family import NAME, ROUTED, BlockRamLocation, Family, check_fit
from ..devices.netlist import top_module
from ..devices.report import RouteReport
from ..errors import TimingError, UsageError
from ..garbage import collection_paused
from . import tools
from .bitstream import Bitstream, from_entry, to_entry
from .cache import Cache, family_sources, key_of, sources
from .device import platform_of
from .place_and_route import execute, place_and_route
from .stage import Progress, Stage

FORMAT = "3"
"""Version of the flow itself; part of the key."""
DESIGNS = "design"
"""The kind of cache entry that tells the key of a bitstream by what its design is made of."""
SYNTHESIZED = "synthesis"
"""The kind of cache entry that tells what a design takes by synthesis alone."""
PACKED = "packed"
"""The kind of a bitstream with other memory contents."""
ELABORATE = "elaborate"
"""The first stage of every family; the others are `Family.stages`."""
OF_ONE_DESIGN = {"E5201", "E7102"}
"""Errors of `build` that say nothing of other designs: one has no room, or a tool ends with an error."""

@dataclass(frozen=True)
class FlowOptions:
    """What else decides over the result. `seeds` are tried in order until one meets the clock."""

    seeds: tuple[int, ...] = (1,)
    synth_opts: tuple[str, ...] = ()
    nextpnr_opts: tuple[str, ...] = ()


def tool_versions(family: Family) -> dict[str, str]:
    """The tools that decide over the bitstream; `ToolError` E7101 if one is missing."""
    return {tool: tools.version(tool) for tool in family.tools}


def elaborate(design: Any, board: Board, options: FlowOptions) -> dict[str, str]:
    """The design's files for the tools, without paths of sources. A design that has a `config` gets the floor plan of
    that configuration."""
    family, platform = family_of(board), platform_of(board)
    platform.primitives = family.primitives(board.device, getattr(design, "config", None))
    with collection_paused():
        return family.files(platform, design, board, options.synth_opts)


def synthesize(family: Family, directory: Path, stage: Stage) -> dict[str, int]:
    """Run Yosys in a directory that holds the files of `elaborate`, and leave there what the family makes of the
    netlist; its resources."""
    tools.run("yosys", ["-q", "-l", f"{NAME}.rpt", f"{NAME}.ys"], directory, tick=stage.tick)
    netlist = directory / f"{NAME}.json"
    made = family.netlist(netlist.read_text())
    netlist.write_text(made)
    cells = top_module(json.loads(made))["cells"]
    return family.counts({name: cell["type"] for name, cell in cells.items()})


def pack(family: Family, routed: str, key: str, tick: tools.Tick | None = None) -> bytes:
    """The bitstream of a routed design's text; the device can be asked for the first bits of `key`."""
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
        directory = Path(scratch)
        (directory / family.routed).write_text(routed)
        execute(family.pack(key), directory, tick)
        return (directory / f"{NAME}.bit").read_bytes()


def build(
    design: Any,
    board: Board,
    *,
    clock_hz: int,
    options: FlowOptions | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
    use_cache: bool = True,
    require_timing: bool = True,
    label: str = "",
    recipe: Mapping[str, str] | None = None,
    logs: Path | None = None,
) -> Bitstream:
    """Make the bitstream of a design (any Elaboratable that asks the platform for its pins), or take it from the cache.

    `clock_hz` is the frequency of the core's clock; the constraint itself comes from the PLL or the board's oscillator,
    and a design in which no clock is constrained to it is refused. Errors: `DoesNotFitError` E5201 before place and
    route, `TimingError` E6101 or E6102 (unless `require_timing` is false) about the best result, `ToolError` E71xx. A
    result that misses its clock is kept, too, and refused again. With a `recipe`, everything that the design is made
    of, a result that is in the cache is found without elaborating it. The tools' logs and `ROUTED` are copied to the
    folder `logs`, however the run ends.
    """
    options = options or FlowOptions(seeds=board.seeds[:1])
    versions, store = tool_versions(family_of(board)), cache or Cache("bitstream")
    quick = _quick_key(recipe, board, clock_hz, options, versions) if recipe and use_cache else ""
    designs = Cache(DESIGNS, store.folder.parent)
    key, files = _known(designs, quick), dict[str, str]()
    found = store.load(key) if key else None
    if found is None:
        with Stage(progress, ELABORATE):
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
    design: Any, board: Board, *, clock_hz: int, options: FlowOptions | None = None, cache: Cache | None = None,
    recipe: Mapping[str, str] | None = None,
) -> Bitstream | None:
    """What `build` would take from the cache, timing met or not; None if it would have to build."""
    options, versions = options or FlowOptions(seeds=board.seeds[:1]), tool_versions(family_of(board))
    store = cache or Cache("bitstream")
    quick = _quick_key(recipe, board, clock_hz, options, versions) if recipe else ""
    key = _known(Cache(DESIGNS, store.folder.parent), quick) or key_for(design, board, clock_hz, options)
    found = store.load(key)
    return None if found is None else from_entry(found, key, board, clock_hz, versions)


def synthesized(
    design: Any, board: Board, *, clock_hz: int, options: FlowOptions | None = None, progress: Progress | None = None,
    cache: Cache | None = None, label: str = "",
) -> dict[str, int]:  # fmt: skip
    """Resources of a design by the names of `check_fit`, by synthesis alone, whether they fit the board or not; or from
    the cache. Errors: `ToolError` E71xx."""
    options, family = options or FlowOptions(seeds=board.seeds[:1]), family_of(board)
    with Stage(progress, ELABORATE):
        files, key = _prepare(design, board, clock_hz, options, tool_versions(family))
    store = cache or Cache(SYNTHESIZED)
    if found := store.load(key):
        return {str(kind): int(count) for kind, count in json.loads(found["counts.json"]).items()}
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
        for name, text in files.items():
            (Path(scratch) / name).write_text(text)
        with Stage(progress, family.stages[0]) as stage:
            counts = synthesize(family, Path(scratch), stage)
    store.store(key, {"counts.json": json.dumps(counts, sort_keys=True).encode()}, label=label)
    return counts


def _quick_key(
    recipe: Mapping[str, str], board: Board, clock_hz: int, options: FlowOptions, versions: Mapping[str, str]
) -> str:
    """A key over what `_prepare` makes its own of, without making it."""
    return key_of({
        **{f"recipe {name}": text for name, text in recipe.items()}, "tools": json.dumps(versions, sort_keys=True),
        "flow": sources("build/flow.py"), "family": family_sources(board.family), "board": repr(board),
        "clock": str(clock_hz), "options": repr(options),
    })  # fmt: skip


def _known(designs: Cache, quick: str) -> str:
    """The key of the result that a quick key was seen to mean; empty if none was."""
    found = designs.load(quick) if quick else None
    return found["key"].decode() if found else ""


def _prepare(
    design: Any, board: Board, clock_hz: int, options: FlowOptions, versions: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """The tools' input files, and the key of the result: everything that it depends on."""
    files = elaborate(design, board, options)
    key = key_of({
        **files, "format": FORMAT, "tools": json.dumps(versions, sort_keys=True), "clock": str(clock_hz),
        "board": repr((board.device, board.package, board.speed)), "options": repr(options),
        **family_of(board).key(board),
    })  # fmt: skip
    return files, key


def key_for(design: Any, board: Board, clock_hz: int, options: FlowOptions) -> str:
    """The key of the bitstream that `build` makes of a design; it is elaborated for it."""
    return _prepare(design, board, clock_hz, options, tool_versions(family_of(board)))[1]


def timing_error(result: Bitstream, options: FlowOptions) -> TimingError:
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
    files: Mapping[str, str], key: str, board: Board, clock_hz: int, options: FlowOptions, versions: dict[str, str],
    progress: Progress | None, logs: Path | None,
) -> Bitstream:  # fmt: skip
    family = family_of(board)
    synthesis, routing, packing = family.stages
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch, _kept(directory := Path(scratch), logs):
        for name, text in files.items():
            (directory / name).write_text(text)
        with Stage(progress, synthesis) as stage:
            counts = synthesize(family, directory, stage)
        check_fit(counts, board)
        best: tuple[RouteReport, int, str, list[BlockRamLocation]] | None = None
        for seed in options.seeds:
            with Stage(progress, routing, f"seed {seed}") as stage:
                report = place_and_route(directory, board, seed, options.nextpnr_opts, stage)
                fmax = f"{report.fmax_mhz:.1f} MHz" if report.clocks else "no clock"
                stage.text = f"seed {seed}: {fmax}"
            if best is None or report.margin > best[0].margin:
                config = (directory / family.routed).read_text()
                best = (report, seed, config, family.locate(json.loads((directory / ROUTED).read_text())))
            if report.timing_met:
                break
    if best is None:
        raise UsageError("E2340", "seeds must name at least one seed")
    report, seed, config, locations = best
    with Stage(progress, packing) as stage:
        bitstream = pack(family, config, key, stage.tick)
    return Bitstream(bitstream, config, report, seed, key, clock_hz, board, versions, locations)


@contextmanager
def _kept(directory: Path, logs: Path | None) -> Iterator[None]:
    """Copy the tools' logs, and the design as it was routed last, to `logs` when the block ends, however it does."""
    try:
        yield
    finally:
        if logs:
            logs.mkdir(parents=True, exist_ok=True)
            for path in (*directory.glob("*.rpt"), *directory.glob("*.log"), *directory.glob(ROUTED)):
                shutil.copy(path, logs / path.name)


def with_memories(
    result: Bitstream, images: Mapping[str, Sequence[int]], *, progress: Progress | None = None
) -> Bitstream:
    """The same routed design with other memory contents (see `Family.bake`); packs in seconds, never routes.

    What was packed before is taken from the cache.
    """
    family = family_of(result.board)
    config = family.bake(result.config, result.locations, images)
    key, store = key_of({"base": result.key, "config": config}), Cache(PACKED)
    found = store.load(key)
    if found is None:
        with Stage(progress, family.stages[2]) as stage:
            found = {f"{NAME}.bit": pack(family, config, key, stage.tick)}
        store.store(key, found, label=f"{result.board.name} {result.clock_hz / 1e6:g} MHz, with memories")
    bitstream = found[f"{NAME}.bit"]
    return replace(result, bitstream=bitstream, config=config)
