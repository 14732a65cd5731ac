"""Runs the testbenches of this folder on Icarus Verilog.

    python sim/run.py                 all of them
    python sim/run.py array core      some
    python sim/run.py --list

Each bench is a cocotb module ``bench_NAME.py``; here stands what it is run on. A failing bench leaves its waveform and
log in ``build/waves/``. Exit status: 0 all passed, 8 a bench failed, 7 a tool is missing.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from onnxhw.config import HwConfig
from onnxhw.engines.cosim.run import Outcome, build, require, simulate
from onnxhw.engines.verilog import to_verilog
from onnxhw.errors import OnnxhwError
from onnxhw.isa.timing import ACT_READ, DRAIN_READ, FETCH_OVERHEAD, LOAD_TO_SHADOW, MULTIPLY, array_pipeline
from onnxhw.isa.units import Unit

HERE = Path(__file__).resolve().parent
WAVES = HERE.parent / "build" / "waves"

ODD = HwConfig(
    "odd", rows=6, cols=3, word=6, lanes=3, load_rows=2, acc_bits=24, act_depth=128, weight_depth=64, acc_depth=64,
    param_depth=64, tables=2, load_ucode=128, array_ucode=128, vector_ucode=128, requant_dsps=0,
)  # fmt: skip
"""A geometry in which nothing is a power of two."""


@dataclass(frozen=True)
class Bench:
    """One component and the module that tests it; `facts` go to the module."""

    name: str
    module: str
    make: Callable[[], Any]
    facts: dict[str, Any] = field(default_factory=dict)
    config: HwConfig = ODD


class VectorBench(wiring.Component):
    """`VectorUnit` with the write ports of its parameter and table memories."""

    def __init__(self, config: HwConfig) -> None:
        from onnxhw.rtl.units.vector import VectorUnit

        self.unit = VectorUnit(config)
        self.inner = {"param": self.unit.params, "table": self.unit.tables}
        members = dict(self.unit.signature.members.items())
        for prefix, names in self.wires.items():
            for name in names:
                member = self.inner[prefix].signature.members[name]
                members[f"{prefix}_{name.removeprefix('w_')}"] = member
        super().__init__(members)

    wires = {prefix: ("w_addr", "w_data", "w_en") for prefix in ("param", "table")}

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = self.unit
        for name in self.unit.signature.members:
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.unit, name))
        for prefix, names in self.wires.items():
            for name in names:
                outside = getattr(self, f"{prefix}_{name.removeprefix('w_')}")
                m.d.comb += getattr(self.inner[prefix], name).eq(outside)
        return m


def benches() -> list[Bench]:
    """Every bench."""
    from onnxhw.rtl.cells import BlockRam, Multiplier
    from onnxhw.rtl.core import Core
    from onnxhw.rtl.fetch import Fetcher
    from onnxhw.rtl.requantize import RequantizeLane
    from onnxhw.rtl.systolic import SystolicArray
    from onnxhw.rtl.units.load import LoadUnit

    small = HwConfig("small", rows=4, cols=4, word=4, lanes=2, load_rows=4, acc_bits=22, act_depth=256, weight_depth=64)
    fast = HwConfig("fast", rows=6, cols=3, word=6, lanes=1, load_rows=2, acc_bits=22, inner_product="fast")
    out = [
        Bench(f"multiplier_{a}x{b}", "bench_multiplier", lambda a=a, b=b: Multiplier(a, b),
              {"a_bits": a, "b_bits": b, "latency": MULTIPLY})
        for a, b in ((8, 8), (18, 18), (13, 14))
    ]  # fmt: skip
    out += [
        Bench(f"block_ram_{w}x{d}", "bench_block_ram", lambda w=w, d=d, g=g: BlockRam(width=w, depth=d, granularity=g),
              {"width": w, "depth": d, "granularity": g, "latency": BlockRam.latency})
        for w, d, g in ((32, 64, 8), (48, 100, 8), (20, 512, 20))
    ]  # fmt: skip
    out += [
        Bench(f"requantize_{bits}", "bench_requantize", lambda bits=bits: RequantizeLane(bits, 0),
              {"acc_bits": bits, "latency": RequantizeLane.latency})
        for bits in (24, 32)
    ]  # fmt: skip
    for config in (ODD, small, fast):
        out += [
            Bench(
                f"array_{config.name}",
                "bench_array",
                lambda c=config: SystolicArray(c),
                {"latency": array_pipeline(config)},
                config,
            ),
            Bench(
                f"load_{config.name}",
                "bench_load",
                lambda c=config: LoadUnit(c),
                {"delay": LOAD_TO_SHADOW},
                config,
            ),
            Bench(
                f"vector_{config.name}",
                "bench_vector",
                lambda c=config: VectorBench(c),
                {"act_read": ACT_READ, "drain_read": DRAIN_READ},
                config,
            ),
        ]
    every = replace(small, depthwise=8)  # it has all units
    out += [Bench("fetch", "bench_fetch", lambda: Fetcher(Unit.LOAD, every), {"overhead": FETCH_OVERHEAD})]
    core = HwConfig("core", rows=4, cols=4, word=4, lanes=2, act_depth=1024, weight_depth=4096, acc_bits=24)
    out += [Bench("core", "bench_core", lambda: Core(core), {}, core)]
    return out


def run_tests(
    verilog: str, top: str, module: str, folder: Path, *, environment: Mapping[str, str] | None = None,
    waves: bool = False, seed: int | None = None,
) -> Outcome:  # fmt: skip
    """`require`, `build` and `simulate`."""
    require()
    build(verilog, top, folder, waves=waves)
    return simulate(module, top, folder, environment=environment, waves=waves, seed=seed)


def run(bench: Bench, *, seed: int | None = None) -> Outcome:
    """Run one bench; a failure leaves waveform and log under its name in `WAVES`."""
    component = bench.make()
    flat = {"__".join(map(str, path)): member.flow for path, member, _ in component.signature.flatten(component)}
    facts = {
        **bench.facts,
        "config": bench.config.to_json(),
        "inputs": [name for name, flow in flat.items() if flow == In],
        "outputs": [name for name, flow in flat.items() if flow == Out],
    }
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory(prefix="onnxhw-sim-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        environment = {"ONNXHW_SIM": json.dumps(facts)}
        if bench.module == "bench_core":
            environment["ONNXHW_PROGRAM"] = str(_example(folder, bench.config))
        outcome = run_tests(
            to_verilog(component, name="top"),
            "top",
            bench.module,
            folder,
            environment=environment,
            waves=True,
            seed=seed,
        )
        if outcome.failed:
            WAVES.mkdir(parents=True, exist_ok=True)
            (WAVES / f"{bench.name}.log").write_text(outcome.log)
            if outcome.waves:
                shutil.copyfile(outcome.waves, WAVES / f"{bench.name}.fst")
        return outcome


def _example(folder: Path, config: HwConfig) -> Path:
    """The example network compiled for a configuration."""
    from onnxhw.compiler import compile
    from onnxhw.program import save

    path = folder / "program.ohw"
    save(compile(HERE.parent / "examples" / "digits.onnx", config), path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the testbenches on Icarus Verilog.")
    parser.add_argument("names", nargs="*", help="benches, or the beginning of their names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args(arguments)
    chosen = [bench for bench in benches() if not args.names or bench.name.startswith(tuple(args.names))]
    if args.list:
        print("\n".join(bench.name for bench in chosen))
        return 0
    status = 0
    try:
        for bench in chosen:
            outcome = run(bench, seed=args.seed)
            print(f"{bench.name:24} {outcome.tests - outcome.failed} of {outcome.tests} passed", flush=True)
            if outcome.failed:
                print(f"    waveform and log: {WAVES / bench.name}.*")
                status = 8
    except OnnxhwError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main())
