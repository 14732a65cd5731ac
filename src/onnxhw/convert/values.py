"""What the converter knows about an ONNX value: seven kinds, one class each.

    Const       a known array
    QuantConst  the dequantized form of a known integer array
    GraphInput         a model input or the result of a host node, and the host steps since
    QuantizedView        an IR tensor, seen through moves (Reshape, Transpose) and elementwise functions
    Unquantized     the exact real result of an operation that waits for its QuantizeLinear
    HostValue      a value computed on the host from an IR tensor (after a Softmax, say)
    Unknown     a value that has no static shape, or is no tensor: host only

Shapes are the ONNX shapes, batch 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..ir.graph import Array8, Tensor
from ..ir.steps import apply
from ..onnxmodel.shapes import Shape
from .blockers import BlockedError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Array = npt.NDArray[Any]
Step = dict[str, Any]
EVERY = np.arange(-128, 128).astype(np.int8)
"""All values of an IR tensor."""


@dataclass(frozen=True)
class Const:
    """A known array: an initializer or what was folded from them."""

    array: npt.NDArray[Any]

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.array.shape


@dataclass(frozen=True)
class QuantConst:
    """``(q - zero_point) * scale``; scale and zero point broadcast along `axis`, or are scalars (axis None).

    `q` is not to be computed with as it is, but for int8 that stays int8.
    """

    q: Ints | Array8
    scale: Floats
    zero_point: Ints
    axis: int | None

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.q.shape

    def along(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Scale or zero point reshaped so that it broadcasts against `q`."""
        if self.axis is None:
            return values.reshape(())
        return values.reshape([-1 if axis == self.axis else 1 for axis in range(self.q.ndim)])

    def centred(self) -> Ints:
        """``q - zero_point``."""
        return np.asarray(self.q.astype(np.int64) - self.along(self.zero_point))

    def real(self) -> Floats:
        """The float32 values, as DequantizeLinear gives them."""
        return np.asarray(self.centred().astype(np.float32) * self.along(self.scale), np.float32)


@dataclass(frozen=True)
class AxisMoves:
    """Reshape and Transpose steps from an IR tensor's ``(1, C, H, W)`` to `shape`.

    `index`: which flat element of the IR tensor each element is, or None when the order is unchanged.
    """

    shape: Shape
    steps: tuple[Step, ...] = ()
    index: Ints | None = None

    @classmethod
    def of(cls, tensor_shape: Shape, shape: Shape) -> "AxisMoves":
        """From an IR shape to an ONNX shape of the same elements."""
        return cls(tensor_shape).reshape(shape)

    def reshape(self, shape: Shape, name: str = "") -> "AxisMoves":
        """Followed by a Reshape."""
        if shape == self.shape:
            return self
        if prod(shape) != prod(self.shape):
            raise BlockedError(f"cannot reshape {list(self.shape)} to {list(shape)}")
        index = None if self.index is None else self.index.reshape(shape)
        return AxisMoves(shape, (*self.steps, {"op": "Reshape", "name": name, "shape": list(shape)}), index)

    def transpose(self, perm: tuple[int, ...], name: str = "") -> "AxisMoves":
        """Followed by a Transpose; one that moves only dimensions of size 1 keeps the order."""
        shape = tuple(self.shape[axis] for axis in perm)
        real = [axis for axis in perm if self.shape[axis] > 1]
        index = self.index
        if real != sorted(real) or index is not None:
            before = np.arange(prod(shape)) if index is None else index
            after = before.reshape(self.shape).transpose(perm)
            index = None if np.array_equal(after.ravel(), np.arange(prod(shape))) else after
        return AxisMoves(shape, (*self.steps, {"op": "Transpose", "name": name, "perm": list(perm)}), index)

    def back(self, tensor_shape: Shape) -> tuple[Step, ...]:
        """The steps from `shape` back to the IR tensor's shape."""
        found: list[Step] = []
        shape = tensor_shape
        for step in self.steps:
            if step["op"] == "Reshape":
                found.append({"op": "Reshape", "name": "", "shape": list(shape)})
                shape = tuple(step["shape"])
            else:
                perm = step["perm"]
                found.append({"op": "Transpose", "name": "", "perm": [perm.index(axis) for axis in range(len(perm))]})
                shape = tuple(shape[axis] for axis in perm)
        return tuple(found[::-1])

    def same(self, other: "AxisMoves") -> bool:
        """Do both put the same element of their tensors in the same place?"""
        if self.shape != other.shape or (self.index is None) != (other.index is None):
            return False
        return self.index is None or other.index is None or np.array_equal(self.index, other.index)


