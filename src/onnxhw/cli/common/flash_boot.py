"""``synth --standalone`` of a program that does not fit into the bitstream: an image for the board's flash memory."""

from typing import Any

from ...board import Board
from ...build.device import require_flash
from ...driver.flash_image import flash_image
from ...errors import DoesNotFitError
from ...isa.flash import read_seconds
from ...program.model import DeviceProgram


def boot_image(program: DeviceProgram, board: Board, why: str) -> bytes:
    """The image of a program; `why` tells why it needs one. `UsageError` E2384 for a board from whose flash no design
    can load anything, `DoesNotFitError` E5202 if the image is larger than its flash memory."""
    flash = require_flash(board, why)
    image = flash_image(program)
    if len(image) > flash.room:
        raise DoesNotFitError(
            "E5202",
            f"the image has {len(image):,} bytes; flash memory has {flash.room:,} behind offset {flash.offset:,}",
            where=board.name,
            hint="a smaller network, or without --standalone: a host loads the program",
        )
    return image


def boot_record(image: bytes, board: Board, clock_hz: int) -> dict[str, Any]:
    """For the manifest and ``--json``: where the image lies, its bytes, and seconds until the device has read it."""
    assert board.boot is not None
    return {"offset": board.boot.offset, "bytes": len(image), "seconds": round(read_seconds(len(image), clock_hz), 3)}


def boot_sentence(record: dict[str, Any]) -> str:
    """The same for people."""
    return (
        f"the program is loaded from flash memory: {record['bytes']:,} bytes at offset {record['offset']:,}, read in "
        f"{record['seconds']:.2f} s after power-up; `onnxhw program DIRECTORY --flash` writes both"
    )
