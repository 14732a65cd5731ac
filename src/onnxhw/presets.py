"""`preset`: configurations by name, those that come with onnxhw and those in files."""

import dataclasses
from pathlib import PurePath

from .config import HwConfig
from .errors import UsageError
from .external import ULX3S, ULX3S_125
from .files import read_text, reason

# 136 of 156 multipliers in the array, two products each, 16 in the requantizer, one in each lane; IC, KWS and VWW fit
# on chip.
_FULL = HwConfig(
    "ulx3s-85f",
    rows=16,
    cols=16,
    word=16,
    lanes=16,
    load_rows=16,
    acc_bits=27,
    act_banks=4,
    act_depth=2048,
    weight_depth=512,
    acc_depth=512,
    param_depth=256,
    tables=4,
    load_ucode=1024,
    array_ucode=512,
    depthwise_ucode=512,
    vector_ucode=1536,
    requant_dsps=1,
    inner_product="fast",
    depthwise=64,
    unaligned=1,
)

PRESETS: dict[str, HwConfig] = {
    config.name: config
    for config in (
        _FULL,
        # The same array with the weights that AD needs, 16 words of them in lookup tables, and little else.
        dataclasses.replace(
            _FULL, name="ulx3s-85f-dense", lanes=8, depthwise=0, unaligned=4, act_depth=512, weight_depth=1040,
            param_depth=512, load_ucode=512, vector_ucode=512, requant_dsps=2, early_completion=15,
        ),
        # All 72 multipliers, in the array; IC fits on chip, too.
        HwConfig(
            "ulx3s-45f",
            rows=16,
            cols=8,
            word=16,
            lanes=4,
            load_rows=2,
            acc_bits=27,
            act_banks=4,
            act_depth=1024,
            weight_depth=5120,
            acc_depth=512,
            param_depth=512,
            tables=4,
            load_ucode=512,
            array_ucode=512,
            depthwise_ucode=320,
            vector_ucode=1024,
            requant_dsps=0,
            inner_product="fast",
            depthwise=16,
            window_depth=128,
            unaligned=2,
        ),
        # All 28 multipliers: 6 in the requantizer, where they save most, 22 in the array; also the 12F (same die).
        HwConfig(
            "ulx3s-25f",
            rows=8,
            cols=6,
            word=8,
            lanes=2,
            load_rows=1,
            acc_bits=24,
            act_banks=3,
            act_depth=1024,
            weight_depth=3840,
            acc_depth=256,
            param_depth=512,
            tables=2,
            load_ucode=1024,
            array_ucode=512,
            vector_ucode=1536,
            requant_dsps=3,
            array_fabric=6,
            inner_product="fast",
            depthwise=64,
            unaligned=2,
        ),
        # For networks in external memory, whose layers are most of them dense: a third more products than with a
        # depthwise unit, which with a memory's controller would not fit; sums of 1,280 channels and more.
        HwConfig(
            "ulx3s-25f-dense",
            rows=8,
            cols=8,
            word=8,
            lanes=2,
            load_rows=1,
            acc_bits=27,
            act_banks=4,
            act_depth=1024,
            weight_depth=2560,
            acc_depth=256,
            param_depth=512,
            tables=2,
            load_ucode=512,
            array_ucode=512,
            vector_ucode=512,
            requant_dsps=3,
            array_fabric=14,
            inner_product="fast",
            unaligned=2,
        ),
        # Small enough to place and route in minutes on any ULX3S.
        HwConfig(
            "mini",
            rows=4,
            cols=4,
            word=4,
            lanes=2,
            load_rows=1,
            acc_bits=24,
            act_banks=4,
            act_depth=1024,
            weight_depth=4096,
            acc_depth=512,
            param_depth=512,
            tables=2,
            load_ucode=512,
            array_ucode=512,
            vector_ucode=512,
            requant_dsps=5,
            unaligned=1,
        ),
        # All block RAMs of a GW2A-18, and about three quarters of its sites: KWS fits on chip.
        HwConfig(
            "tang-20k",
            rows=4,
            cols=4,
            word=4,
            lanes=1,
            load_rows=1,
            acc_bits=22,
            act_banks=2,
            act_depth=2048,
            weight_depth=7232,
            acc_depth=512,
            param_depth=640,
            tables=1,
            load_ucode=1024,
            array_ucode=1024,
            vector_ucode=1024,
            requant_dsps=5,
            unaligned=2,
        ),
        # The array of the 85F with room for all four MLPerf Tiny networks: for no device, to be simulated.
        dataclasses.replace(
            _FULL, name="virtual", act_depth=8192, weight_depth=2048, load_ucode=2048, array_ucode=4096,
            depthwise_ucode=2048, vector_ucode=8192,
        ),
    )
}

SIMULATED = {"virtual": "it fits no board", "ulx3s-45f": "it is not routed: no placement of it has met a clock yet"}
"""Presets that no board offers, and why: programs for them can be compiled and simulated, bitstreams cannot be made."""


FILE = ".json"
"""How the name of a file with a configuration (`HwConfig.to_json`) ends; it can be named instead of a preset."""


def from_file(path: str) -> HwConfig:
    """The configuration in a file, called after the file. `UsageError` E2105 if it cannot be read, else as of
    `HwConfig.from_json`."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        hint = "name a preset, or a file as `onnxhw explore` writes them"
        raise UsageError("E2105", f"cannot be read: {reason(error)}", where=path, hint=hint) from error
    try:
        return dataclasses.replace(HwConfig.from_json(text), name=PurePath(path).stem)
    except UsageError as error:
        raise UsageError(error.code, error.what, where=path, hint=error.hint) from error


SDRAM = "+sdram"
"""Behind the name of a preset: with the external memory of the ULX3S."""
MEMORIES = {"ulx3s-85f+sdram": ULX3S_125}
"""That memory in cycles, where the board's file has another clock for a preset than 100 MHz."""


def preset(name: str) -> HwConfig:
    """The preset of that name, with `SDRAM` behind it one with external memory, or the configuration in a file that
    ends in `FILE`. `UsageError` E2104 lists the names there are; E2103 or E2105 for a file."""
    if name.endswith(FILE):
        return from_file(name)
    try:
        found = PRESETS[name.removesuffix(SDRAM)]
        return found.with_external(name, MEMORIES.get(name, ULX3S)) if name.endswith(SDRAM) else found
    except KeyError:
        raise UsageError("E2104", f"no preset named {name!r}", hint=f"presets: {', '.join(sorted(PRESETS))}") from None