@dataclass(frozen=True)
class GraphInput:
    """A model input, or a host node's result, after some host steps."""

    port: str
    port_shape: Shape
    dtype: str
    shape: Shape
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class QuantizedView:
    """`tensor` after `functions` (elementwise, first the DequantizeLinear if real) and `moves`.

    Integer if there are no functions; `unsigned` if the model's integers are 128 higher.
    """

    tensor: Tensor
    moves: AxisMoves
    functions: tuple[Step, ...] = ()
    unsigned: bool = False

    @property
    def shape(self) -> Shape:
        """The ONNX shape."""
        return self.moves.shape

    @property
    def integer(self) -> bool:
        """Are these the quantized integers themselves?"""
        return not self.functions

    @property
    def plain(self) -> bool:
        """Is this exactly the dequantized tensor?"""
        return len(self.functions) == 1

    def then(self, step: Step) -> "QuantizedView":
        """Followed by an elementwise function."""
        return QuantizedView(self.tensor, self.moves, (*self.functions, step), self.unsigned)

    def reals(self) -> Array:
        """What its elements are for each int8 value of the tensor."""
        with np.errstate(all="ignore"):
            return apply(self.functions, EVERY)

    def steps(self) -> tuple[Step, ...]:
        """All host steps from the IR tensor to this value."""
        unsigned: tuple[Step, ...] = (
            ({"op": "ToUint8", "name": self.tensor.name},) if self.integer and self.unsigned else ()
        )
        return (*self.functions, *self.moves.steps, *unsigned)


@dataclass(frozen=True)
class HostValue:
    """A value of type `dtype` that the host computes from an IR tensor by `steps`; `softmax` is the one among them."""

    tensor: Tensor
    shape: Shape
    steps: tuple[Step, ...]
    dtype: str = "float32"
    softmax: str = ""


@dataclass(frozen=True)
class QuantizerTarget:
    """What a QuantizeLinear asks of a pending operation: the result's name, scale, zero point and clamp.

    `formula` is that of another quantizer: from float32 ``[C, N]`` to the result's integers. It never falls along N.
    """

    name: str
    scale: np.float32
    zero_point: int
    lo: int
    hi: int
    nodes: tuple[str, ...]
    formula: Callable[[Floats], Ints] | None = None


class UnquantizedSums(Protocol):
    """Integer sums that wait for their quantizer, to which functions per channel may be applied: `operators.chain`."""

    @property
    def channels(self) -> int:
        """How many sums each pixel has."""

    def then(self, formulas: Iterable[Any]) -> "UnquantizedSums":
        """Followed by more functions."""

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations of the quantized result."""

    def real(self, name: str, value: "Unquantized") -> "HostValue":
        """The real value, computed on the host of sums that leave the hardware as integers."""


@dataclass(frozen=True)
class Unquantized:
    """A real-valued result that becomes an IR operation when it is quantized.

    `finish` adds the operation and returns its result tensor. `clamps` are Relu and Clip steps in order.
    `with_bias` gives the same operation with a constant per channel added, where that is possible; `channels`
    is how many there are. `chain` is there if sums wait, to which functions per channel may be applied before the
    quantizer; `chained` if some are.
    """

    finish: Callable[[QuantizerTarget], Tensor]
    moves: AxisMoves
    nodes: tuple[str, ...]
    clamps: tuple[Step, ...] = ()
    with_bias: Callable[["Const | QuantConst"], "Unquantized"] | None = field(default=None)
    channels: int = 0
    chain: UnquantizedSums | None = None
    chained: bool = False

    @property
    def shape(self) -> Shape:
        """The ONNX shape."""
        return self.moves.shape


@dataclass(frozen=True)
class Unknown:
    """A value without a static shape, or of another type than a tensor."""

    shape: Shape | None


Value = Const | QuantConst | GraphInput | QuantizedView | HostValue | Unquantized | Unknown


def form(shape: Shape) -> tuple[int, int, int, int]:
    """The IR shape of an ONNX shape: ``[1, K]`` is (1, K, 1, 1), ``[1, C, L]`` is (1, C, 1, L)."""
    if not shape:
        return (1, 1, 1, 1)
    if shape[0] != 1 and len(shape) > 1:
        raise BlockedError(
            f"the first dimension of {list(shape)} must be the batch, 1", "export the model with batch 1"
        )
    if len(shape) > 4:
        what = f"a tensor of rank {len(shape)} has no place in (1, C, H, W)"
        raise BlockedError(what, "use at most two spatial dimensions")
    channels, *spatial = shape if len(shape) == 1 else shape[1:]
    height, width = (1, 1, *spatial)[-2:]
    return (1, channels, height, width)
