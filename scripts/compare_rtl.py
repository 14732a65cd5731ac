"""Show that two checkouts describe the same hardware, though its text (RTLIL) differs: names, and where modules end.

    python scripts/compare_rtl.py write FILE [--synth mini ulx3s-25f] [--configs small mini]
    python scripts/compare_rtl.py compare BEFORE AFTER

`write` runs in each checkout. It counts, for every configuration of the digest gate, the cells by type and width of
the flattened design and the places of the floor plan; with `--synth`, what Yosys makes of a core for the device. And
it simulates 20 programs, of which every signal's waveform is digested. `compare` says what differs: cells, places, and
signals whose waveform the other checkout shows nowhere, under no name.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "gate"), str(ROOT / "tests" / "rtl"), str(ROOT / "tests" / "netlist")]

import gate_models  # noqa: E402
import gate_store  # noqa: E402
from netlist import synthesize_netlist  # noqa: E402
from programs import random_program  # noqa: E402

from onnxhw.build import tools  # noqa: E402
from onnxhw.compiler import compile  # noqa: E402
from onnxhw.config import HwConfig  # noqa: E402
from onnxhw.engines.cxxrtl.core_model import CoreModel, core_library  # noqa: E402
from onnxhw.isa.instructions import UNITS  # noqa: E402
from onnxhw.isa.memory import Control, Space  # noqa: E402
from onnxhw.presets import PRESETS  # noqa: E402
from onnxhw.program import DeviceProgram, to_host  # noqa: E402
from onnxhw.program.host_words import memories  # noqa: E402
from onnxhw.rtl.core import Core  # noqa: E402

SCRIPT = (
    "read_rtlil top.il; hierarchy -top device; proc; flatten; opt_expr; opt_clean; tee -q -o cells stat -width -json"
)
"""To what does not depend on how modules divide a design; nothing is mapped or shared."""
EVERY_FIELD = HwConfig(
    "compared", rows=4, cols=4, word=8, lanes=2, acc_bits=24, load_rows=4, inner_product="fast", depthwise=9,
    act_depth=256, weight_depth=160, acc_depth=64, window_depth=64, param_depth=512, tables=2,
)  # fmt: skip
"""A core with every unit, for random programs that use every field."""
RANDOM, LENGTH = 12, 8
"""Random programs, and about how many instructions each unit has."""
NETWORKS = (
    "convolutions", "depthwise", "residual", "pooling", "dense", "staircase", "products", "drawn_1",
)  # fmt: skip
"""Networks of the digest gate whose first part runs on the preset `mini`."""
VARIABLE = re.compile(r"^\$var \w+ \d+ (\S+) (.+) \$end$")


def cells(name: str) -> dict[str, Any]:
    """Cells of a configuration's device by type and width, and the digest of the floor plan's places."""
    text = gate_store.rtlil_text(name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "top.il").write_text(text)
        tools.run("yosys", ["-q", "-p", SCRIPT], folder)
        found = json.loads((folder / "cells").read_text())["design"]["num_cells_by_type"]
    places = sorted(re.findall(r'attribute \\BEL "(.*)"', text))
    return {"cells": found, "places": [len(places), _digest("\n".join(places).encode())]}


def programs() -> Iterator[tuple[str, HwConfig, DeviceProgram, np.ndarray]]:
    """Name, configuration, program and activation memory before it."""
    for seed in range(RANDOM):
        program, act = random_program(EVERY_FIELD, seed, LENGTH)
        yield f"random {seed}", EVERY_FIELD, program, act
    config = PRESETS["mini"]
    for name in NETWORKS:
        part = next(p for p in compile(gate_models.MODELS[name](), config).parts if isinstance(p, DeviceProgram))
        numbers = np.random.default_rng(1)
        yield name, config, part, numbers.integers(-128, 128, (config.act_words, config.word)).astype(np.int8)


def traces() -> dict[str, dict[str, str]]:
    """By program and signal, the digest of its waveform."""
    found = {}
    for name, config, program, act in programs():
        with tempfile.TemporaryDirectory() as scratch, CoreModel(core_library(config, waves=True).path, config) as core:
            for space, words in [*memories(program), (Space.ACT, to_host(act.view(np.uint8), config.word))]:
                core.write(space, 0, words)
            core.write(Space.CONTROL, Control.LOAD_COUNT, [len(program.code.get(unit, ())) for unit in UNITS])
            core.write(Space.CONTROL, Control.BUDGET, program.cycles + 200)
            core.waves(file := Path(scratch) / "waves.vcd", program.cycles + 100)
            core.start()
            core.run(program.cycles + 100)
            memory = core.act(np.arange(config.act_words)).tobytes()
            assert core.control(Control.CYCLES) == [program.cycles], name
            core.stop_waves()
            found[name] = {**waveforms(file), "activations, at the end": _digest(memory)}
        print(name, len(found[name]), "signals", flush=True)
    return found


def waveforms(file: Path) -> dict[str, str]:
    """By hierarchical name, the digest of a signal's values."""
    scope: list[str] = []
    names: dict[str, list[str]] = {}
    changes: dict[str, Any] = {}
    time = b""
    with file.open("rb") as lines:
        for raw in lines:
            line = raw.strip()
            if line.startswith(b"$scope"):
                scope.append(line.split()[2].decode())
            elif line.startswith(b"$upscope"):
                scope.pop()
            elif match := VARIABLE.match(line.decode()):
                names.setdefault(match[1], []).append(" ".join([*scope, match[2]]))
                changes.setdefault(match[1], hashlib.sha256())
            elif line.startswith(b"#"):
                time = line
            elif line[:1] in b"01b" and line:
                value, identity = line.split() if line[:1] == b"b" else (line[:1], line[1:])
                changes[identity.decode()].update(time + b" " + value)
    return {name: changes[key].hexdigest()[:12] for key, called in names.items() for name in called}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each thing that is not the same."""
    found = []
    for section in ("designs", "synthesized"):
        for name in sorted(before[section].keys() | after[section].keys()):
            one, other = before[section].get(name), after[section].get(name)
            if one is None or other is None:
                found.append(f"{section} {name}: in one of the two only")
                continue
            for what in one:
                if one[what] != other[what]:
                    found.append(f"{section} {name}: {what} {_changed(one[what], other[what])}")
    for name in sorted(before["traces"].keys() | after["traces"].keys()):
        found += _compare_traces(name, before["traces"].get(name, {}), after["traces"].get(name, {}))
    return found


def _compare_traces(name: str, before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Waveforms that only one of the two shows. A name alone says little: Amaranth numbers equal names of a module."""
    same = sum(after.get(signal) == waveform for signal, waveform in before.items())
    print(f"{name}: {len(before)} signals before, {len(after)} after, {same} with name and waveform in both")
    found = []
    for one, other, which in ((before, after, "before"), (after, before, "after")):
        shown = set(other.values())
        found += [f"{name}: {signal} {which} only" for signal in sorted(one) if one[signal] not in shown]
    return found


