"""Lowering of what the array computes: convolutions, unless the depthwise unit takes fewer cycles, and copied parts."""

from collections.abc import Callable

from ..ir.graph import Concat, Conv
from .accumulators import cycles_alone
from .array_mapping import concat_columns, conv_columns, conv_scales
from .array_task import Geometry, array_tasks, coarsest, geometry
from .certificate import certify
from .constant_memories import ConstantMemories
from .depthwise_task import depthwise_lanes, depthwise_tasks, possible
from .lowering_context import LoweringContext
from .task import MakeTasks


def lower_concat(op: Concat, context: LoweringContext) -> MakeTasks:
    """The tasks that copy the parts of a concatenation which do not lie in place."""
    columns = concat_columns(op, context.graph, context.aliases.copied, context.images, context.config)
    g = Geometry(op.name, context.graph.tensors[op.output])
    return lambda tiling: array_tasks(g, columns, tiling, context.config)


def lower_conv(op: Conv, context: LoweringContext) -> MakeTasks:
    """A convolution on the array, or on the depthwise unit if that takes fewer cycles, or if the array has no room
    for its weights; `UnsupportedError` E4301 if its sums may not fit, E4303 if a scale cannot be proved."""
    graph, config = context.graph, context.config
    x = graph.tensors[op.inputs[0]]
    sums = certify(op, x.zero_point, context.ranges[x.name])
    g, channels = geometry(op, graph), conv_scales(op, graph, sums)

    def on_array(images: ConstantMemories) -> MakeTasks:
        columns = conv_columns(op, graph, sums, channels, images, config)
        return lambda tiling: array_tasks(g, columns, tiling, config)

    def on_depthwise(images: ConstantMemories) -> MakeTasks:
        lanes = depthwise_lanes(op, graph, channels, images, config)
        return lambda tiling: depthwise_tasks(g, lanes, tiling, config)

    if not possible(op, graph, config) or not sums.fits(len(op.weight), config.sum_bits):
        return on_array(context.images)
    if not context.use.fewest_cycles_unit:
        return on_depthwise(context.images)

    def cycles(way: Callable[[ConstantMemories], MakeTasks]) -> tuple[bool, int]:
        """Of what has room for its weights first."""
        images = ConstantMemories(config)
        taken = cycles_alone(way(images)(coarsest(g.y, config)), config)
        return images.weight_words > config.weight_depth, taken

    return min((on_depthwise, on_array), key=cycles)(context.images)
