"""A program as contents of the core's memories, for bitstreams that run it from power-up."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import InternalError, UsageError
from ..isa.camera import SETTINGS, CameraSettings
from ..isa.instructions import UNITS
from ..isa.memory import param_shape
from ..isa.microcode import pack
from ..program.input_regions import input_table
from ..program.model import DeviceProgram
from ..rtl.autorun import MEMORY_NAME, Standalone
from ..rtl.weight_blocks import blocks, tail

COMMON = {
    **{f"{unit} microcode": rf"(^|\.){unit}_fetch\.ucode$" for unit in UNITS},
    "parameters": r"(^|\.)vector\.params$",
    "tables": r"(^|\.)tables\.lane_\d+$",
    "counts": rf"^{MEMORY_NAME}$",
    "sensor": rf"^{SETTINGS}$",
}
"""Where most memories lie in the design: a pattern of the names that `devices.family.memories` gives."""


def places(config: HwConfig) -> dict[str, str]:
    """Where all memories lie; the weights are in the blocks of `rtl.weights`."""
    return COMMON | {f"weights {block.name}": rf"(^|\.)load\.memory\.{block.name}$" for block in blocks(config)}


def block_ram_obstacle(program: DeviceProgram) -> str:
    """Why the bitstream's block RAMs cannot hold the program, empty if they can: weights (`rtl.weight_blocks.tail`) or
    microcode are in lookup tables, whose contents no routed design lets us replace, or come from external memory."""
    config = program.config
    if program.in_segments:
        return f"the network is larger than {config.name} and needs its image of external memory"
    depth = config.weight_depth - tail(config)
    if len(program.weights) > depth:
        return f"the program has {len(program.weights)} weight words, block RAMs of {config.name} hold {depth}"
    if any(program.code.get(unit) and unit.in_luts(config) for unit in UNITS):
        return f"the program uses the depthwise unit, whose microcode {config.name} keeps in lookup tables"
    return ""


def require_block_rams(program: DeviceProgram) -> None:
    """`UsageError` E2333 with `block_ram_obstacle`, for a device that has its program from nowhere else."""
    if why := block_ram_obstacle(program):
        hint = "without --input it is loaded from the board's flash memory"
        raise UsageError("E2333", f"--standalone: {why}", hint=hint)


def words(image: npt.NDArray[np.uint8]) -> list[int]:
    """Rows of bytes as integers, the first byte lowest."""
    return [int.from_bytes(row.tobytes(), "little") for row in image]


def contents(program: DeviceProgram, sensor: CameraSettings | None = None) -> dict[str, list[int]]:
    """What each kind of memory (the keys of `places`) holds; with a `sensor` the program waits for its frames, else it
    runs once from power-up."""
    code = program.code
    found = {f"{unit} microcode": pack(code.get(unit, ())) for unit in UNITS}
    # The watchdog gives the run as long again: it is there for a broken program, not for measuring.
    counts, table = (len(code.get(unit, ())) for unit in UNITS), map(int, input_table(program))
    start = Standalone(tuple(counts), budget=2 * program.cycles, at_reset=sensor is None, table=tuple(table))
    for block in blocks(program.config):
        found[f"weights {block.name}"] = words(program.weights[:, block.bytes])
    found["parameters"] = words(_parameters(program))
    found["tables"] = [int(value) for value in program.tables.reshape(-1).view(np.uint8)]
    found["counts"] = list(start.words())
    if sensor:
        found["sensor"] = list(sensor.words())
    return found


def _parameters(program: DeviceProgram) -> npt.NDArray[np.uint8]:
    """The words of the parameter memory, in bytes."""
    rows = program.params.astype("<u8").view(np.uint8)
    width, _ = param_shape(program.config)
    padding = width // 8 * program.config.param_reads - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, padding))).reshape(-1, width // 8)


def images(program: DeviceProgram, names: Sequence[str], sensor: CameraSettings | None = None) -> dict[str, list[int]]:
    """Images for `flow.with_memories` by the names of the design's memories; `sensor` as of `contents`.

    Activations are not among them: the input stays 0 until a host writes one. Raises `InternalError` E1131 if the
    design lacks a memory that the program needs.
    """
    out, patterns = {}, places(program.config)
    for kind, image in contents(program, sensor).items():
        matching = [name for name in names if re.search(patterns[kind], name)]
        if image and not matching:
            raise InternalError("E1131", f"the design has no memory for {kind} among {', '.join(sorted(names))}")
        out.update(dict.fromkeys(matching, image))
    return out
