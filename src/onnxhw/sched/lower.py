"""Every operation of a graph with its constants found: weights, parameters and tables in their images."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..config import HwConfig
from ..errors import InternalError, UnsupportedError
from ..ir.graph import Concat, Conv, Copy, Graph, MatMul, Op, Reshape
from ..isa.instructions import Ordered
from .alloc import Needs
from .array_work import array_works, geometry
from .certificate import Sums, certify
from .columns import concat_columns, conv_columns, conv_scales
from .copy_work import lower_copy
from .depthwise import depthwise_lanes, depthwise_works, possible
from .heuristics import ALL, Heuristics
from .images import Images
from .matmul_work import lower_matmul
from .places import Homes, find_homes
from .ranges import value_ranges
from .refusals import TooLargeError, UnmappedError
from .sums import cycles_alone
from .tiling import coarsest
from .vector_work import lower_vector
from .work import Choice, Work

Lowered = Callable[[Choice], list[Work]]


@dataclass(frozen=True)
class Plan:
    """A graph ready to be cut into works: `ops` makes the works of each operation for a choice, by name."""

    graph: Graph
    config: HwConfig
    homes: Homes
    images: Images
    ops: dict[str, Lowered]
    use: Heuristics = ALL
    known: dict[tuple[str, Choice], list[Work]] = field(default_factory=dict)
    begun: dict[tuple[object, ...], tuple[list[Work], Needs]] = field(default_factory=dict)
    """What the search has begun with last."""

    def works(self, op: str, choice: Choice) -> list[Work]:
        """The works of an operation, made once per choice."""
        if (op, choice) not in self.known:
            self.known[op, choice] = self.ops[op](choice)
        return self.known[op, choice]


def lower(graph: Graph, config: HwConfig, use: Heuristics = ALL) -> Plan:
    """Lower all operations; `UnmappedError` E4300 lists every operation that cannot be mapped."""
    homes = find_homes(graph, config)
    images = Images(config)
    ranges = value_ranges(graph)
    lowered: dict[str, Lowered] = {}
    blockers: list[UnsupportedError] = []

    def one(op: Op) -> Lowered:
        if isinstance(op, Conv):
            x = graph.tensors[op.inputs[0]]
            sums = certify(op, x.zero_point, ranges[x.name])
            return _conv(op, graph, sums, images, config, use)
        if isinstance(op, Concat):
            copies = concat_columns(op, graph, homes.copied, images, config)
            return lambda choice: array_works(geometry(op, graph), copies, choice, config)
        if isinstance(op, Reshape):
            return lambda choice: []
        if isinstance(op, Copy):
            return lower_copy(op, graph, images, config)
        if isinstance(op, MatMul):
            return lower_matmul(op, graph, images, config)
        return lower_vector(op, graph, images, config)

    for op in graph.ops:
        try:
            lowered[op.name] = one(op)
            _check_fields(op, lowered[op.name](Choice((0, graph.tensors[op.output].height))), config)
        except UnsupportedError as error:
            blockers.append(error)
    if len(blockers) == 1:
        raise blockers[0]
    if blockers:
        raise UnmappedError(blockers)
    return Plan(graph, config, homes, images, lowered, use)


def _conv(op: Conv, graph: Graph, sums: Sums, images: Images, config: HwConfig, use: Heuristics) -> Lowered:
    """A convolution on the array, or on the depthwise unit where that takes fewer cycles."""
    g, channels = geometry(op, graph), conv_scales(op, graph, sums)

    def on_array(images: Images) -> Lowered:
        columns = conv_columns(op, graph, sums, channels, images, config)
        return lambda choice: array_works(g, columns, choice, config)

    def on_depthwise(images: Images) -> Lowered:
        lanes = depthwise_lanes(op, graph, channels, images, config)
        return lambda choice: depthwise_works(g, lanes, choice, config)

    if not possible(op, graph, config) or not sums.fits(len(op.weight), config.sum_bits):
        return on_array(images)
    if not use.fewest_cycles_unit:
        return on_depthwise(images)

    def cycles(way: Callable[[Images], Lowered]) -> int:
        return cycles_alone(way(Images(config))(coarsest(op, graph, config)), config)

    return min((on_depthwise, on_array), key=cycles)(images)


FROM_TILING = {"oh_n", "ow_n"}
"""Fields that a finer tiling makes smaller."""


def _check_fields(op: Op, works: list[Work], config: HwConfig) -> None:
    """`TooLargeError` E4307 if a property of the operation exceeds a field of its instruction."""
    for work in works:
        for step in work.vectors:
            instructions: list[Ordered] = [step.vector]
            instructions += [part for stream in work.arrays for part in (stream.load, stream.array)]
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
                            where=f"node {op.name!r} ({type(op).__name__})",
                        ) from None
