"""`cycle`: a cycle in a list of nodes, if there is one; `sorter`: what waits for what."""

from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter

Names = Sequence[Collection[str]]


def sorter(makes: Names, uses: Names) -> "TopologicalSorter[int]":
    """The order of nodes, by index, from the value names that each makes and uses."""
    maker = {name: index for index, names in enumerate(makes) for name in names}
    before = {index: {maker[name] for name in names if name in maker} for index, names in enumerate(uses)}
    return TopologicalSorter(before)


def cycle(makes: Names, uses: Names) -> list[int]:
    """Indices of nodes that wait for each other in a circle, in the direction of data; empty if there is none.

    The one that comes first in the list comes first.
    `makes` and `uses` are the value names of each node; linear in their number.
    """
    try:
        sorter(makes, uses).prepare()
    except CycleError as error:
        around: list[int] = error.args[1][1:]  # the first stands at the end once more
        first = around.index(min(around))
        return around[first:] + around[:first]
    return []
