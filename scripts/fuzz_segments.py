"""Random networks in segments, emulator against golden model: ``python scripts/fuzz_segments.py --count 1000``.

Each network has convolutions, depthwise ones, sums, products, concatenations, pools and repeated pixels in any order,
with branches that meet again, on one of some configurations that are too small for it. It is planned, linked and
proved; every part of every tensor of two inferences must be the golden model's. What differs, or ends as a compiler
bug, is printed with the number that makes the same network again (``--first``), and the exit status is 8. Networks
that have no room are counted. ``--images``: networks whose first operations are convolutions of any window over a few
channels of a larger input, which lies packed.
"""

import argparse
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
from heuristics import Net

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.errors import DoesNotFitError, InternalError, UnsupportedError
from onnxhw.ir.graph import Conv, Copy, Graph, MaxPool, Piece
from onnxhw.ir.windows import window_size
from onnxhw.presets import preset
from onnxhw.sched import check
from onnxhw.segments import PartCycles, Plan, link, make_plan, part_name

CONFIGS = (
    replace(preset("mini+sdram"), name="tiny", act_depth=64, weight_depth=256),
    replace(preset("mini+sdram"), name="more banks", act_banks=8, act_depth=64, weight_depth=512),
    replace(preset("mini+sdram"), name="few weights", act_depth=256, weight_depth=128),
    replace(preset("ulx3s-25f-dense+sdram"), name="dense", act_depth=128, weight_depth=256),
)
"""With and without a depthwise unit, and with room for a few operations at most."""
PIECES = (
    replace(preset("mini+sdram"), name="pieces", act_depth=256, weight_depth=24),
    replace(preset("ulx3s-25f-dense+sdram"), name="dense pieces", act_depth=128, weight_depth=40),
)
"""Without room for the weights of one tile's columns."""
IMAGES = (
    replace(preset("ulx3s-85f+sdram"), name="image", act_depth=128),
    replace(preset("ulx3s-25f-dense+sdram"), name="dense image", act_depth=256),
    replace(preset("mini+sdram"), name="tiny image", act_depth=128),
)
"""Bytes are read from anywhere, or from even ones alone; words of 16, 8 and 4."""
KINDS = ("conv", "conv", "conv", "narrow", "depthwise", "strided", "add", "concat", "concat", "pool", "scale", "repeat")


def network(seed: int) -> Graph:
    """A random network of up to a dozen operations."""
    rng = random.Random(seed)
    net = Net(rng.choice((1, 3, 4, 8, 13)), rng.choice((5, 6, 8, 11, 16)))
    net.random = np.random.default_rng(seed)
    made = ["x"]
    for _ in range(rng.randrange(3, 13)):
        kind, x = rng.choice(KINDS), rng.choice(made[-4:])
        _, channels, height, width = net.tensors[x].shape
        alike = [y for y in made if net.tensors[y].shape == net.tensors[x].shape and y != x]
        as_large = [y for y in made if net.tensors[y].shape[2:] == (height, width)]
        if kind == "conv":
            made.append(net.conv(x, rng.choice((4, 8, 12, 20, 32)), rng.choice((1, 3))))
        elif kind == "narrow":
            made.append(net.conv(x, rng.choice((2, 4, 5)), 1))
        elif kind == "strided" and height > 3:
            made.append(net.conv(x, rng.choice((8, 16)), rng.choice((1, 3)), 2))
        elif kind == "depthwise":
            made.append(net.depthwise(x, 3, rng.choice((1, 1, 2)) if height > 3 else 1))
        elif kind == "add" and alike:
            made.append(net.add(x, rng.choice(alike)))
        elif kind == "concat" and len(as_large) > 1 and channels < 48:
            made.append(net.concat(*rng.sample(as_large, min(len(as_large), rng.choice((2, 2, 3))))))
        elif kind == "pool" and height > 3:
            shape = channels, (height - 2) // 2 + 1, (width - 2) // 2 + 1
            made.append(net._op(MaxPool, (x,), shape, kernel=(2, 2), strides=(2, 2)))
        elif kind == "scale":
            made.append(net.scale(x, net.conv(net.average(x), channels, 1)))
        elif kind == "repeat" and height < 9:
            pieces = tuple(Piece(0, 0, width, 1, height, width, y, z, 2, 2) for y in range(2) for z in range(2))
            made.append(net._op(Copy, (x,), (channels, 2 * height, 2 * width), pieces=pieces))
    if not net.ops:
        made.append(net.conv("x", 8))
    read = {name for op in net.ops for name in op.inputs}
    outputs = [op.output for op in net.ops if op.output not in read]
    if rng.random() < 0.2 and len(made) > 2:
        outputs = list(dict.fromkeys([*outputs, rng.choice(made[1:])]))
    return net.graph(f"network {seed}", *outputs)


