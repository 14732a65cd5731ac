"""`specification`: what the scheduler knows of each operation. All else of it is its class (`onnxhw.ir.operation`)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..errors import assert_never
from ..ir.graph import Add, AveragePool, Concat, Conv, Copy, MatMul, MaxPool, Mul, Op, Reshape, Table
from .array_lowering import lower_concat, lower_conv
from .copy_task import lower_copy
from .lowering_context import LoweringContext
from .matmul_task import lower_matmul
from .task import MakeTasks
from .vector_task import lower_add, lower_average_pool, lower_max_pool, lower_mul, lower_table


@dataclass(frozen=True)
class Specification:
    """How an operation becomes tasks.

    `on_array`: its sums lie in accumulators, so its tiles must fit them, and it waits for weights. `follows_blocks`:
    where the depthwise unit makes its operand, it takes each block as it comes.
    """

    lower: Callable[[LoweringContext], MakeTasks]
    on_array: bool = False
    follows_blocks: bool = False


def specification(op: Op) -> Specification:
    """The row of an operation."""
    match op:
        case Conv():
            return Specification(partial(lower_conv, op), on_array=True)
        case Concat():
            return Specification(partial(lower_concat, op), on_array=True)
        case Reshape():
            return Specification(lambda context: lambda tiling: [])
        case Copy():
            return Specification(partial(lower_copy, op))
        case MatMul():
            return Specification(partial(lower_matmul, op))
        case Add():
            return Specification(partial(lower_add, op))
        case Mul():
            return Specification(partial(lower_mul, op))
        case Table():
            return Specification(partial(lower_table, op))
        case MaxPool():
            return Specification(partial(lower_max_pool, op))
        case AveragePool():
            return Specification(partial(lower_average_pool, op), follows_blocks=True)
        case _:
            assert_never(op)
