"""Networks larger than the chip: their segments, estimated cycles and bytes of external memory (docs/segments.md).

    python bench/large.py                                    all networks on ulx3s-85f+sdram
    python bench/large.py resnet8 mobilenetv2 --segments     some, with their segments
    python bench/large.py ad --check                         every tensor on random inputs against the golden model
    python bench/large.py --json

The topologies are those of the papers, the weights deterministic random numbers. Nothing of this runs on hardware: a
segment's cycles are exact (the scheduler's draft), transfers follow the contract of `onnxhw.segments.estimate`.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
from heuristics import Net

from onnxhw import segments
from onnxhw.config import preset
from onnxhw.ir.graph import Graph, MaxPool

GOALS = {"ad": 85_000, "resnet8": 340_000, "resnet18": 11_000_000, "mobilenetv1": 5_500_000, "mobilenetv2": 3_300_000}
"""Cycles aimed at, by network."""


class LargeNet(Net):
    """With what only these networks have."""

    def max_pool(self, x: str, size: int) -> str:
        """3 x 3 with stride 2."""
        pads = (1, 1, 1, 1)
        shape = (self.tensors[x].channels, size, size)
        return self._op(MaxPool, (x,), shape, kernel=(3, 3), strides=(2, 2), pads=pads)


def ad() -> Graph:
    """The autoencoder of MLPerf Tiny."""
    net, y = LargeNet(640, 1), "x"
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        y = net.conv(y, width, 1)
    return net.graph("ad", y)


def resnet8() -> Graph:
    """ResNet-8 on 3 x 32 x 32 with 48, 64 and 128 channels."""
    net = LargeNet(3, 32)
    y = net.conv("x", 48)
    for channels, stride in ((48, 1), (64, 2), (128, 2)):
        y = _residual(net, y, channels, stride)
    return net.graph("resnet8", net.conv(net.average(y), 10, 1))


def resnet18() -> Graph:
    """ResNet-18 on 3 x 224 x 224."""
    net = LargeNet(3, 224)
    y = net.max_pool(net.conv("x", 64, 7, 2), 56)
    for channels, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = _residual(net, y, channels, stride)
    return net.graph("resnet18", net.conv(net.average(y), 1000, 1))


def _residual(net: Net, x: str, channels: int, stride: int) -> str:
    """Two convolutions and a shortcut, which is a convolution where sizes change."""
    y = net.conv(net.conv(x, channels, 3, stride), channels)
    same = net.tensors[x].shape == net.tensors[y].shape
    return net.add(x if same else net.conv(x, channels, 1, stride), y)


def mobilenetv1() -> Graph:
    """MobileNetV1-1.0 on 3 x 224 x 224."""
    net = LargeNet(3, 224)
    y = net.conv("x", 32, 3, 2)
    blocks = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
    for channels, stride in blocks:
        y = net.conv(net.depthwise(y, stride=stride), channels, 1)
    return net.graph("mobilenetv1", net.conv(net.average(y), 1000, 1))


def mobilenetv2() -> Graph:
    """MobileNetV2-1.0 on 3 x 224 x 224."""
    net = LargeNet(3, 224)
    y = net.conv(net.depthwise(net.conv("x", 32, 3, 2)), 16, 1)
    stages = ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
    for channels, count, first in stages:
        for n in range(count):
            stride = first if n == 0 else 1
            wide = net.depthwise(net.conv(y, 6 * net.tensors[y].channels, 1), stride=stride)
            narrow = net.conv(wide, channels, 1)
            y = net.add(y, narrow) if n else narrow
    return net.graph("mobilenetv2", net.conv(net.average(net.conv(y, 1280, 1)), 1000, 1))


NETWORKS: dict[str, Callable[[], Graph]] = {
    "ad": ad, "resnet8": resnet8, "resnet18": resnet18, "mobilenetv1": mobilenetv1, "mobilenetv2": mobilenetv2,
}  # fmt: skip
"""By name."""


def measure(name: str, preset_name: str, check: bool) -> tuple[dict[str, Any], segments.Plan, segments.PartCycles]:
    """A network's record, its plan, and the cycles of its parts."""
    graph, config, began = NETWORKS[name](), preset(preset_name), time.process_time()
    cycles = segments.PartCycles(config)
    plan = segments.make_plan(graph, config, cycles)
    found = segments.estimate_cycles(plan, config, cycles)
    record = {
        "network": name, "preset": preset_name, "macs": graph.macs(), "segments": len(plan.segments),
        "kinds": len({segments.kind(each.graph) for each in plan.segments}), "cycles": found.cycles,
        "goal": GOALS[name], "run": found.run, "memory": found.memory, "weight_bytes": found.weight_bytes,
        "activation_bytes": found.activation_bytes, "external_bytes": plan.external_bytes,
        "share": round(found.share, 3), "seconds": round(time.process_time() - began, 1),
    }  # fmt: skip
    if check:
        rng = np.random.default_rng(0)
        inputs = {port.tensor: rng.integers(-128, 128, port.shape).astype(np.int8) for port in graph.inputs}
        record["differences"] = len(segments.differences(graph, plan, inputs))
    return record, plan, cycles


def print_segments(plan: segments.Plan, cycles: segments.PartCycles) -> None:
    """A line per group: how many segments, the largest box, cycles of all runs."""
    for ops, group in groupby(plan.segments, key=lambda each: [part.op for part in each.parts]):
        mine = list(group)
        largest = max((region.box.shape[1:] for each in mine for region in each.outputs), default=())
        runs = sum(cycles(each.graph) for each in mine)
        print(f"  {len(mine):4} x {' '.join(map(str, largest)):>12}  {runs:>10,} cycles  {' '.join(ops)}")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--preset", default="ulx3s-85f+sdram")
    parser.add_argument("--segments", action="store_true", help="print the segments")
    parser.add_argument("--check", action="store_true", help="compare every tensor with the golden model")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in args.networks:
        record, plan, cycles = measure(name, args.preset, args.check)
        if args.json:
            print(json.dumps(record), flush=True)
        else:
            print("  ".join(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
                            for key, value in record.items()), flush=True)  # fmt: skip
        if args.segments:
            print_segments(plan, cycles)


if __name__ == "__main__":
    main()
