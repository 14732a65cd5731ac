"""``onnxhw simulate``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import (
    board_option,
    common,
    examples,
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

ENGINES = ("golden", "emulator", "cxxrtl", "cocotb")


@click.command(
    "simulate",
    help="Run a model or program and compare it with the golden model.\n\n"
    + examples("""
  onnxhw simulate model.onnx --random 4
  onnxhw simulate model.onnx --input images.npz --count 10 --output results.npz
  onnxhw simulate model.onnx --input photos/ --scale 1/255
  onnxhw simulate build/model-ulx3s-85f+sdram --engine emulator --json
"""),
    epilog="TARGET is a model, an output directory of compile or synth, or a program.ohw. An .npz has one array per "
    "model input, its first dimension counts inferences; an array named label is taken for the classes. "
    "A float input takes floats of any width, an integer input its own type. --scale to --layout stand for what a "
    "directory was compiled with. A model is compiled with all that the hardware can run on it (--prefer hardware). "
    "Exit status 8 if any output differs from the golden model or any cycle count from the prediction.",
)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "-e",
    "--engine",
    type=click.Choice(ENGINES),
    default="cxxrtl",
    show_default=True,
    help="golden: integers in numpy; emulator: instruction by instruction; cxxrtl, cocotb: the RTL.",
)
@click.option(
    "-i",
    "--input",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=".npy, .npz, image or folder of images.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Only the first N inferences of --input.")
@click.option(
    "-r",
    "--random",
    "random_count",
    type=click.IntRange(min=1),
    metavar="N",
    help="N random inputs (the default is one).",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of --random.")
@click.option(
    "-o",
    "--output",
    "results",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the outputs go (.npz); missing folders are made. Default: outputs.npz in build/MODEL-PRESET, or in "
    "TARGET.",
)
@click.option("--trace", is_flag=True, help="Compare every intermediate tensor too.")
@board_option
@preset_option
@reading_options
@state_options
@prefer_option("hardware")
@preprocess_options
@common
@pass_output
def command(
    output: Output, target: Path, engine: str, source: Path | None, count: int | None, random_count: int | None,
    seed: int, results: Path | None, trace: bool, board: str, preset: str | None, reading: "ReadOptions",
    prefer: "Prefer", preprocess: "Preprocess",
) -> None:  # fmt: skip
    from ..driver.artifact import preprocess_of
    from ..errors import UsageError
    from ..report.premises import premises
    from .common.artifacts import described, record_simulation
    from .common.inputs import file_inputs, random_inputs, refuse_mixing
    from .common.outdir import refuse_unwritable_file
    from .common.placement_options import PlacementOptions
    from .common.simulation import mismatch_error, open_subject, run, save_outputs

    if source and random_count:
        raise UsageError("E2908", "--input and --random exclude each other")
    if count and not source:
        raise UsageError("E2908", "--count belongs to --input", hint="--random N runs N random inputs")
    if results:
        if results.suffix != ".npz":  # it is easily the model, or the program
            raise UsageError("E2560", "outputs are written as .npz", where=str(results))
        refuse_unwritable_file(results, target, source)
    preprocess = preprocess if preprocess.record() else preprocess_of(target)
    subject = open_subject(target, board, preset, output, reading, PlacementOptions(prefer), engine)
    program = subject.program
    subject.on(engine)
    place = results or subject.folder / "outputs.npz"
    refuse_unwritable_file(place)
    inputs = (
        file_inputs(program.inputs, source, count, preprocess)
        if source
        else random_inputs(program, random_count or 1, seed)
    )
    refuse_mixing(program.batch, inputs.count, target)
    start = time.monotonic()
    found = run(subject, engine, inputs, trace, output)
    seconds = time.monotonic() - start
    save_outputs(place, found)
    record: dict[str, Any] = {
        **described(program),
        "engine": engine,
        "inferences": inputs.count,
        "inputs": inputs.source,
        "cycles": found.cycles,
        "predicted_cycles": program.latency,
        "utilization": program.utilization,
        **premises(program.programs),
        "reference": subject.reference,
        "tensors_compared": found.compared,
        "equal": found.mismatch is None,
        "top1": found.top1(inputs),
        "parts": len(program.parts),
        "part_cycles": found.part_cycles or [None] * len(program.programs),
        "outputs": str(place),
        "seconds": round(seconds, 3),
    }
    if subject.directory:
        keep = ("engine", "inferences", "cycles", "predicted_cycles", "part_cycles", "reference", "equal")
        record_simulation(subject.folder, {name: record[name] for name in keep})
    if found.mismatch:
        output.found = {**record, "first_difference": found.mismatch}
        raise mismatch_error(subject.reference, found.mismatch, engine, program.name)
    print_simulation(output, record)


def print_simulation(output: Output, record: dict[str, Any]) -> None:
    """What a simulation found."""
    from ..report.premises import sentences

    output.data(record)
    output.line(f"{record['model']} on {record['preset']}, engine {record['engine']}: "
                f"{record['inferences']} inferences, {record['tensors_compared']:,} tensors "
                f"compared with the {record['reference']}: equal")  # fmt: skip
    if record["cycles"]:
        output.line(f"{record['cycles']:,} cycles per inference, as predicted; "
                    f"{100 * record['utilization']:.1f} % of the array's multiply-accumulates")  # fmt: skip
        for line in sentences(record["constant_channels"]):
            output.line(line)
    if record["top1"]:
        output.line(f"top-1: {record['top1']['right']} of {record['top1']['of']} labels")
    output.line(f"outputs: {record['outputs']}")
