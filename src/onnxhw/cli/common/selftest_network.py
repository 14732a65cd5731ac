"""A small network that uses every unit of the accelerator and every operation of its vector unit."""

import numpy as np

from ...ir.graph import Add, AveragePool, Concat, Conv, Graph, MatMul, MaxPool, Mul, Op, Port, Table, Tensor

SIZE, CHANNELS = 6, 8


def network() -> Graph:
    """Convolutions (dense with stride and padding, depthwise, 1x1), sum, products, table, concatenation and both pools.

    Weights are random numbers of a fixed seed; scales are such that few values saturate.
    """
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, int, int, int]] = {"x": (1, 3, 2 * SIZE, 2 * SIZE)}
    ops: list[Op] = []

    def add(op: Op, channels: int, size: int) -> None:
        ops.append(op)
        shapes[op.output] = (1, channels, size, size)

    def conv(name: str, source: str, shape: tuple[int, int, int, int], size: int, **more: object) -> None:
        weight = random.integers(-127, 128, shape).astype(np.int8)
        bias = random.integers(-500, 500, shape[0]).astype(np.int32)
        multiplier = random.uniform(0.5, 1.5, shape[0]) / (60 * np.sqrt(np.prod(shape[1:])))
        op = Conv(name, (source,), name, weight=weight, bias=bias, multiplier=multiplier.astype(np.float32), **more)  # type: ignore[arg-type]  # fields of Conv
        add(op, shape[0], size)

    c = CHANNELS
    conv("stem", "x", (c, 3, 3, 3), SIZE, strides=(2, 2), pads=(1, 1, 1, 1), lo=0)
    conv("depthwise", "stem", (c, 1, 3, 3), SIZE, pads=(1, 1, 1, 1), groups=c)
    conv("pointwise", "depthwise", (c, c, 1, 1), SIZE)
    add(Add("sum", ("stem", "pointwise"), "sum", ratio_a=0.75, ratio_b=0.6), c, SIZE)
    add(Mul("product", ("sum", "pointwise"), "product", ratio=0.02), c, SIZE)
    add(MatMul("rows", ("sum", "product"), "rows", multiplier=0.006, transposed_b=True), c, SIZE)
    add(Table("table", ("rows",), "table", table=np.arange(127, -129, -1).astype(np.int8)), c, SIZE)
    add(Concat("concat", ("sum", "table"), "concat"), 2 * c, SIZE)
    add(MaxPool("maximum", ("concat",), "maximum", kernel=(2, 2), strides=(2, 2)), 2 * c, SIZE // 2)
    add(AveragePool("average", ("maximum",), "average", kernel=(3, 3), ratio=1.25), 2 * c, 1)
    conv("dense", "average", (10, 2 * c, 1, 1), 1)
    tensors = {name: Tensor(name, shape, 1.0, 0) for name, shape in shapes.items()}
    inputs = [Port("x", shapes["x"], "int8", "x")]
    outputs = [Port(name, shapes[name], "int8", name) for name in ("concat", "dense")]
    return Graph("selftest", tensors, ops, inputs, outputs)
