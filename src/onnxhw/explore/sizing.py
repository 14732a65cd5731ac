"""Memories whose depth bounds no cycle: as large as a device can have them, and cut to what programs need."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..config import ADDRESS_BITS, HwConfig
from ..devices.family import Estimate
from ..isa.units import Unit
from .workload import MemoryNeeds

STEPS = 512, 128, 64, 32, 16
"""Depths are rounded up to the largest of these that costs nothing, so that another model of the same kind has room."""

Estimator = Callable[[HwConfig], Estimate]


def fitted(config: HwConfig, needs: MemoryNeeds, estimate: Estimator) -> HwConfig:
    """The configuration with room for `needs`, rounded up where neither block RAMs nor logic become more."""
    least: dict[str, Any] = {
        name: value for name, value in needs.record().items() if name != "depthwise_ucode" or config.depthwise
    }
    made = dataclasses.replace(config, **least)
    for name, words in least.items():
        if name != "tables":
            made = _rounded(made, name, words, estimate)
    return made


def with_spare_block_rams(config: HwConfig, estimate: Estimator, most: int) -> HwConfig:
    """The configuration with microcode in block RAM instead of lookup tables where `most` block RAMs leave one for it:
    352 words of the depthwise unit's microcode take 1,500 LUT4, and logic is what bounds the clock."""
    made = config
    for unit in Unit:
        change: dict[str, Any] = {f"{unit}_ucode": STEPS[0]}
        if unit.built(config) and unit.in_luts(config):
            larger = dataclasses.replace(made, **change)
            made = larger if estimate(larger).ebr <= most else made
    return made


def limited(config: HwConfig, needs: MemoryNeeds, estimate: Estimator, most: int) -> HwConfig:
    """The configuration with each memory no deeper than a device of `most` block RAMs can have it beside `needs` of the
    others: a program that needs more is no solution, and the search for a quicker one does not go there."""
    least: dict[str, Any] = needs.record()
    small = dataclasses.replace(config, **least)
    found: dict[str, Any] = {
        name: _deepest(small, name, words, getattr(config, name), estimate, most)
        for name, words in least.items() if name != "tables"
    }  # fmt: skip
    return dataclasses.replace(config, **found)


def _deepest(small: HwConfig, name: str, least: int, depth: int, estimate: Estimator, most: int) -> int:
    """The largest depth from `least` to `depth` that takes no more than `most`, a multiple of the smallest of `STEPS`
    if there is one."""
    step = STEPS[-1]
    low, high = least // step, -(-depth // step)
    while low < high:
        middle = (low + high + 1) // 2
        change: dict[str, Any] = {name: min(depth, middle * step)}
        if estimate(dataclasses.replace(small, **change)).ebr <= most:
            low = middle
        else:
            high = middle - 1
    return max(least, min(depth, low * step))


def less_microcode(config: HwConfig, needs: MemoryNeeds, estimate: Estimator, most: int) -> MemoryNeeds | None:
    """`needs` with so much less microcode that all of it takes no more than `most` block RAMs: always the largest of
    these memories is a block RAM smaller. None if that does not help."""
    words = needs.record()
    names = [name for name in words if name.endswith("_ucode") and (config.depthwise or name != "depthwise_ucode")]
    while estimate(fitted(config, MemoryNeeds(**words), estimate)).ebr > most:
        largest = max(names, key=lambda name: words[name])
        if words[largest] <= STEPS[0]:
            return None
        words[largest] = (words[largest] - 1) // STEPS[0] * STEPS[0]
    return MemoryNeeds(**words)


def _rounded(config: HwConfig, name: str, words: int, estimate: Estimator) -> HwConfig:
    exact = estimate(config)
    for step in STEPS:
        depth = -(-words // step) * step
        if depth <= 1 << ADDRESS_BITS[name]:
            change: dict[str, Any] = {name: depth}
            larger = dataclasses.replace(config, **change)
            taken = estimate(larger)
            if taken.ebr <= exact.ebr and taken.lut <= exact.lut:
                return larger
    return config
