"""`variants`: the graphs that a scheduler may choose from for a model."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..program.variant import Variant
from .dead_channel_elimination import eliminate_dead_channels
from .im2col import WINDOWS, as_im2col
from .packed_inputs import packed_inputs

T = TypeVar("T")


def choose(graph: Graph, config: HwConfig, patches: bool | None, way: Callable[[list[list[Variant]]], T]) -> T:
    """`way` of the graph's variants; if `patches` is False, of those without, as long as that raises no error."""
    if patches is False:
        with suppress(DoesNotFitError, UnsupportedError):
            return way(variants(graph, config, patches=False))
    return way(variants(graph, config))


def variants(graph: Graph, config: HwConfig, *, patches: bool = True) -> list[list[Variant]]:
    """In groups, of which one each need be tried: the model; less its constant channels; and with inputs as patches.

    Later ones build on earlier ones. A rewrite that finds nothing to do adds no variant. Patches of the whole window
    are the fastest; parts of it need less memory. Without `patches` inputs are kept as they are.
    """
    base = Variant(graph)
    found = [[base]]
    reduced = eliminate_dead_channels(graph)
    if reduced is not None:
        base = reduced
        found.append([base])
    packed = packed_inputs(base.graph, config)
    unfolded = [as_im2col(base.graph, axes) for axes in WINDOWS] if patches else []
    if packed or unfolded:
        found.append([Variant(each.graph, {**base.kept, **each.kept}) for each in (*packed, *unfolded) if each])
    return found
