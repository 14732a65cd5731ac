"""``onnxhw run``."""

from pathlib import Path
from typing import Any

import click

from .common.options import common, device_options, examples
from .common.output import Output, pass_output


@click.command(
    "run",
    help="Run a compiled model on a device: arrays in, arrays out.\n\n"
    + examples("""
  onnxhw run build/model-ulx3s-85f+sdram --input images.npy --output scores.npy
  onnxhw run build/model-ulx3s-85f+sdram --device serial:/dev/ttyUSB0 --input images.npz --profile
  onnxhw run build/model-mini --device emu: --input image.npy --json
  onnxhw run float.onnx --input x.npz --output y.npz
"""),
    epilog="DIRECTORY is an output folder of compile or synth, or a program.ohw; or an .onnx file of which nothing "
    "runs on the hardware: the host computes it, without a device. An .npz has one array per model input "
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
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path), metavar="FILE",
    help=".npy or .npz; missing folders are made.",
)  # fmt: skip
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
    from ..driver.artifact import baud_of, design_of, preprocess_of
    from ..runtime.loading import load
    from ..runtime.session import InferenceSession
    from .common import host_run, inference
    from .common.artifacts import read_directory
    from .common.device import announce_load, bar, open_device
    from .common.device_profile import device_profile
    from .common.inputs import file_inputs, refuse_mixing

    if host_run.is_model(directory):
        host_run.run(output, directory, source, target, count, repeat, profile)
        return
    if directory.suffix == ".ohw" and not directory.is_dir():
        program, design = load(directory), None
    else:
        read = read_directory(directory)
        program, design = read.program, design_of(read.manifest, directory)
    likely = baud_of(directory)
    inference.check_outputs(directory, program, target, source)
    inputs = file_inputs(program.inputs, source, count, preprocess_of(directory))
    refuse_mixing(program.batch, inputs.count, directory)
    with open_device(output, device, baud, timeout_scale, program.config, likely) as opened:
        for part in program.programs[:1]:
            announce_load(output, opened, part)
        with bar(output, f"load {program.name}") as progress, inference.BusierDirection(opened) as loading:
            for part in program.programs[:1]:
                opened.load(part, design=design, progress=progress)
        loaded = loading.seconds if len(program.programs) > 1 else 0.0
        with InferenceSession(program, device=opened) as session:
            found = inference.measure(session, opened, inputs, repeat, loaded, output)
        record = inference.record(program, opened, found, inputs, target)
    outputs = inference.whole(found.results, program)
    if target is not None:
        inference.save(target, outputs)
    record["classes"] = inference.top_classes(outputs, inputs.count)
    if profile:
        record["profile"] = device_profile(program.programs, found.counters, record["clock_mhz"])
    _print(output, record)


def _print(output: Output, record: dict[str, Any]) -> None:
    from ..compiler.cost import waiting_sentence
    from ..program.throughput import throughput_sentence
    from ..report.premises import sentences
    from .common.inference import print_outputs

    output.data(record)
    output.line(f"{record['model']} on {record['device']}, {record['preset']} at {record['clock_mhz']:g} MHz: "
                f"{record['runs']:,} inference{'s' if record['runs'] > 1 else ''} of {record['cycles']:,} cycles "
                f"({record['core_ms']:.3f} ms), as predicted")  # fmt: skip
    output.line(f"with the link {record['latency_ms']:.1f} ms for one alone, {record['inferences_per_second']:.1f} per "
                "second one after the other")  # fmt: skip
    output.line(f"the {record['bound']} bounds that to {record['bound_per_second']:.1f} per second: "
                f"{record['line_ms']:.3f} ms on the line, {record['core_ms']:.3f} ms in the core, "
                f"{record['host_ms']:.3f} ms in parts on the host")  # fmt: skip
    for line in sentences(record["constant_channels"]):
        output.line(line)
    output.line(waiting_sentence(record["waiting"]))
    if record["throughput"]:
        output.line(throughput_sentence(record["throughput"]))
    if "profile" in record:
        from .common.device_profile import print_profile

        for part in record["profile"]["parts"]:
            print_profile(output, part)
    print_outputs(output, record)