def _changed(before: Any, after: Any) -> str:
    if not isinstance(before, dict):
        return f"{before} -> {after}"
    names = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return ", ".join(f"{name} {before.get(name, 0)} -> {after.get(name, 0)}" for name in names)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def main() -> int:
    """Exit status: 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("--configs", nargs="*", default=[*gate_store.CONFIGS], help="default: all of the digest gate")
    write.add_argument("--synth", nargs="*", default=[], help="configurations whose core is mapped to its device")
    write.add_argument("--no-traces", action="store_true")
    both = commands.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        lines = differences(json.loads(options.before.read_text()), json.loads(options.after.read_text()))
        print(*lines, f"{len(lines)} differences", sep="\n")
        return int(bool(lines))
    found: dict[str, Any] = {"designs": {}, "synthesized": {}, "traces": {}}
    for name in options.configs:
        found["designs"][name] = cells(name)
        print(name, sum(found["designs"][name]["cells"].values()), "cells", flush=True)
    for name in options.synth:
        mapped = synthesize_netlist(Core(gate_store.CONFIGS[name]), device=gate_store.DEVICES.get(name, "")).cells
        found["synthesized"][name] = {"cells": dict(Counter(mapped))}
        print(name, mapped, flush=True)
    if not options.no_traces:
        found["traces"] = traces()
    options.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
