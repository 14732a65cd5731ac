"""Verilog and a cocotb test module to a verdict: build with Icarus, run, read the results file."""

import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ToolError

TAIL = 25


@dataclass(frozen=True)
class Outcome:
    """What a simulation left: number of tests, of failed tests, the log, and the waveform if one was recorded."""

    tests: int
    failed: int
    log: str
    waves: Path | None


def require() -> None:
    """`ToolError` E7410 without Icarus Verilog, E7411 without cocotb."""
    if any(shutil.which(tool) is None for tool in ("iverilog", "vvp")):
        raise ToolError("E7410", "Icarus Verilog is not installed", hint="Debian: apt install iverilog")
    if any(importlib.util.find_spec(package) is None for package in ("cocotb", "cocotb_tools")):
        raise ToolError("E7411", "cocotb is not installed", hint="pip install 'onnxhw[sim]'")


def build(verilog: str, top: str, folder: Path, *, waves: bool = False) -> None:
    """Compile Verilog text in a folder; `ToolError` E7412 with the end of Icarus' output."""
    from cocotb_tools.runner import get_runner

    source, log = folder / f"{top}.v", folder / "build.log"
    source.write_text(verilog)
    try:
        get_runner("icarus").build(
            sources=[source], hdl_toplevel=top, build_dir=folder, timescale=("1ns", "1ps"), always=True, waves=waves,
            log_file=log,
        )  # fmt: skip
    except (SystemExit, RuntimeError, OSError) as error:
        raise ToolError("E7412", f"Icarus Verilog failed; the end of its output:\n{tail(log)}", where=top) from error


def simulate(
    module: str, top: str, folder: Path, *, environment: Mapping[str, str] | None = None, waves: bool = False,
    seed: int | None = None,
) -> Outcome:  # fmt: skip
    """Run a cocotb test module on what `build` made. A simulation that leaves no results is `ToolError` E7413."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    results, log = folder / "results.xml", folder / "run.log"
    results.unlink(missing_ok=True)
    runner = get_runner("icarus")
    try:
        # `test` returns normally when tests fail, but under pytest it exits: only the results file counts.
        runner.test(
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            test_module=module,
            build_dir=folder,
            test_dir=folder,
            results_xml=str(results),
            waves=waves,
            seed=seed,
            extra_env={"COCOTB_ANSI_OUTPUT": "0", **(environment or {})},
            log_file=log,
        )
    except (SystemExit, RuntimeError):
        pass
    except OSError as error:
        raise ToolError("E7413", f"the simulation cannot start: {error}", where=top) from error
    if not results.exists():
        raise ToolError("E7413", f"the simulation left no results; the end of its output:\n{tail(log)}", where=top)
    tests, failed = get_results(results)
    found = sorted(folder.glob("*.fst"))
    text = log.read_text(errors="replace") if log.exists() else ""
    if tests == 0:
        raise ToolError("E7413", f"the simulation ran no test; the end of its output:\n{tail(log)}", where=top)
    return Outcome(tests, failed, text, found[0] if found else None)


def tail(log: Path) -> str:
    """The last lines of a log."""
    text = log.read_text(errors="replace") if log.exists() else "(no output)"
    return "\n".join(text.rstrip().splitlines()[-TAIL:])
