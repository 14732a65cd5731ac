"""Every operation of a graph with its constants found: weights, parameters and tables in their images."""

from dataclasses import dataclass, field, replace

from ..config import HwConfig
from ..errors import InternalError, UnsupportedError
from ..fixed import NotProvable
from ..ir.graph import Graph, Op
from ..isa.instructions import Ordered
from .aliases import Aliases, find_aliases
from .alloc import NOTHING, Needs, Occupied
from .constant_memories import ConstantMemories
from .heuristics import ALL, Heuristics
from .lowering_context import LoweringContext
from .operations import specification
from .refusals import TooLargeError, combined
from .task import MakeTasks, TileTask, Tiling

CALIBRATE = (
    "the ratio is input scale / output scale: calibrate again, or give the operands and the result "
    "scales that are nearer to each other"
)
"""What to do about constants that cannot be proved."""


@dataclass(frozen=True)
class LoweredGraph:
    """A graph ready to be cut into tasks: `ops` gives the tasks of each operation for a tiling, by name."""

    graph: Graph
    config: HwConfig
    aliases: Aliases
    images: ConstantMemories
    ops: dict[str, MakeTasks]
    use: Heuristics = ALL
    occupied: Occupied = NOTHING
    known: dict[tuple[str, Tiling], list[TileTask]] = field(default_factory=dict)
    begun: dict[tuple[object, ...], tuple[list[TileTask], Needs]] = field(default_factory=dict)
    """What the search has begun with last."""

    def beside(self, occupied: Occupied) -> "LoweredGraph":
        """The same beside what is in activation memory; nothing that was found is for another memory."""
        aliases = self.aliases.with_planes(occupied.planes, self.graph, self.config)
        return replace(self, aliases=aliases, occupied=occupied, begun={})

    def tasks(self, op: str, tiling: Tiling) -> list[TileTask]:
        """The tasks of an operation, computed once per tiling."""
        if (op, tiling) not in self.known:
            self.known[op, tiling] = self.ops[op](tiling)
        return self.known[op, tiling]


def lower(graph: Graph, config: HwConfig, use: Heuristics = ALL, occupied: Occupied = NOTHING) -> LoweredGraph:
    """Lower all operations; `UnmappedError` E4300 lists every operation that cannot be mapped."""
    aliases = find_aliases(graph, config)
    images = ConstantMemories(config)
    context = LoweringContext(graph, config, aliases, graph.ranges(), images, use)
    ops: dict[str, MakeTasks] = {}
    blockers: list[UnsupportedError] = []

    for op in graph.ops:
        try:
            ops[op.name] = _lowered(op, context)
            _check_fields(op, ops[op.name](Tiling((0, graph.tensors[op.output].height))), config)
        except UnsupportedError as error:
            error.operation = op.name
            blockers.append(error)
    if blockers:
        raise combined(blockers)
    return LoweredGraph(graph, config, aliases, images, ops, use).beside(occupied)


def _lowered(op: Op, context: LoweringContext) -> MakeTasks:
    """`UnsupportedError` E4304 if no constant can be proved equal to the definition."""
    try:
        return specification(op).lower(context)
    except NotProvable as error:
        raise UnsupportedError("E4304", str(error), where=op.where, hint=CALIBRATE) from error


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
                        if spec.base or spec.name in FROM_TILING:
                            continue
                        field = f"{instruction.UNIT}.{spec.name}"
                        raise TooLargeError(
                            "E4307",
                            f"{spec.doc} is {value}, more than the {spec.bits} bits of {field} hold",
                            "E5107",
                            where=op.where,
                        ) from None
