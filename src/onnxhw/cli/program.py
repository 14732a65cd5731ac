"""``onnxhw program``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common.interrupts import finishing
from .common.options import common, examples
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..build.tools import ToolResult

FLASHING = 600.0
"""Seconds after a signal for which writing the flash memory may go on: some megabytes through a bridge whose pins are
set one by one take minutes."""


@click.command(
    "program",
    help="Write the bitstream of an output directory to a connected board.\n\n"
    + examples("""
  onnxhw program build/model-ulx3s-85f+sdram
  onnxhw program build/model-ulx3s-85f+sdram --flash
"""),
    epilog="Needs openFPGALoader. An image that the device loads its program from (flash.bin) is written to the flash "
    "memory first, with and without --flash. The connected device must answer with the idcode of the board that the "
    "bitstream was made for, or nothing is written; a bootloader (OrangeCrab) cannot be asked. Ctrl-C while the flash "
    "memory is written waits until it is whole; a second one stops it.",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("-b", "--board", metavar="FILE", help="Board file, if the bitstream was made for one given by its path.")
@click.option("--flash", is_flag=True, help="Write to the flash memory: survives power-off.")
@common
@pass_output
def command(output: Output, directory: Path, board: str | None, flash: bool) -> None:
    from ..board import check_device, find
    from ..build import tools
    from ..build.device import require_flash
    from ..devices import family_of
    from ..errors import UsageError
    from ..files import sha256
    from .common.artifacts import BITSTREAM, FLASH_IMAGE, read_directory

    found = read_directory(directory)
    bitstream, image = directory / BITSTREAM, directory / FLASH_IMAGE
    files = found.manifest.get("files", {})
    written = [bitstream, *([image] if FLASH_IMAGE in files else [])]
    for path in written:
        if not path.is_file():
            what = f"has no {path.name}"
            raise UsageError("E2930", what, where=str(directory), hint="onnxhw synth MODEL -o DIR makes one")
        if sha256(path) != files.get(path.name):
            what = f"{path.name} is not the one that manifest.json describes"
            raise UsageError("E2931", what, where=str(directory), hint="run onnxhw synth again")
    wanted = found.manifest.get("board", "")
    chosen = find(board or wanted)
    if chosen.name != wanted:
        raise UsageError("E2372", f"the bitstream is for board {wanted!r}, not {chosen.name!r}", where=str(directory),
                         hint="onnxhw synth --board makes one for another board")  # fmt: skip
    words = chosen.program_command(bitstream.resolve(), flash=flash)
    if not words:
        what = "no way to write a flash memory" if flash else "a way to write the flash memory only"
        raise UsageError("E2377", f"the board's file has {what}", where=f"board {chosen.name}",
                         hint="without --flash" if flash else "--flash: the bitstream stays there")  # fmt: skip
    if chosen.detect:
        detected = tools.run(chosen.detect[0], chosen.detect[1:], Path.cwd(), check=False)
        check_device(chosen, detected.output)
    else:
        output.message(f"{chosen.title}: its programmer cannot be asked for the device; is it the right one?")
    printed = []
    if image in written:
        boot = require_flash(chosen, f"{image} is for its flash memory")
        output.message(f"{chosen.title}: writing {image} to its flash memory")
        result, interrupted = _whole(boot.command(image.resolve()), directory)
        printed += result.output.splitlines()
        if interrupted:
            raise KeyboardInterrupt
    output.message(f"{chosen.title}: writing {bitstream}")
    if flash:
        result, interrupted = _whole(words, directory)
    else:
        result, interrupted = tools.run(words[0], words[1:], directory), False
    printed += result.output.splitlines()
    record = {"board": chosen.name, "bitstream": str(bitstream), "flash": flash, "tool": words[0]}
    output.data({**record, "image": str(image) if image in written else None})
    for line in () if output.json else printed:
        output.message(line)
    seconds = family_of(chosen).boot_seconds(chosen, bitstream.stat().st_size)
    boots = f" (in flash: it boots in about {seconds:.2f} s)" if flash else ""
    output.line(f"{bitstream} is on the board{boots}")
    if interrupted:
        raise KeyboardInterrupt


def _whole(words: list[str], directory: Path) -> "tuple[ToolResult, bool]":
    """What the tool that writes the flash memory has left, and whether a signal came meanwhile.

    `ToolError` E7180: it was stopped.
    """
    from ..build import tools
    from ..errors import ToolError

    text = "the flash memory is being written: waiting for the end; a second interrupt leaves it half written"
    try:
        with finishing(text, FLASHING) as block:
            result = tools.run(words[0], words[1:], directory)
        return result, block.interrupted
    except KeyboardInterrupt:
        hint = "write it again, before the board is switched off: onnxhw program DIRECTORY --flash"
        raise ToolError("E7180", "the flash memory is written only in part", where=words[0], hint=hint) from None
