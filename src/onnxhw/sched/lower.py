"""Every operation of a graph with its constants found: weights, parameters and tables in their images."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..config import HwConfig
from ..errors import InternalError, UnsupportedError, assert_never
from ..ir.graph import Add, AveragePool, Concat, Conv, Copy, Graph, MatMul, MaxPool, Mul, Op, Reshape, Table
from ..isa.instructions import Ordered
from .accumulators import cycles_alone
from .aliases import Aliases, find_aliases
from .alloc import Needs
from .array_mapping import concat_columns, conv_columns, conv_scales
from .array_task import array_tasks, geometry
from .certificate import SumBounds, certify
from .constant_memories import ConstantMemories
from .copy_task import lower_copy
from .depthwise_task import depthwise_lanes, depthwise_tasks, possible
from .heuristics import ALL, Heuristics
from .matmul_task import lower_matmul
from .refusals import TooLargeError, UnmappedError
from .task import MakeTasks, TileTask, Tiling
from .tiling import coarsest
from .vector_task import lower_vector


@dataclass(frozen=True)
class LoweredGraph:
    """A graph ready to be cut into tasks: `ops` gives the tasks of each operation for a tiling, by name."""

    graph: Graph
    config: HwConfig
    aliases: Aliases
    images: ConstantMemories
    ops: dict[str, MakeTasks]
    use: Heuristics = ALL
    known: dict[tuple[str, Tiling], list[TileTask]] = field(default_factory=dict)
    begun: dict[tuple[object, ...], tuple[list[TileTask], Needs]] = field(default_factory=dict)
    """What the search has begun with last."""

    def tasks(self, op: str, tiling: Tiling) -> list[TileTask]:
        """The tasks of an operation, computed once per tiling."""
        if (op, tiling) not in self.known:
            self.known[op, tiling] = self.ops[op](tiling)
        return self.known[op, tiling]


def lower(graph: Graph, config: HwConfig, use: Heuristics = ALL) -> LoweredGraph:
    """Lower all operations; `UnmappedError` E4300 lists every operation that cannot be mapped."""
    aliases = find_aliases(graph, config)
    images = ConstantMemories(config)
    ranges = graph.ranges()
    ops: dict[str, MakeTasks] = {}
    blockers: list[UnsupportedError] = []

    def one(op: Op) -> MakeTasks:
        match op:
            case Conv():
                x = graph.tensors[op.inputs[0]]
                sums = certify(op, x.zero_point, ranges[x.name])
                return _conv(op, graph, sums, images, config, use)
            case Concat():
                copies = concat_columns(op, graph, aliases.copied, images, config)
                return lambda tiling: array_tasks(geometry(op, graph), copies, tiling, config)
            case Reshape():
                return lambda tiling: []
            case Copy():
                return lower_copy(op, graph, images, config)
            case MatMul():
                return lower_matmul(op, graph, images, config)
            case Add() | Mul() | Table() | MaxPool() | AveragePool():
                return lower_vector(op, graph, images, config)
            case _:
                assert_never(op)

    for op in graph.ops:
        try:
            ops[op.name] = one(op)
            _check_fields(op, ops[op.name](Tiling((0, graph.tensors[op.output].height))), config)
        except UnsupportedError as error:
            error.operation = op.name
            blockers.append(error)
    if len(blockers) == 1:
        raise blockers[0]
    if blockers:
        raise UnmappedError(blockers)
    return LoweredGraph(graph, config, aliases, images, ops, use)


def _conv(
    op: Conv, graph: Graph, sums: SumBounds, images: ConstantMemories, config: HwConfig, use: Heuristics
) -> MakeTasks:
    """A convolution on the array, or on the depthwise unit where that takes fewer cycles."""
    g, channels = geometry(op, graph), conv_scales(op, graph, sums)

    def on_array(images: ConstantMemories) -> MakeTasks:
        columns = conv_columns(op, graph, sums, channels, images, config)
        return lambda tiling: array_tasks(g, columns, tiling, config)

    def on_depthwise(images: ConstantMemories) -> MakeTasks:
        lanes = depthwise_lanes(op, graph, channels, images, config)
        return lambda tiling: depthwise_tasks(g, lanes, tiling, config)

    if not possible(op, graph, config) or not sums.fits(len(op.weight), config.sum_bits):
        return on_array(images)
    if not use.fewest_cycles_unit:
        return on_depthwise(images)

    def cycles(way: Callable[[ConstantMemories], MakeTasks]) -> int:
        return cycles_alone(way(ConstantMemories(config))(coarsest(op, graph, config)), config)

    return min((on_depthwise, on_array), key=cycles)(images)


FROM_TILING = {"oh_n", "ow_n"}
"""Fields that a finer tiling makes smaller."""


def _check_fields(op: Op, tasks: list[TileTask], config: HwConfig) -> None:
    """`TooLargeError` E4307 if a property of the operation exceeds a field of its instruction."""
    for task in tasks:
        for step in task.vectors:
            instructions: list[Ordered] = [step.vector]
            instructions += [part for stream in task.arrays for part in (stream.load, stream.array)]
            for instruction in instructions:
                for spec in instruction.specs():
                    value = int(getattr(instruction, spec.name))
                    try:
                        spec.pack(value, instruction.UNIT)
                    except InternalError:
                        if spec.name in FROM_TILING or spec.name.endswith("base"):
                            continue
                        field = f"{instruction.UNIT}.{spec.name}"
                        raise TooLargeError(
                            "E4307",
                            f"{spec.doc} is {value}, more than the {spec.bits} bits of {field} hold",
                            "E5107",
                            where=op.where,
                        ) from None
