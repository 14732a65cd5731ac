"""`cycle`: a cycle in a list of nodes, if there is one."""

from collections.abc import Sequence


def cycle(makes: Sequence[set[str]], uses: Sequence[set[str]]) -> list[int]:
    """Indices of nodes that wait for each other in a circle, in the direction of data; empty if there is none.

    The one that comes first in the list comes first.
    `makes` and `uses` are the value names of each node; linear in their number.
    """
    maker = {name: index for index, names in enumerate(makes) for name in names}
    before = [{maker[name] for name in names if name in maker} for names in uses]
    waiting = [len(found) for found in before]
    after: list[list[int]] = [[] for _ in makes]
    for index, found in enumerate(before):
        for other in found:
            after[other].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    while ready:
        for index in after[ready.pop()]:
            waiting[index] -= 1
            if not waiting[index]:
                ready.append(index)
    left = {index for index, count in enumerate(waiting) if count}
    if not left:
        return []
    path: list[int] = []
    place: dict[int, int] = {}
    index = min(left)
    while index not in place:  # whatever is left waits for something that is left
        place[index] = len(path)
        path.append(index)
        index = min(before[index] & left)
    around = path[place[index] :][::-1]
    first = around.index(min(around))
    return around[first:] + around[:first]
