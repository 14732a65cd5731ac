"""``onnxhw run``."""

from pathlib import Path
from typing import Any

import click

from .device_options import device_options
from .options import common, examples
from .output import Output, pass_output


@click.command(
    "run",
    help="Run a compiled model on a device: arrays in, arrays out.\n\n"
    + examples("""
  onnxhw run build/model-ulx3s-85f --input images.npy --output scores.npy
  onnxhw run build/model-ulx3s-85f --device serial:/dev/ttyUSB0 --input images.npz --profile
  onnxhw run build/model-mini --device emu: --input image.npy --json
"""),
    epilog="DIRECTORY is an output folder of compile or synth, or a program.ohw. An .npz has one array per model input "
    "by name; a first dimension of N gives N inferences. Images and arrays are prepared as `compile` or `synth` was "
    "told (--scale, --mean, --std, --layout). Of a model in parts the host runs its own. Outputs are written as .npy, "
    "or as .npz with all of them. "
    "The bitstream on the device must be of the program's configuration and, if the directory has one, its build. "
    "Exit status 9 if the device fails, or if repetitions differ.",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "-i", "--input", "source", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help=".npy or .npz of inputs, image or folder of images.",
)  # fmt: skip
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), metavar="FILE", help=".npy or .npz.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Only the first N inferences.")
@click.option(
    "-r", "--repeat", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Run everything N times; the results must not differ.",
)  # fmt: skip
@click.option("--profile", is_flag=True, help="Cycles and stalls per layer and by cause.")
@device_options
@common
@pass_output
def command(
    output: Output, directory: Path, source: Path, target: Path | None, count: int | None, repeat: int, profile: bool,
    device: str, baud: int | None, timeout_scale: float,
) -> None:  # fmt: skip
    from ..host.artifact import preprocess_of, skeleton
    from ..program.mixed import MixedProgram
    from . import inference
    from .artifacts import read_any
    from .device import bar, open_device
    from .inputs import file_inputs
    from .mixing import refuse_mixing
    from .outdir import refuse_unwritable_file
    from .reading import TRUSTED

    if directory.is_file():
        from ..program import container

        program, design = container.load_any(directory), None
    else:
        read = read_any(directory)
        program, design = read.program, read.manifest.get("design") or None
    preprocess = preprocess_of(directory)
    if target is not None:
        inference.check_target(target, program)
        refuse_unwritable_file(target, source)
    if isinstance(program, MixedProgram):
        from .run_parts import run_parts

        with open_device(output, device, baud, timeout_scale, program.programs[0].config) as opened:
            _print(output, run_parts(output, opened, directory, program, preprocess, source, target, count, repeat,
                                     profile))  # fmt: skip
        return
    ports = skeleton(program)
    inputs = file_inputs(ports, source, count, preprocess)
    refuse_mixing(directory, TRUSTED, inputs.count)
    with open_device(output, device, baud, timeout_scale, program.config) as opened:
        with bar(output, f"load {program.model}") as progress:
            opened.load(program, design=design, progress=progress)
        found = inference.measure(opened, inputs, repeat, output)
        record = inference.record(program, opened, found, inputs, target)
    outputs = inference.finish(ports, found)
    if target is not None:
        inference.save(target, outputs)
    record["classes"] = inference.top_classes(outputs, inputs.count)
    if profile:
        from .device_profile import device_profile

        record["profile"] = device_profile(program, found.counters, record["clock_mhz"])
    _print(output, record)


def _print(output: Output, record: dict[str, Any]) -> None:
    if output.json:
        output.data(record)
        return
    output.line(f"{record['model']} on {record['device']}, {record['preset']} at {record['clock_mhz']:g} MHz: "
                f"{record['runs']:,} inference{'s' if record['runs'] > 1 else ''} of {record['cycles']:,} cycles "
                f"({record['core_ms']:.3f} ms), as predicted")  # fmt: skip
    output.line(f"with the link {record['latency_ms']:.1f} ms for one alone, {record['inferences_per_second']:.1f} per "
                "second one after the other")  # fmt: skip
    if record["bound"]:
        output.line(f"the {record['bound']} bounds that to {record['bound_per_second']:.1f} per second: they overlap, "
                    f"{record['line_ms']:.3f} ms on the line and {record['core_ms']:.3f} ms in the core")  # fmt: skip
    if record["bound"] == "link" and record["patches"]:
        output.line("inputs travel as patches, which saves the core cycles; `compile --no-patches` "
                    "sends fewer bytes where the model fits without")  # fmt: skip
    if record["classes"]:
        shown = ", ".join(str(number) for number in record["classes"][:20])
        output.line(f"class: {shown}{' ...' if len(record['classes']) > 20 else ''}")
    if "profile" in record:
        from .device_profile import print_profile

        for part in record["profile"].get("parts", [record["profile"]]):
            print_profile(output, part)
    if record["outputs"]:
        output.line(f"outputs: {record['outputs']}")
