"""What each heuristic of the scheduler is worth: cycles with it switched off.

    python bench/heuristics.py      the four networks of MLPerf Tiny and eleven others, on three presets
    python bench/heuristics.py --models vww chain --presets ulx3s-85f --off overlap descent
    python bench/heuristics.py --json | --markdown

The four networks have the reference weights (`../shared/models` beside the checkout, or `ONNXHW_REFERENCE_MODELS`) if
they are there. The eleven others are built here with random weights; each has something that a heuristic is for. A cell
is the cycles with everything on, then the difference that switching one heuristic off makes; "-": no room without it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from onnxhw.bench.measure import model as benchmark
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Add, AveragePool, Concat, Conv, Graph, Mul, Op, Port, Tensor
from onnxhw.ir.windows import window_size
from onnxhw.passes.variants import variants
from onnxhw.presets import preset
from onnxhw.sched import fastest
from onnxhw.sched.heuristics import ALL, NAMES

TASKS = ("ic", "kws", "vww", "ad")
PRESETS = ("ulx3s-85f", "ulx3s-85f-dense", "ulx3s-45f")


class Net:
    """A graph operation by operation; every method returns the name of the tensor that it adds."""

    def __init__(self, channels: int, size: int) -> None:
        self.random = np.random.default_rng(channels * size)
        self.ops: list[Op] = []
        self.tensors = {"x": Tensor("x", (1, channels, size, size), 0.05, 3)}

    def _op(self, kind: type[Op], inputs: tuple[str, ...], shape: tuple[int, int, int], **fields: Any) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = Tensor(name, (1, *shape), 0.05, 3)
        self.ops.append(kind(f"{kind.__name__.lower()}{len(self.ops)}", inputs, name, **fields))
        return name

    def conv(self, x: str, channels: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> str:
        """A convolution padded so that stride 1 keeps the size."""
        _, depth, height, width = self.tensors[x].shape
        weight = self.random.integers(-128, 128, (channels, depth // groups, kernel, kernel)).astype(np.int8)
        spread = 7400 * np.sqrt(weight[0].size)
        pads = (kernel // 2,) * 4
        rows, cols = (window_size(n, pads[0], pads[0], kernel, stride, 1) for n in (height, width))
        return self._op(
            Conv, (x,), (channels, rows, cols), weight=weight,
            bias=self.random.integers(-int(spread), int(spread), channels).astype(np.int32),
            multiplier=(self.random.uniform(0.5, 1.5, channels) * 60 / spread).astype(np.float32),
            strides=(stride, stride), pads=pads, groups=groups,
        )  # fmt: skip

    def depthwise(self, x: str, kernel: int = 3, stride: int = 1) -> str:
        """A depthwise convolution."""
        channels = self.tensors[x].channels
        return self.conv(x, channels, kernel, stride, channels)

    def add(self, a: str, b: str) -> str:
        """A sum."""
        return self._op(Add, (a, b), self.tensors[a].shape[1:], ratio_a=0.75, ratio_b=0.5)

    def scale(self, x: str, by: str) -> str:
        """A product with one number per channel."""
        return self._op(Mul, (x, by), self.tensors[x].shape[1:], ratio=float(np.float32(0.01)))

    def concat(self, *parts: str) -> str:
        """A concatenation."""
        channels = sum(self.tensors[part].channels for part in parts)
        return self._op(Concat, parts, (channels, *self.tensors[parts[0]].shape[2:]))

    def average(self, x: str) -> str:
        """The average of each channel."""
        _, channels, *size = self.tensors[x].shape
        return self._op(AveragePool, (x,), (channels, 1, 1), kernel=tuple(size), ratio=1.0)

    def graph(self, name: str, *outputs: str) -> Graph:
        """The graph with these outputs."""
        ports = [[Port(one, self.tensors[one].shape, "int8", one) for one in names] for names in (("x",), outputs)]
        return Graph(name, self.tensors, self.ops, *ports)


def plain() -> Graph:
    """Convolutions one after the other on shrinking maps."""
    net, y = Net(3, 24), "x"
    for channels, stride in ((16, 1), (16, 2), (32, 1), (32, 2), (48, 1)):
        y = net.conv(y, channels, stride=stride)
    return net.graph("plain", net.conv(net.average(y), 10, 1))


def residual() -> Graph:
    """Residual blocks whose shortcut is a convolution."""
    net = Net(8, 20)
    y = net.conv("x", 16)
    for channels in (16, 32, 48):
        y = net.add(net.conv(net.conv(y, channels, stride=2), channels), net.conv(y, channels, 1, 2))
    return net.graph("residual", net.conv(net.average(y), 10, 1))


def long_shortcut() -> Graph:
    """A long branch before a short one, which are then added."""
    net = Net(16, 12)
    y = "x"
    for _ in range(2):
        long = net.conv(net.conv(net.conv(y, 24), 24), 24)
        y = net.add(long, net.conv(y, 24, 1))
    return net.graph("long_shortcut", y)


def inverted() -> Graph:
    """Inverted bottlenecks: wide, depthwise, narrow, added to their input."""
    net = Net(16, 14)
    y = "x"
    for stride in (1, 1, 2, 1):
        wide = net.depthwise(net.conv(y, 48, 1), stride=stride)
        narrow = net.conv(wide, 16, 1)
        y = net.add(y, narrow) if stride == 1 else narrow
    return net.graph("inverted", net.conv(net.average(y), 10, 1))


def large_kernels() -> Graph:
    """Depthwise convolutions of 5 x 5, every other with stride 2."""
    net = Net(16, 20)
    y = "x"
    for layer in range(4):
        y = net.conv(net.depthwise(y, 5, 1 + layer % 2), 32, 1)
    return net.graph("large_kernels", y)


def strided() -> Graph:
    """Depthwise convolutions of stride 5 and 3."""
    net = Net(16, 56)
    y = net.conv(net.depthwise("x", 3, 5), 32, 1)
    return net.graph("strided", net.conv(net.depthwise(y, 3, 3), 32, 1))


def branches(size: int = 12) -> Graph:
    """Three branches of convolutions that are concatenated, twice."""
    net = Net(16, size)
    y = "x"
    for _ in range(2):
        y = net.concat(net.conv(y, 16, 1), net.conv(net.conv(y, 12, 1), 20), net.conv(net.conv(y, 8, 1), 12, 5))
    return net.graph("branches", y)


def tight() -> Graph:
    """Such branches on the largest maps that `ulx3s-45f` has room for."""
    return replace(branches(26), name="tight")


def gated() -> Graph:
    """Squeeze and excite: channels scaled by a small network of their averages."""
    net = Net(16, 12)
    y = "x"
    for _ in range(2):
        y = net.conv(y, 32)
        y = net.scale(y, net.conv(net.conv(net.average(y), 8, 1), 32, 1))
    return net.graph("gated", y)


def chain() -> Graph:
    """Fully connected layers."""
    net, y = Net(96, 1), "x"
    for channels in (128, 96, 64, 16, 64, 128, 96):
        y = net.conv(y, channels, 1)
    return net.graph("chain", y)


def large_maps() -> Graph:
    """Maps that fill the memory, with an addition far behind its operand."""
    net = Net(16, 32)
    a = net.conv("x", 16)
    y = net.conv(net.depthwise(net.conv(a, 16, stride=2)), 32, 1)
    return net.graph("large_maps", net.add(net.conv(a, 32, stride=2), net.conv(y, 32)))


OTHERS: dict[str, Callable[[], Graph]] = {
    make.__name__: make
    for make in (
        plain, residual, long_shortcut, inverted, large_kernels, strided, branches, tight, gated, chain, large_maps,
    )
}  # fmt: skip


@dataclass
class Row:
    """Cycles of a network on a preset: with all heuristics, and with each switched off; None: it does not fit."""

    model: str
    preset: str
    cycles: int | None
    off: dict[str, int | None] = field(default_factory=dict)


def cycles(graph: Graph, name: str, off: str = "") -> int | None:
    """Cycles of the fastest program, with one heuristic off; None if there is no room."""
    use = replace(ALL, **{off: False}) if off else ALL
    try:
        return fastest(variants(graph, preset(name)), preset(name), use=use).cycles
    except DoesNotFitError:
        return None


def graphs(names: Sequence[str]) -> Iterator[tuple[str, Graph]]:
    """The networks of these names."""
    for name in names:
        yield name, OTHERS[name]() if name in OTHERS else benchmark(name).graph


def rows(names: Sequence[str], presets: Sequence[str], off: Sequence[str]) -> Iterator[Row]:
    """One row per network and preset on which it fits."""
    for model, graph in graphs(names):
        for name in presets:
            row = Row(model, name, cycles(graph, name))
            if row.cycles is not None:
                row.off = {one: cycles(graph, name, one) for one in off}
                yield row


def markdown(found: Sequence[Row], off: Sequence[str]) -> str:
    """The rows as a table: what each heuristic takes away, and in the last line on how many rows."""
    lines = [["network", "preset", "all", *(f"`{name}`" for name in off)]]
    for row in found:
        lines.append([row.model, row.preset, f"{row.cycles:,}", *(_cell(row, name) for name in off)])
    counts = (sum(row.off[name] != row.cycles for row in found) for name in off)
    lines.append(["rows changed", "", f"of {len(found)}", *map(str, counts)])
    lines.insert(1, ["---", "---", *["---:"] * (len(off) + 1)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(row: Row, name: str) -> str:
    value = row.off[name]
    if value is None or row.cycles is None:
        return "-"
    return f"{value - row.cycles:+,}" if value != row.cycles else ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=[*TASKS, *OTHERS], default=[*TASKS, *OTHERS])
    parser.add_argument("--presets", nargs="+", default=list(PRESETS))
    parser.add_argument("--off", nargs="*", choices=NAMES, default=list(NAMES), help="heuristics to switch off")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true")
    output.add_argument("--markdown", action="store_true", help="the table that is printed anyway, without progress")
    arguments = parser.parse_args(argv)
    found: list[Row] = []
    for row in rows(arguments.models, arguments.presets, arguments.off):
        found.append(row)
        if not (arguments.json or arguments.markdown):
            print(row.model, row.preset, row.cycles, flush=True)
    print(json.dumps([asdict(row) for row in found], indent=1) if arguments.json else markdown(found, arguments.off))
    return 0


if __name__ == "__main__":
    sys.exit(main())
