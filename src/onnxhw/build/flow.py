"""From a design to a bitstream: elaborate, synthesize, place and route, pack; cached by content.

``build(design, board)`` raises `TimingError` rather than return a bitstream that misses its clock. Everything happens
in a temporary directory; an interrupt ends the running tool and leaves nothing behind.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..board import Board
from ..devices import family_of
from ..devices.family import NAME, ROUTED, Family, check_fit
from ..devices.netlist import top_module
from ..devices.report import RouteReport
from ..errors import TimingError, UsageError
from ..files import reason
from ..garbage import collection_paused
from . import tools
from .bitstream import Bitstream, from_entry, to_entry
from .cache import Cache, family_sources, key_of, sources
from .device import platform_of
from .place_and_route import NEAR, execute, place_and_route
from .stage import Progress, Stage

log = logging.getLogger(__name__)

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
    """What else decides over the result. `seeds` are tried in order until one meets the clock; if `only_near`, no other
    one where the first misses it by more than `NEAR` lets it."""

    seeds: tuple[int, ...] = (1,)
    synth_opts: tuple[str, ...] = ()
    nextpnr_opts: tuple[str, ...] = ()
    only_near: bool = False

    def of_seed(self, seed: int) -> "FlowOptions":
        """The same with one seed, which is what a result depends on."""
        return replace(self, seeds=(seed,), only_near=False)

    def key(self) -> str:
        """What a key has of it."""
        return f"FlowOptions(seeds={self.seeds!r}, synth_opts={self.synth_opts!r}, nextpnr_opts={self.nextpnr_opts!r})"

    def tried(self, best: RouteReport) -> int:
        """How many seeds were tried if none has met the clock, the best with this report."""
        return 1 if self.hopeless(best) else len(self.seeds)

    def hopeless(self, best: RouteReport) -> bool:
        """Whether no other seed is to be tried behind those of which the best has this report."""
        return self.only_near and best.margin < NEAR


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
    folder `logs`, however the run ends; `OSError` before the first tool if it cannot be made. What cannot be copied is
    told in a warning, and changes nothing of the result.
    """
    options = options or FlowOptions(seeds=board.seeds[:1])
    if not options.seeds:
        raise UsageError("E2340", "seeds must name at least one seed")
    with ExitStack() as stack:
        seeds = _Seeds(
            design, board, clock_hz, options, tool_versions(family_of(board)), cache or Cache("bitstream"), recipe,
            use_cache, progress, label, logs, stack,
        )  # fmt: skip
        result = _best(options, seeds.build)
    assert result is not None
    if require_timing and not result.timing_met:
        raise timing_error(result, options)
    return result


def _best(options: FlowOptions, result_of: Callable[[int], Bitstream | None]) -> Bitstream | None:
    """Of the results of seeds in turn the first that meets the clock, or the best; None as soon as there is none of a
    seed that would have to be tried."""
    best: Bitstream | None = None
    for seed in options.seeds:
        found = result_of(seed)
        if found is None:
            return None
        if best is None or found.report.margin > best.report.margin:
            best = found
        if found.timing_met or options.hopeless(best.report):
            break
    return best


def cached(
    design: Any, board: Board, *, clock_hz: int, options: FlowOptions | None = None, cache: Cache | None = None,
    recipe: Mapping[str, str] | None = None,
) -> Bitstream | None:
    """What `build` would take from the cache, timing met or not; None if it would have to build."""
    options, versions = options or FlowOptions(seeds=board.seeds[:1]), tool_versions(family_of(board))
    seeds = _Seeds(design, board, clock_hz, options, versions, cache or Cache("bitstream"), recipe)
    return _best(options, lambda seed: seeds.look_up(seed)[1])


def synthesized(
    design: Any, board: Board, *, clock_hz: int, options: FlowOptions | None = None, progress: Progress | None = None,
    cache: Cache | None = None, label: str = "",
) -> dict[str, int]:  # fmt: skip
    """Resources of a design by the names of `check_fit`, by synthesis alone, whether they fit the board or not; or from
    the cache. Errors: `ToolError` E71xx."""
    options, family = options or FlowOptions(seeds=board.seeds[:1]), family_of(board)
    with Stage(progress, ELABORATE):
        files = elaborate(design, board, options)
    key = _key_of(files, board, clock_hz, options, tool_versions(family))
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
    """A key over what `_key_of` makes its own of, without elaborating it."""
    return key_of({
        **{f"recipe {name}": text for name, text in recipe.items()}, "tools": json.dumps(versions, sort_keys=True),
        "flow": sources("build/flow.py"), "family": family_sources(board.family), "board": repr(board),
        "clock": str(clock_hz), "options": options.key(),
    })  # fmt: skip


def _known(designs: Cache, quick: str) -> str:
    """The key of the result that a quick key was seen to mean; empty if none was."""
    found = designs.load(quick) if quick else None
    return found["key"].decode() if found else ""


def _key_of(
    files: Mapping[str, str], board: Board, clock_hz: int, options: FlowOptions, versions: Mapping[str, str]
) -> str:
    """The key of a result: everything that it depends on."""
    return key_of({
        **files, "format": FORMAT, "tools": json.dumps(versions, sort_keys=True), "clock": str(clock_hz),
        "board": repr((board.device, board.package, board.speed)), "options": options.key(),
        **family_of(board).key(board),
    })  # fmt: skip


