"""PRelu: one slope is a LeakyRelu; a slope per channel is a sum of two halves, of which one is always zero.

positive   Q(max(x, 0))                     table onto the result's grid
negative   Q(slope * min(x, 0))             table on the input's grid, then a proved factor per channel
result     positive + negative              Add with unit ratios: exact
"""

from dataclasses import replace
from functools import partial

import numpy as np

from ... import fixed
from ...ir.graph import Add, Tensor
from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..dialects.qdq import enter_table
from ..values import Const, Floats, QuantConst, QuantizerTarget, Step, Unquantized, Value
from .operands import plain
from .perchannel import INTEGERS, ChannelLine, channelwise, laid_per_channel
from .unary import function


def prelu(context: Context, node: Node) -> Value:
    """PRelu with one slope for all elements, or one for each channel."""
    slope = context.required(node, 1)
    if not isinstance(slope, (Const, QuantConst)):
        raise BlockedError("its slope is not constant")
    real = slope.real() if isinstance(slope, QuantConst) else slope.array
    if real.dtype != np.float32 or not real.size or not np.isfinite(real).all():
        raise BlockedError("its slopes are not finite float32 numbers")
    if real.min() == real.max():
        step: Step = {"op": "LeakyRelu", "name": node.label, "alpha": float(real.ravel()[0])}
        return function(context, context.required(node, 0), step)
    x, slopes = laid_per_channel(context, real, plain(context, node, 0))
    if slopes is None:
        raise BlockedError(
            f"slopes of shape {list(real.shape)} differ between pixels", "use one slope for each channel, or for all"
        )
    finish = partial(halves, context, node.label, x.tensor, np.asarray(slopes, np.float32))
    return Unquantized(finish, x.moves, (node.label,))


def halves(context: Context, name: str, x: Tensor, slopes: Floats, result: QuantizerTarget) -> Tensor:
    """Add the operations of a PRelu with the slopes ``[C]``, whose result's scale is known now."""
    grid = float(result.scale), result.zero_point
    reals = fixed.dequantize(INTEGERS, np.float32(x.scale), x.zero_point)
    above = fixed.quantize(np.maximum(reals, np.float32(0)), result.scale, result.zero_point)
    positive = enter_table(context, x, above, f"{result.name}.positive", *grid, result.nodes)
    below = np.minimum(INTEGERS, x.zero_point)
    cut = enter_table(context, x, below, f"{result.name}.cut", x.scale, x.zero_point, result.nodes)
    line = ChannelLine(lambda v: v * slopes[:, None], slopes, np.zeros_like(slopes))
    whole = replace(result, name=f"{result.name}.negative", lo=-128, hi=127)
    negative = channelwise(context, name, cut, line, whole)
    names = (positive.name, negative.name)
    return context.put(Add(name, names, result.name, result.nodes, lo=result.lo, hi=result.hi), x.shape, *grid)


HANDLERS: Handlers = {("", "PRelu"): prelu}
