"""`variants`: the graphs that a scheduler may choose from for a model."""

from ..config import HwConfig
from ..ir.graph import Graph
from ..program.variant import Variant
from .dead_channel_elimination import eliminate_dead_channels
from .packed_inputs import packed_inputs


def variants(graph: Graph, config: HwConfig) -> list[list[Variant]]:
    """In groups, of which one each need be tried: the model; less its constant channels; and with packed inputs.

    Later ones build on earlier ones. A rewrite that finds nothing to do adds no variant.
    """
    base = Variant(graph)
    found = [[base]]
    reduced = eliminate_dead_channels(graph)
    if reduced is not None:
        base = reduced
        found.append([base])
    if packed := packed_inputs(base.graph, config):
        found.append([Variant(each.graph, {**base.storage, **each.storage}) for each in packed])
    return found