def key_for(design: Any, board: Board, clock_hz: int, options: FlowOptions) -> str:
    """The key of the bitstream that `build` makes of a design with one seed; with others, or none, of the design with
    these options. It is elaborated for it."""
    versions = tool_versions(family_of(board))
    return _key_of(elaborate(design, board, options), board, clock_hz, options, versions)


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
    count = options.tried(report)
    tried = f"{count} seed{'s' if count > 1 else ''} tried"
    return TimingError(
        "E6101",
        f"reaches {clock.achieved:.1f} MHz, not {clock.wanted:.1f} MHz ({tried}, best: {result.seed}); "
        f"critical path {report.path}",
        where=result.board.name,
        hint=report.remedy or "a lower clock (--freq), other placements (--seeds 10) or a smaller preset",
    )


@dataclass
class _Seeds:
    """The results of a design by seed, from the cache or made. Parameters as of `build`; what is made needs a `stack`,
    which keeps the folder of the tools until it is closed."""

    design: Any
    board: Board
    clock_hz: int
    options: FlowOptions
    versions: dict[str, str]
    store: Cache
    recipe: Mapping[str, str] | None = None
    use_cache: bool = True
    progress: Progress | None = None
    label: str = ""
    logs: Path | None = None
    stack: ExitStack = field(default_factory=ExitStack)

    def build(self, seed: int) -> Bitstream:
        """The result of a seed, from the cache if it is there and may be used."""
        key, found = self.look_up(seed)
        if found is None:
            found = self._place_and_route(seed, key or self._key(seed))
            if self.use_cache:
                label = self.label or f"{self.board.name} {self.clock_hz / 1e6:g} MHz"
                self.store.store(found.key, to_entry(found), label=label)
        if self.use_cache and self.recipe and "_files" in vars(self):  # no quick key was known
            self._designs.store(self._quick(seed), {"key": found.key.encode()}, label=self.label)
        return found

    def look_up(self, seed: int) -> tuple[str, Bitstream | None]:
        """The key of a seed's result and the result, if it is in the cache and may be used."""
        if not self.use_cache:
            return "", None
        key = _known(self._designs, self._quick(seed))
        entry = self.store.load(key) if key else None
        if entry is None:
            key = self._key(seed)
            entry = self.store.load(key)
        return key, from_entry(entry, key, self.board, self.clock_hz, self.versions) if entry else None

    @property
    def _designs(self) -> Cache:
        return Cache(DESIGNS, self.store.folder.parent)

    def _quick(self, seed: int) -> str:
        """The key by the recipe; empty without one."""
        one = self.options.of_seed(seed)
        return _quick_key(self.recipe, self.board, self.clock_hz, one, self.versions) if self.recipe else ""

    def _key(self, seed: int) -> str:
        return _key_of(self._files, self.board, self.clock_hz, self.options.of_seed(seed), self.versions)

    @cached_property
    def _files(self) -> dict[str, str]:
        with Stage(self.progress, ELABORATE):
            return elaborate(self.design, self.board, self.options)

    @cached_property
    def _directory(self) -> Path:
        """The tools' folder, with the netlist in it."""
        directory = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="onnxhw-")))
        self.stack.enter_context(_kept(directory, self.logs))
        family = family_of(self.board)
        for name, text in self._files.items():
            (directory / name).write_text(text)
        with Stage(self.progress, family.stages[0]) as stage:
            counts = synthesize(family, directory, stage)
        check_fit(counts, self.board)
        return directory

    def _place_and_route(self, seed: int, key: str) -> Bitstream:
        family, directory = family_of(self.board), self._directory
        with Stage(self.progress, family.stages[1], f"seed {seed}") as stage:
            report = place_and_route(directory, self.board, seed, self.options.nextpnr_opts, stage)
            stage.text = f"seed {seed}: {f'{report.fmax_mhz:.1f} MHz' if report.clocks else 'no clock'}"
        config = (directory / family.routed).read_text()
        locations = family.locate(json.loads((directory / ROUTED).read_text()))
        with Stage(self.progress, family.stages[2]) as stage:
            bits = pack(family, config, key, stage.tick)
        return Bitstream(bits, config, report, seed, key, self.clock_hz, self.board, self.versions, locations)


@contextmanager
def _kept(directory: Path, logs: Path | None) -> Iterator[None]:
    """Copy the tools' logs, and the design as it was routed last, to `logs` when the block ends, however it does.
    `OSError` before the block if there can be no such folder."""
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if logs:
            for path in (*directory.glob("*.rpt"), *directory.glob("*.log"), *directory.glob(ROUTED)):
                _keep(path, logs / path.name)


def _keep(path: Path, target: Path) -> None:
    """Copy a file. If that fails a warning says so, and neither a part of it stays nor what was there before."""
    try:
        shutil.copyfile(path, target)
    except OSError as error:
        log.warning("%s of this run is not kept: %s", target, reason(error))
        with suppress(OSError):
            target.unlink()


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
