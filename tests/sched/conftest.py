"""Small random graphs for the scheduler's tests, built by hand; configurations of odd geometry."""

from typing import Any

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.ir.graph import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Graph,
    MatMul,
    MaxPool,
    Mul,
    Op,
    Port,
    Reshape,
    Table,
    Tensor,
)
from onnxhw.ir.windows import window_size

Pads = tuple[int, int, int, int]


class Net:
    """Builds a graph operation by operation; every method returns the name of the tensor it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.inputs: list[Port] = []

    def _tensor(self, shape: tuple[int, int, int], zero: int | None = None, scale: float = 0.05) -> str:
        name = f"t{len(self.tensors)}"
        zero = int(self.random.integers(-128, 128)) if zero is None else zero
        self.tensors[name] = Tensor(name, (1, *shape), scale, zero)
        return name

    def _op(self, kind: type[Op], inputs: tuple[str, ...], output: str, **fields: Any) -> str:
        self.ops.append(kind(f"{kind.__name__.lower()}{len(self.ops)}", inputs, output, **fields))
        return output

    def _clamp(self) -> dict[str, int]:
        low, high = sorted(int(v) for v in self.random.integers(-128, 128, 2))
        return {"lo": low, "hi": high} if self.random.random() < 0.3 and high - low > 60 else {}

    def input(self, channels: int, height: int, width: int) -> str:
        """A graph input."""
        name = self._tensor((channels, height, width))
        self.inputs.append(Port(name, self.tensors[name].shape, "int8", name))
        return name

    def conv(
        self, x: str, channels: int, kernel: tuple[int, int] = (3, 3), strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1), pads: Pads = (0, 0, 0, 0), groups: int = 1,
    ) -> str:  # fmt: skip
        """A convolution with random weights whose outputs use most of the int8 range."""
        _, depth, height, width = self.tensors[x].shape
        weight = self.random.integers(-128, 128, (channels, depth // groups, *kernel)).astype(np.int8)
        rows = window_size(height, pads[0], pads[2], kernel[0], strides[0], dilations[0])
        cols = window_size(width, pads[1], pads[3], kernel[1], strides[1], dilations[1])
        spread = 74.0 * 100 * np.sqrt(weight[0].size)
        multiplier = (self.random.uniform(0.5, 1.5, channels) * 60 / spread).astype(np.float32)
        bias = self.random.integers(-int(spread), int(spread), channels).astype(np.int32)
        y = self._tensor((channels, rows, cols))
        shape = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups}
        return self._op(Conv, (x,), y, weight=weight, bias=bias, multiplier=multiplier, **shape, **self._clamp())

    def add(self, a: str, b: str) -> str:
        """A sum of two tensors of one shape."""
        y = self._tensor(self.tensors[a].shape[1:])
        ratios = self.random.uniform(0.3, 1.2, 2).astype(np.float32)
        return self._op(Add, (a, b), y, ratio_a=float(ratios[0]), ratio_b=float(ratios[1]), **self._clamp())

    def mul(self, a: str, b: str) -> str:
        """A product; one operand may be 1 x 1."""
        y = self._tensor(max(self.tensors[a].shape, self.tensors[b].shape)[1:])
        return self._op(Mul, (a, b), y, ratio=float(np.float32(self.random.uniform(0.005, 0.02))), **self._clamp())

    def mat_mul(self, a: str, b: str, transposed_a: bool = False, transposed_b: bool = False) -> str:
        """A product of matrices, channel by channel."""
        height, depth = self.tensors[a].shape[2:][:: -1 if transposed_a else 1]
        width = self.tensors[b].shape[2 if transposed_b else 3]
        y = self._tensor((self.tensors[a].channels, height, width))
        multiplier = float(np.float32(self.random.uniform(0.5, 1.5) * 60 / (100 * 100 * np.sqrt(depth))))
        fields = {"multiplier": multiplier, "transposed_a": transposed_a, "transposed_b": transposed_b}
        return self._op(MatMul, (a, b), y, **fields, **self._clamp())

    def _pool(self, kind: type[Op], x: str, kernel: tuple[int, int], zero: int | None, **fields: Any) -> str:
        strides, dilations = fields.get("strides", (1, 1)), fields.get("dilations", (1, 1))
        pads = fields.get("pads", (0, 0, 0, 0))
        _, channels, height, width = self.tensors[x].shape
        rows = window_size(height, pads[0], pads[2], kernel[0], strides[0], dilations[0])
        cols = window_size(width, pads[1], pads[3], kernel[1], strides[1], dilations[1])
        y = self._tensor((channels, rows, cols), zero)
        return self._op(kind, (x,), y, kernel=kernel, **fields)

    def max_pool(self, x: str, kernel: tuple[int, int] = (2, 2), **fields: Any) -> str:
        """A maximum pool."""
        return self._pool(MaxPool, x, kernel, self.tensors[x].zero_point, **fields)

    def average_pool(self, x: str, kernel: tuple[int, int] = (2, 2), **fields: Any) -> str:
        """An average pool."""
        ratio = float(np.float32(self.random.uniform(0.5, 1.5)))
        return self._pool(AveragePool, x, kernel, None, ratio=ratio, **fields)

    def global_average(self, x: str) -> str:
        """An average over all pixels."""
        return self.average_pool(x, self.tensors[x].shape[2:])

    def table(self, x: str) -> str:
        """A random function of int8."""
        y = self._tensor(self.tensors[x].shape[1:])
        return self._op(Table, (x,), y, table=self.random.integers(-128, 128, 256).astype(np.int8))

    def concat(self, *parts: str) -> str:
        """A concatenation; the parts' scales and zero points become equal."""
        zero = self.tensors[parts[0]].zero_point
        for part in parts:
            old = self.tensors[part]
            self.tensors[part] = Tensor(part, old.shape, old.scale, zero)
        first = self.tensors[parts[0]].shape
        y = self._tensor((sum(self.tensors[part].channels for part in parts), *first[2:]), zero)
        return self._op(Concat, parts, y)

    def reshape(self, x: str, channels: int, height: int, width: int) -> str:
        """A reshape."""
        return self._op(Reshape, (x,), self._tensor((channels, height, width), self.tensors[x].zero_point))

    def graph(self, *outputs: str) -> Graph:
        """The graph with these outputs."""
        ports = [Port(name, self.tensors[name].shape, "int8", name) for name in outputs]
        return Graph("net", self.tensors, self.ops, self.inputs, ports)

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        """Random inputs with many extremes."""
        found = {}
        for port in self.inputs:
            values = self.random.integers(-128, 128, port.shape)
            values[self.random.random(port.shape) < 0.1] = self.random.choice([-128, 127])
            found[port.tensor] = values.astype(np.int8)
        return found


