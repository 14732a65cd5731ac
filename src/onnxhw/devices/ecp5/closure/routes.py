"""Routes of nets as nextpnr writes them: a tree of wires, each with the switch (pip) from the wire before it."""

import re
from collections import Counter
from collections.abc import Iterable

_PIP = re.compile(r"X(\d+)/Y(\d+)/(-?\d+)_(-?\d+)_(.*?)->")


def source_of(pip: str) -> str:
    """The wire that a switch leads from: its name is that of a tile, and how many columns and rows from there."""
    found = _PIP.match(pip)
    assert found, pip
    column, row = (int(found[k]) + int(found[k + 2]) for k in (1, 2))
    return f"X{column}/Y{row}/{found[5]}"


def without_branches(route: str, ends: Iterable[str]) -> str:
    """A route (``wire;switch;strength`` of each wire) without what leads only to the wires `ends`."""
    words = route.split(";")
    tree = {words[k]: (words[k + 1], words[k + 2]) for k in range(0, len(words) - 2, 3)}
    before = {wire: source_of(pip) for wire, (pip, _) in tree.items() if pip}
    readers = Counter(before.values())
    for end in ends:
        wire = end
        while wire in before and wire in tree and not readers[wire]:
            del tree[wire]
            readers[before[wire]] -= 1
            wire = before[wire]
    return ";".join(f"{wire};{pip};{strength}" for wire, (pip, strength) in tree.items())
