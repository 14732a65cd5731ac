"""``onnxhw compile``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common.options import (
    board_option,
    common,
    examples,
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
    "compile",
    help="Compile a model to a program for a board."
    "\n\n"
    + examples("""
  onnxhw compile model.onnx --board ulx3s
  onnxhw compile model.onnx --board ulx3s-25f -o out --json
  onnxhw compile model.onnx --preset mini --scale 1/255 --mean 0.5 --std 0.25
"""),
    epilog="Writes program.ohw, manifest.json, placement.json, report.html and trace.json. What the hardware cannot "
    "run becomes a part of the program that the host runs (see `onnxhw check`). --scale to --layout "
    "are noted in manifest.json: `run` and `simulate` of the directory prepare images and arrays so.",
)
@click.argument("model", type=click.Path(path_type=Path))
@board_option
@preset_option
@reading_options
@state_options
@prefer_option("speed")
@preprocess_options
@out_option
@common
@pass_output
def command(
    output: Output, model: Path, board: str, preset: str | None, reading: "ReadOptions", prefer: "Prefer",
    preprocess: "Preprocess", out: Path | None,
) -> None:  # fmt: skip
    from .common.outdir import staged
    from .common.pipeline import compile_model, out_folder, target
    from .common.placement_options import PlacementOptions
    from .common.result import print_result, result, write_artifacts

    chosen = target(board, preset)
    folder = out_folder(out, model, chosen.config)
    choice = PlacementOptions(prefer, chosen.rates())
    partitioned, program = compile_model(model, chosen.config, output, reading, choice, preprocess)
    with staged(folder) as stage:
        manifest = write_artifacts(stage, partitioned, program, chosen, model, reading=reading, preprocess=preprocess,
                                   choice=choice)  # fmt: skip
    print_result(output, result(partitioned, program, chosen, manifest, folder, cached=False))
