"""``synth --input``: a device that takes its inputs from a sensor at its pins."""

import sys
from typing import Any

from ...board import Board
from ...build.cache import sources
from ...build.device import require_camera, version_of
from ...config import HwConfig
from ...devices import family_of
from ...errors import UsageError

WITH_SENSOR = "a device with a sensor"
"""What messages call it."""


def require_source(board: Board, clock_hz: int, *, standalone: bool, link: str) -> None:
    """Refuse what no bitstream with a camera can be made of, before anything is compiled: `UsageError` E2383 without
    ``--standalone`` or with a USB link, E2381, E2382 a board without pins for it, E2380 too slow a clock."""
    from ...rtl.sensors.device import xclk_half

    if not standalone or link == "usb":
        what = f"{WITH_SENSOR} has no host that loads a program" if not standalone else "it has no USB link"
        raise UsageError("E2383", f"--input: {what}", hint="--standalone --input camera-ov7670, without --link usb")
    require_camera(board)
    xclk_half(clock_hz)


def sensor_top(board: Board, config: HwConfig, clock_hz: int, baud: int) -> Any:
    """The top level: core, camera, serial line for answers, and clock."""
    from ...rtl.sensors.top import CameraTop

    design = CameraTop(config, dict(board.camera), clock_hz=clock_hz, baud=baud)
    return family_of(board).clocked(design, board, clock_hz)


def sensor_recipe(config: HwConfig, clock_hz: int, baud: int) -> dict[str, str]:
    """Everything that `sensor_top` is made of, but for the board."""
    return {
        "config": config.to_json(), "clock": str(clock_hz), "baud": str(baud), "python": sys.version,
        "rtl": sources("rtl/sensors/top.py"),
        **{name: version_of(name) for name in ("amaranth", "amaranth-boards")},
    }  # fmt: skip
