"""The typed integer graph: what a model means to the hardware, in integers.

Every tensor here is int8, rank 4, batch 1: ``(1, C, H, W)``. A matrix ``[1, K]`` is ``(1, K, 1, 1)``;
uint8 tensors are shifted by 128 when the graph is made. Operations are listed in topological order and
each names its operands by tensor name. The host's part (quantize at the inputs, dequantize and
softmax at the outputs) is described by `Port`.
"""

from dataclasses import dataclass
from typing import Any

from ..fixed import INT8_MAX, INT8_MIN
from .operation import Array8, Interval, Tensor
from .ops.conv import Conv
from .ops.elementwise import Add, Mul, Table
from .ops.matmul import MatMul
from .ops.movement import Concat, Copy, Piece, Reshape
from .ops.pool import AveragePool, MaxPool, Pool

Op = Conv | Add | Mul | MatMul | MaxPool | AveragePool | Table | Concat | Reshape | Copy
"""All operations. Code that tells one from another ends in `assert_never`: mypy finds what a new one needs."""

__all__ = [
    "Add", "Array8", "AveragePool", "Concat", "Conv", "Copy", "Graph", "MatMul", "MaxPool", "Mul", "Op", "Piece",
    "Pool", "Port", "Reshape", "Table", "Tensor",
]  # fmt: skip


@dataclass(frozen=True)
class Port:
    """A model input or output as its user sees it, and the host steps between it and the hardware.

    `steps` are ONNX node descriptions executed on the host by `onnxhw.golden.host`, in order: for an input
    from the model's input to the int8 tensor, for an output from the int8 tensor to the model's output.
    Each is a dict ``{"op": ..., "name": ..., attributes...}`` of JSON values.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    tensor: str
    steps: tuple[dict[str, Any], ...] = ()


@dataclass
class Graph:
    """A model: tensors by name, operations in order, inputs and outputs."""

    name: str
    tensors: dict[str, Tensor]
    ops: list[Op]
    inputs: list[Port]
    outputs: list[Port]

    def operands(self, op: Op) -> list[Tensor]:
        """The tensors that an operation reads."""
        return [self.tensors[name] for name in op.inputs]

    def ranges(self) -> dict[str, Interval]:
        """Smallest and largest value that every tensor can have, by name, whatever the inputs."""
        ranges: dict[str, Interval] = {port.tensor: (INT8_MIN, INT8_MAX) for port in self.inputs}
        for op in self.ops:
            ranges[op.output] = op.range([ranges[name] for name in op.inputs])
        return ranges

    def macs(self) -> int:
        """Multiply-accumulates of all operations."""
        return sum(self.macs_of(op) for op in self.ops)

    def macs_of(self, op: Op) -> int:
        """Multiply-accumulates of a convolution, padding included, or of a product of activations; of others 0."""
        return op.macs(self.operands(op), self.tensors[op.output])