def config(rows: int, cols: int, word: int, lanes: int, **fields: Any) -> HwConfig:
    """A roomy configuration of that geometry."""
    room = {"act_depth": 1024, "weight_depth": 1 << 15, "param_depth": 4096, "tables": 8, "acc_depth": 64}
    code = {"load_ucode": 4096, "array_ucode": 16384, "vector_ucode": 16384}
    sizes = {**room, **code, **fields}
    return HwConfig(f"{rows}x{cols} W{word} Q{lanes}", rows=rows, cols=cols, word=word, lanes=lanes, **sizes)


CONFIGS = {
    "4x4": config(4, 4, 4, 2),
    "5x3": config(5, 3, 5, 1),
    "8x16": config(8, 16, 8, 8, load_rows=4),
    "4x6": config(4, 6, 8, 2, load_rows=2),
    "3x5": config(3, 5, 8, 4, load_rows=3, act_depth=2048),
    "fast 4x3": config(4, 3, 5, 1, inner_product="fast", acc_bits=24),
    "fast 8x6": config(8, 6, 8, 2, inner_product="fast", load_rows=8),
}
"""Odd geometries: W = R and not, C beyond W, C that Q does not divide, R that does not divide W; two fast ones."""


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def hw(request: pytest.FixtureRequest) -> HwConfig:
    """Each of the odd geometries."""
    found: HwConfig = request.param
    return found


@pytest.fixture
def configure() -> Any:
    """`config`, to build others."""
    return config


@pytest.fixture
def new_net() -> type[Net]:
    """The graph builder."""
    return Net
