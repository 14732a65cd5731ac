"""Networks larger than the chip: each as one program, its exact cycles and bytes of external memory (docs/segments.md).

    python bench/large.py                                    all networks on ulx3s-85f+sdram
    python bench/large.py resnet8 mobilenetv2 --segments     some, with their segments
    python bench/large.py ad --check 5                       every tensor of five inputs: emulator against golden model
    python bench/large.py ad --rtl                           two inferences on the RTL with its memory's model, too
    python bench/large.py resnet50 yolov5n --check 1         networks as onnxruntime quantizes them (bench/networks)
    python bench/large.py efficientnet-lite0 --form qop      another of its forms
    python bench/large.py resnet8 --without prefetch         what a technique gives (docs/segments.md)
    python bench/large.py resnet8 --mhz 100                  with the memory's cycles at another clock
    python bench/large.py --forecast                         what `onnxhw check` says, alone
    python bench/large.py --json

The topologies are those of the papers, the weights deterministic random numbers. The first two are integer graphs, the
others ONNX models that onnxruntime's `quantize_static` has written. Cycles are from start to done, the input lies in
external memory already. "resident_bytes" are constants that were loaded with the program and stay on chip, everything
else comes from external memory in each inference. So no inference finds more on chip than another: "cold" (of the first
one after loading) and "warm" cycles are one number, and what differs are "load_bytes" on the line, once. "run" are the
cycles of the segments' runs, each alone, "lost" all others, in which the next one waits for moves. "forecast" is what
`onnxhw check` says, after "forecast_seconds" of the processor. Every program passes the checker. With --rtl the
simulation of the core, its controller and a memory that checks every command runs two whole inferences, the first one
cold; cycles must be equal, of the first one every tensor, of the second the outputs. It makes some 60,000 to 200,000
cycles a second. The exit status is 1 if anything differs.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

import networks
import numpy as np
from arguments import MOST_MHZ, number, whole
from heuristics import Net

from onnxhw import golden, segments
from onnxhw.board import find
from onnxhw.cli.common.interrupts import script_status
from onnxhw.compiler.segmented import SegmentedGraphs
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.errors import UsageError
from onnxhw.ir.graph import Array8, Graph
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.partition import load
from onnxhw.presets import SDRAM
from onnxhw.program.model import DeviceProgram
from onnxhw.program.result import Result
from onnxhw.program.traffic import load_bytes
from onnxhw.sched import check

BOARD = "ulx3s-85f"
"""Whose memory is behind the presets."""
GOALS = {
    "ad": 85_000, "resnet8": 340_000, "resnet18": 11_000_000, "mobilenetv1": 5_500_000, "mobilenetv2": 3_300_000,
    "efficientnet-lite0": 4_200_000, "resnet50": 26_000_000, "yolov5n": 4_500_000,
}  # fmt: skip
"""Cycles aimed at, by network; the others have none."""


def ad() -> Graph:
    """The autoencoder of MLPerf Tiny."""
    net, y = Net(640, 1), "x"
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        y = net.conv(y, width, 1)
    return net.graph("ad", y)


def resnet8() -> Graph:
    """ResNet-8 on 3 x 32 x 32 with 48, 64 and 128 channels."""
    net = Net(3, 32)
    y = net.conv("x", 48)
    for channels, stride in ((48, 1), (64, 2), (128, 2)):
        y = _residual(net, y, channels, stride)
    return net.graph("resnet8", net.conv(net.average(y), 10, 1))


def _residual(net: Net, x: str, channels: int, stride: int) -> str:
    """Two convolutions and a shortcut, which is a convolution where sizes change."""
    y = net.conv(net.conv(x, channels, 3, stride), channels)
    same = net.tensors[x].shape == net.tensors[y].shape
    return net.add(x if same else net.conv(x, channels, 1, stride), y)


NETWORKS: dict[str, Callable[[], Graph]] = {"ad": ad, "resnet8": resnet8}
"""Those that are built as integer graphs, by name; the others are of `networks.FULL`."""


def graph_of(name: str, form: str = "qdq") -> Graph:
    """The integer graph of a network, as it is planned; `form`: of `networks.FORMS`, for those that onnxruntime
    quantizes."""
    if name in NETWORKS:
        return segments.sampled(NETWORKS[name]())
    return segments.sampled(load(networks.quantized(networks.FULL[name](), form).SerializeToString()))


def measure(
    name: str, graph: Graph, config: HwConfig, techniques: segments.Techniques
) -> tuple[dict[str, Any], segments.Plan, DeviceProgram, segments.PartCycles]:
    """A network's record, its plan and program, and the cycles of its parts."""
    began = time.process_time()
    cycles = segments.PartCycles(config)
    plan = segments.make_plan(graph, config, cycles, techniques)
    planned = time.process_time()
    program = segments.link(graph, plan, config, cycles.schedules, techniques)
    ended = time.process_time()
    check(program)
    checked = time.process_time()
    moves = timeline(config, program.code).spans[Unit.MOVE]
    moved = sum(4 * i.runs * i.word_n for i in program.code[Unit.MOVE] if isinstance(i, Move))
    assert config.external is not None
    run = sum(cycles(each) for each in plan.segments)
    record = {
        "network": name, "preset": config.name, "without": without(techniques), "macs": graph.macs(),
        "segments": len(plan.segments),
        "kinds": len({segments.kind(each.graph) for each in plan.segments}), "cycles": program.cycles,
        "cold": program.cycles, "warm": program.cycles, "load_bytes": load_bytes(program),
        "goal": GOALS.get(name), "run": run, "lost": program.cycles - run,
        "moving": sum(span.done - span.issue for span in moves), "moved_bytes": moved,
        "image_bytes": program.external.nbytes,
        "resident_bytes": program.weights.nbytes + program.params.nbytes + program.tables.nbytes,
        "share": round(moved / (program.cycles * config.external.data_bits / 8), 3),
        "plan_seconds": round(planned - began, 1), "link_seconds": round(ended - planned, 1),
        "check_seconds": round(checked - ended, 1),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip
    return record, plan, program, cycles


def forecast(graph: Graph, config: HwConfig) -> dict[str, Any]:
    """What `onnxhw check` says that a graph takes."""
    began = time.process_time()
    found = SegmentedGraphs(config).forecast(graph)
    return {"forecast": found.cycles, "forecast_seconds": round(time.process_time() - began, 1)}


def without(techniques: segments.Techniques) -> str:
    """The names of what is left out."""
    return " ".join(name for name in techniques.names() if not getattr(techniques, name))


def random_inputs(graph: Graph, seed: int) -> dict[str, Array8]:
    """A random sample."""
    rng = np.random.default_rng(seed)
    shapes = {port.tensor: graph.tensors[port.tensor].shape for port in graph.inputs}
    return {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}


def different(graph: Graph, plan: segments.Plan, program: DeviceProgram, samples: int) -> int:
    """Parts of tensors that the emulator makes otherwise than the golden model, over so many random inputs."""
    emulator, found = Emulator(program), 0
    for seed in range(samples):
        inputs = random_inputs(graph, seed)
        found += differing(plan, program, emulator.run(inputs, trace=True), golden.run(graph, inputs))
    return found


def differing(plan: segments.Plan | None, program: DeviceProgram, made: Result, wanted: Mapping[str, Array8]) -> int:
    """Outputs, and with a plan parts of tensors of a traced run, that are not as the golden model's tensors."""
    found = 0
    for n, segment in enumerate(plan.segments if plan else ()):
        for part in segment.parts:
            name = segments.part_name(part, n)
            # A Concat that moves alone make is not in the tensor table; who reads it is compared.
            if name in program.tensors:
                found += not np.array_equal(made.tensors[name], wanted[part.tensor][part.box.slices])
    return found + sum(not np.array_equal(values, wanted[name]) for name, values in made.outputs.items())


def simulated(graph: Graph, plan: segments.Plan, program: DeviceProgram, runs: int) -> dict[str, Any]:
    """The RTL's cycles of one inference after the other on as many random inputs, and what differs from the golden
    model's: of the first one parts of all tensors, of the others outputs."""
    cycles, wrong = [], 0
    with CxxrtlEngine(program.config) as engine:
        for seed in range(runs):
            inputs, first = random_inputs(graph, seed), seed == 0
            wanted, made = golden.run(graph, inputs), engine.run(program, inputs, trace=first)
            cycles.append(made.cycles)
            wrong += differing(plan if first else None, program, made, wanted)
    return {"rtl_cycles": cycles, "rtl_differences": wrong}


def print_segments(plan: segments.Plan, cycles: segments.PartCycles) -> None:
    """A line per group: how many segments, the largest box, cycles of all runs."""
    for ops, group in groupby(plan.segments, key=lambda each: [part.op for part in each.parts]):
        mine = list(group)
        largest = max((region.box.shape[1:] for each in mine for region in each.outputs), default=())
        runs = sum(cycles(each) for each in mine)
        print(f"  {len(mine):4} x {' '.join(map(str, largest)):>12}  {runs:>10,} cycles  {' '.join(ops)}")


def _print(record: Mapping[str, Any], as_json: bool) -> None:
    values = (f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}" for key, value in record.items())
    print(json.dumps(record) if as_json else "  ".join(values), flush=True)


def _configuration(preset: str, mhz: float | None) -> HwConfig:
    """A preset with external memory, at a clock; `UsageError` E2190 if it has none, and those of
    `Board.configuration`."""
    config = find(BOARD).configuration(preset, None if mhz is None else round(mhz * 1e6))
    if config.external is None:
        raise UsageError("E2190", f"{config.name} has no external memory", hint=f"a preset with {SDRAM}")
    return config


def differs(record: Mapping[str, Any]) -> bool:
    """Whether emulator or RTL made something else than the golden model, or the RTL in another number of cycles."""
    cycles = set(record.get("rtl_cycles", ())) - {record["cycles"]}
    return bool(record.get("differences") or record.get("rtl_differences") or cycles)


def main(argv: list[str] | None = None) -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*NETWORKS, *networks.FULL]
    parser.add_argument("networks", nargs="*", default=names, metavar="NETWORK", help=", ".join(names))
    parser.add_argument("--form", choices=networks.FORMS, default="qdq", help="of what onnxruntime quantizes")
    parser.add_argument("--preset", default="ulx3s-85f+sdram")
    parser.add_argument("--mhz", type=number(1, MOST_MHZ),
                        help="the clock, for the cycles of the memory; default: the preset's")  # fmt: skip
    left_out = [name.replace("_", "-") for name in segments.Techniques.names()]
    parser.add_argument("--without", nargs="+", default=[], choices=left_out, help="leave out what makes it fast")
    parser.add_argument("--forecast", action="store_true", help="what `onnxhw check` says, alone")
    parser.add_argument("--segments", action="store_true", help="print the segments")
    parser.add_argument("--check", type=whole(1), default=0, metavar="N",
                        help="compare every tensor of N random inputs")  # fmt: skip
    parser.add_argument("--rtl", type=whole(1), nargs="?", const=2, default=0, metavar="N",
                        help="simulate the RTL, two inferences or N")  # fmt: skip
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    if unknown := set(args.networks) - set(names):
        parser.error(f"no network {min(unknown)!r}; there are {', '.join(names)}")
    techniques = segments.Techniques(**{name.replace("-", "_"): False for name in args.without})
    config, wrong = _configuration(args.preset, args.mhz), False
    for name in args.networks:
        graph = graph_of(name, args.form)
        told = forecast(graph, config)
        if args.forecast:
            _print({"network": name, "preset": config.name, **told}, args.json)
            continue
        record, plan, program, cycles = measure(name, graph, config, techniques)
        record |= told
        if args.check:
            record["differences"] = different(graph, plan, program, args.check)
        if args.rtl:
            record |= simulated(graph, plan, program, args.rtl)
        _print(record, args.json)
        wrong |= differs(record)
        if args.segments:
            print_segments(plan, cycles)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(script_status(main))