def image(seed: int) -> Graph:
    """One or two convolutions of one window over an input of few channels, and another one behind each."""
    rng = random.Random(seed)
    channels, kernel = rng.randrange(1, 6), [rng.randrange(1, 8) for _ in range(2)]
    strides, dilations = ([rng.choice((1, 1, 2, 3)) for _ in range(2)], [rng.choice((1, 1, 1, 2)) for _ in range(2)])
    pads = [rng.randrange(0, max(1, (k - 1) * d)) for _ in range(2) for k, d in zip(kernel, dilations, strict=True)]
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    height, width = (max(size, rng.choice((size, size + 7, 40, 41, 90, 131))) for size in least)
    net, shape = Net(channels, 1), (channels, height, width)
    net.random = np.random.default_rng(seed)
    net.tensors["x"] = replace(net.tensors["x"], shape=(1, *shape))
    rows, cols = (window_size(shape[1 + n], pads[n], pads[n + 2], kernel[n], strides[n], dilations[n]) for n in (0, 1))
    made = []
    for _ in range(rng.choice((1, 1, 2))):
        filters, outputs = (rng.choice((4, 8, 16, 24)) for _ in range(2))
        weight = net.random.integers(-128, 128, (filters, channels, *kernel)).astype(np.int8)
        spread = 7400 * np.sqrt(weight[0].size)
        first = net._op(
            Conv, ("x",), (filters, rows, cols), weight=weight,
            bias=net.random.integers(-int(spread), int(spread), filters).astype(np.int32),
            multiplier=(net.random.uniform(0.5, 1.5, filters) * 60 / spread).astype(np.float32),
            strides=tuple(strides), dilations=tuple(dilations), pads=tuple(pads),
        )  # fmt: skip
        made.append(net.conv(first, 8 if made else outputs, rng.choice((1, 3))))
    return net.graph(f"image {seed}", *made)


def differing(graph: Graph, plan: Plan, config: HwConfig, cycles: PartCycles) -> list[str]:
    """Tensors whose parts are not the golden model's, of two inferences of the linked program."""
    program = link(graph, plan, config, cycles.schedules)
    check(program)
    emulator, found = Emulator(program), []
    for seed in range(2):
        shapes = {port.tensor: port.shape for port in graph.inputs}
        rng = np.random.default_rng(seed)
        x = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}
        wanted, made = golden.run(graph, x), emulator.run(x, trace=True)
        for n, segment in enumerate(plan.segments):
            parts = {part_name(part, n): part for part in segment.parts}
            found += [name for name, part in parts.items() if name in program.tensors
                      and not np.array_equal(made.tensors[name], wanted[part.tensor][part.box.slices])]  # fmt: skip
        found += [name for name, values in made.outputs.items() if not np.array_equal(values, wanted[name])]
    return found


def configuration(seed: int) -> HwConfig:
    """That of a network: of every fifth one the weights come in pieces."""
    return CONFIGS[seed % len(CONFIGS)] if seed % 5 else PIECES[seed // 5 % len(PIECES)]


def main(count: int, first: int, images: bool = False) -> int:
    """Run so many networks, each on its configuration."""
    wrong = refused = segments = 0
    begin = time.monotonic()
    for seed in range(first, first + count):
        config = IMAGES[seed % len(IMAGES)] if images else configuration(seed)
        try:
            graph, cycles = image(seed) if images else network(seed), PartCycles(config)
            plan = make_plan(graph, config, cycles)
            found = differing(graph, plan, config, cycles)
            segments += len(plan.segments)
        except (DoesNotFitError, UnsupportedError):
            refused += 1
            continue
        except InternalError as error:
            found = [error.text()]
        if found:
            wrong += 1
            print(f"{config.name}: --first {seed}: {', '.join(found[:3])}", flush=True)
    seconds = time.monotonic() - begin
    print(f"{count} networks, {segments} segments, {refused} without room, {wrong} wrong, {seconds:.0f} s", flush=True)
    return 8 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--images", action="store_true")
    arguments = parser.parse_args()
    sys.exit(main(arguments.count, arguments.first, arguments.images))
