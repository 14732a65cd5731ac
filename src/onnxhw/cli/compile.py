"""``onnxhw compile``."""

from pathlib import Path

import click

from .options import board_option, common, examples, out_option, preset_option
from .output import Output, pass_output


@click.command(
    "compile",
    help="Compile a model to a program for a board."
    "\n\n"
    + examples("""
  onnxhw compile model.onnx --board ulx3s
  onnxhw compile model.onnx --board ulx3s-25f -o out --json
  onnxhw compile model.onnx --preset mini
"""),
    epilog="Writes program.ohw, manifest.json, report.html and trace.json.",
)
@click.argument("model", type=click.Path(path_type=Path))
@board_option()
@preset_option
@out_option("build/MODEL-PRESET")
@common
@pass_output
def command(output: Output, model: Path, board: str, preset: str | None, out: Path | None) -> None:
    from .outdir import refuse_unwritable, staged
    from .pipeline import compile_graph, default_out, load_model, target
    from .result import print_result, result, write_artifacts

    chosen = target(board, preset)
    folder = out or default_out(model, chosen.config)
    refuse_unwritable(folder)
    program = compile_graph(load_model(model, output), chosen.config, output)
    with staged(folder) as stage:
        manifest = write_artifacts(stage, program, chosen, model)
    record = result(program, chosen, manifest, folder, cached=False)
    print_result(output, record)
