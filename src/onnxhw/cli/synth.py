"""``onnxhw synth``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..board import SENSORS
from ..board_tables import LINKS
from ..errors import UsageError
from .common.options import (
    BAUD,
    Frequency,
    board_option,
    common,
    examples,
    no_cache_option,
    out_option,
    prefer_option,
    preprocess_options,
    preset_option,
    reading_options,
    state_options,
)
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..compiler.cost import Prefer
    from ..preprocess import Preprocess
    from .common.read_options import ReadOptions


@click.command(
    "synth",
    help="Make the bitstream and the program of a model.\n\n"
    + examples("""
  onnxhw synth model.onnx --board ulx3s
  onnxhw synth model.onnx --board ulx3s --preset mini -o out
  onnxhw synth model.onnx --board ulx3s-25f --seeds 5 --freq 80
  onnxhw synth model.onnx --board ulx3s --standalone
  onnxhw synth model.onnx --board ulx3s --standalone --input camera-ov7670
"""),
    epilog="Writes top.bit, program.ohw, manifest.json, placement.json, report.html and trace.json; with --standalone, "
    "if the bitstream cannot hold the program, flash.bin, an image for the board's flash memory. The bitstream "
    "belongs to board, preset and clock, not to the model: it is built once and then taken from the cache. --scale to "
    "--layout are noted in manifest.json: `run` and `simulate` of the directory prepare images and arrays so. On an "
    "ECP5 a clock that is missed by less than a tenth is approached before the next placement: cells are moved, and "
    "what they lead to is routed again. Exit "
    "status 5 if the model or the design does not fit, 6 if the design misses its clock. What the hardware cannot "
    "run becomes a part of the program that the host runs, as with `compile`.",
)
@click.argument("model", type=click.Path(path_type=Path))
@board_option
@preset_option
@reading_options
@state_options
@prefer_option("speed")
@preprocess_options
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Try up to N placements until the clock is met; "
              "default: those of the board's file, as long as the first is near it.")
@click.option("--freq", type=Frequency(min=1), metavar="MHZ", help="Clock of the core; default: the board's.")
@click.option(
    "--baud", type=BAUD, metavar="N",
    help="Speed of the serial line; default: the fastest that the board's adapter and the clock allow.",
)
@click.option(
    "--link", type=click.Choice(LINKS),
    help="How the host reaches the board: its serial adapter, or USB pins of the FPGA's own (ULX3S: connector US2). "
    "Default: what the board's file says, the serial adapter if nothing.",
)
@click.option("--standalone", is_flag=True, help="The program, in bitstream or flash.bin, runs from power-up.")
@click.option(
    "--input", "source", type=click.Choice(SENSORS),
    help="With --standalone: take the inputs from a camera at the board's pins, without a host, and tell each answer "
    "on LEDs and as a line of text (docs/sensors.md).",
)
@out_option
@no_cache_option
@common
@pass_output
def command(
    output: Output, model: Path, board: str, preset: str | None, reading: "ReadOptions", prefer: "Prefer",
    preprocess: "Preprocess", seeds: int | None, freq: float | None, baud: int | None, link: str | None,
    standalone: bool, source: str | None, out: Path | None, no_cache: bool,
) -> None:  # fmt: skip
    from ..build import flow
    from ..build.device import require
    from ..build.memory_contents import block_ram_obstacle, require_block_rams
    from ..program.camera import settings_of
    from .common.artifacts import BITSTREAM, FLASH_IMAGE
    from .common.flash_boot import boot_image, boot_record
    from .common.outdir import staged
    from .common.pipeline import (
        compile_model,
        out_folder,
        refuse_oversized,
        refuse_simulated,
        target,
        target_without_memory,
    )
    from .common.placement_options import PlacementOptions
    from .common.progress import FlowProgress
    from .common.result import print_result, result, write_artifacts
    from .common.sensors import WITH_SENSOR, require_source, sensor_recipe, sensor_top
    from .common.synthesis import finished, line_speed, options, recipe, top

    chosen = target_without_memory(board, preset, WITH_SENSOR, output) if source else target(board, preset)
    refuse_simulated(chosen)
    refuse_oversized(chosen)
    link = link or chosen.board.link
    clock_hz = round(freq * 1e6) if freq else chosen.board.core_hz_of(chosen.config.name, link)
    speed = line_speed(chosen.board, clock_hz, link, baud)
    chosen = chosen.at(clock_hz)
    require(chosen.board, link, chosen.config.external)
    if source:
        require_source(chosen.board, chosen.config, clock_hz, standalone=standalone, link=link)
    folder = out_folder(out, model, chosen.config)
    choice = PlacementOptions(prefer, chosen.rates(clock_hz, speed))
    partitioned, program = compile_model(model, chosen.config, output, reading, choice, preprocess)
    if standalone and len(program.parts) > 1:
        raise UsageError(
            "E2908", f"--standalone: {len(program.parts)} parts of the model need a host between them",
            where=str(model),
            hint="without --standalone the host runs them; `onnxhw check` says which nodes and why",
        )  # fmt: skip
    alone = program.only(str(model)) if standalone else None
    if alone and source:
        require_block_rams(alone)
    why = block_ram_obstacle(alone) if alone else ""
    image = boot_image(alone, chosen.board, why) if alone and why else b""
    settings = settings_of(alone, preprocess, str(model)) if alone and source else None
    over = f", {source}" if source else ", USB" if link == "usb" else ""
    over += ", from flash" if image else ""
    size = chosen.config, clock_hz, speed
    with FlowProgress(output, chosen.config, chosen.board) as progress:
        built = flow.build(
            sensor_top(chosen.board, *size) if source else top(chosen.board, *size, link, boots=bool(image)),
            chosen.board,
            clock_hz=clock_hz,
            options=options(chosen.board, seeds),
            progress=progress,
            use_cache=not no_cache,
            label=f"{chosen.config.name} on {chosen.board.name} at {clock_hz / 1e6:g} MHz{over}",
            recipe=sensor_recipe(*size) if source else recipe(*size, link, boots=bool(image)),
        )
        progress.note(built)
        baked = None if image else alone
        built = finished(built, chosen.config, speed, progress, baked, link, settings, boots=bool(image))
    known = built.manifest()
    known.boot = boot_record(image, chosen.board, clock_hz) if image else {}
    known.baud, known.link, known.input = speed, "" if source else link, source or ""
    with staged(folder) as stage:
        (stage / BITSTREAM).write_bytes(built.bitstream)
        if image:
            (stage / FLASH_IMAGE).write_bytes(image)
        manifest = write_artifacts(stage, partitioned, program, chosen, model, known, reading, preprocess, choice)
    print_result(output, result(partitioned, program, chosen, manifest, folder, cached=built.cached))
