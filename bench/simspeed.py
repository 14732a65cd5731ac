"""How fast is the compiled simulation? Builds the 16x16 core, or a preset's, afresh and runs it busy.

    python bench/simspeed.py [--rows 16] [--cols 16] [--preset NAME] [--cycles 400000] [--json]

Prints the seconds of the first build (wall, and CPU of all processes), of opening it again from the cache, and
clock cycles per second of wall and CPU time while the array streams random data. On a loaded machine the CPU figures
are the ones to compare.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time

import numpy as np

from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl.core_model import CoreModel, core_library
from onnxhw.engines.run_setup import program_writes
from onnxhw.fixed import Scale
from onnxhw.isa import Array, Load, Vector, VectorOp
from onnxhw.isa.memory import Control, Space
from onnxhw.isa.timeline import timeline
from onnxhw.presets import PRESETS
from onnxhw.program import DeviceProgram, to_host


def busy_program(config: HwConfig, cycles: int) -> DeviceProgram:
    """Array instructions of about `cycles` cycles with drains beside them."""
    pixels, taps = 16 * 16, 64
    rounds = max(1, cycles // (pixels * taps))
    code: dict[str, list] = {"load": [], "array": [], "vector": []}
    for n in range(rounds):
        bank = n & 1
        code["load"].append(Load(base=0, tiles=taps))
        code["array"].append(Array(
            after_vector=max(0, n - 1), kh_n=taps, oh_n=16, ow_n=16, a_oh=16, a_ow=1, ih0=0, iw0=0, in_h=4096,
            in_w=4096, acc_bank=bank,
        ))  # fmt: skip
        code["vector"].append(Vector(
            after_array=n + 1, op=VectorOp.DRAIN, oh_n=16, ow_n=16, acc_bank=bank, groups=config.col_groups,
            o_base=2 * config.act_depth, o_oh=16, o_ow=1, in_h=4096, in_w=4096,
        ))  # fmt: skip
    random = np.random.default_rng(0)
    weights = random.integers(0, 256, (taps * config.tile_words, config.weight_word), np.uint8)
    params = np.full((1, config.lanes), Scale(1 << 23, 36).pack(), np.uint64)
    tables = np.zeros((0, 256), np.int8)
    cycles = timeline(config, code).cycles
    return DeviceProgram(config, "busy", code, weights, params, tables, {}, [], [], [], cycles, 0)


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure(config: HwConfig, cycles: int, say) -> dict[str, object]:
    """The record that is printed."""
    with tempfile.TemporaryDirectory(prefix="onnxhw-simspeed-") as scratch:
        os.environ["ONNXHW_CACHE"] = scratch
        before = cpu()
        library = core_library(config, progress=say)
        build_cpu = cpu() - before
        again = core_library(config)
        assert again.cached
        assert not library.cached
        program = busy_program(config, cycles)
        with CoreModel(again.path, config) as core:
            random = np.random.default_rng(1)
            image = random.integers(0, 256, (config.act_words, config.word), np.uint8)
            core.write(Space.ACT, 0, to_host(image, config.word))
            for space, address, words in program_writes(program):
                core.write(space, address, words)
            core.start()
            first, start, cpu_start = core.cycles, time.perf_counter(), time.process_time()
            core.run(2 * program.cycles + 1024)
            seconds, cpu_seconds, ran = (
                time.perf_counter() - start,
                time.process_time() - cpu_start,
                core.cycles - first,
            )
            counted = core.control(Control.CYCLES)[0]
    if counted != program.cycles:
        sys.exit(f"the run took {counted} cycles, {program.cycles} predicted")
    return {
        "core": f"{config.name}, {config.rows}x{config.cols}",
        "build_seconds": round(library.seconds, 1), "build_cpu_seconds": round(build_cpu, 1),
        "cached_seconds": round(again.seconds, 2), "cycles": ran, "cycles_per_second": round(ran / seconds),
        "cycles_per_cpu_second": round(ran / cpu_seconds),
        "processors": os.cpu_count(), "load_average": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Build time and speed of the compiled simulation.")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--cols", type=int, default=16)
    parser.add_argument("--preset", choices=sorted(PRESETS), help="this configuration, instead of rows and columns")
    parser.add_argument("--cycles", type=int, default=400_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    config = PRESETS[args.preset] if args.preset else HwConfig(
        "simspeed", rows=args.rows, cols=args.cols, word=max(16, args.rows), lanes=8, load_rows=2, act_depth=2048,
        weight_depth=4096, requant_dsps=0,
    )  # fmt: skip
    record = measure(config, args.cycles, lambda line: print(line, file=sys.stderr))
    if args.json:
        print(json.dumps(record))
    else:
        print("\n".join(f"{name:24} {value}" for name, value in record.items()))


if __name__ == "__main__":
    main()
