"""`fitted`: a configuration whose memories are as large as its programs need, and no larger where that costs."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..config import ADDRESS_BITS, HwConfig
from ..devices.family import Estimate
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
