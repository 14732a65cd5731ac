"""Orders in which instructions may take effect: a program's results must not depend on which it is."""

import random

from onnxhw.emu.order import count_tiles, ready_units
from onnxhw.isa.instructions import Code
from onnxhw.isa.units import Unit


def random_order(code: Code, seed: int) -> list[Unit]:
    """A random order of those that the ordering fields allow."""
    chance = random.Random(seed)
    favourite = {unit: chance.random() for unit in Unit}
    completed = dict.fromkeys(Unit, 0)
    waiting: dict[Unit, int] = dict.fromkeys(Unit, 0)
    order = []
    while ready := ready_units(code, completed, waiting):
        unit = chance.choices(ready, [favourite[unit] for unit in ready])[0]
        count_tiles(waiting, code[unit][completed[unit]])
        completed[unit] += 1
        order.append(unit)
    return order
