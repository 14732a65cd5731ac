"""``onnxhw report``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common.layers import print_layers
from .common.options import common, examples
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..program.model import DeviceProgram
    from ..report.profile import Profile


@click.command(
    "report",
    help="Write and print the report of an output directory.\n\n"
    + examples("""
  onnxhw report build/model-ulx3s-85f+sdram
  onnxhw report build/model-ulx3s-85f+sdram --json
"""),
    epilog="Writes report.html and trace.json (open it in Perfetto) from program.ohw, manifest.json and what "
    "`simulate` found.",
)
@click.argument("directory", type=click.Path(path_type=Path))
@common
@pass_output
def command(output: Output, directory: Path) -> None:
    from .common.artifacts import profiles, read_directory, refresh_report, report_record
    from .common.outdir import staged

    found = read_directory(directory)
    summaries = profiles(found.program)
    with staged(directory) as stage:
        refresh_report(stage, found, found.simulations, summaries)
    output.data(report_record(found, summaries))
    parts = found.program.programs
    for part, summary in zip(parts, summaries, strict=True):
        _print(output, part, summary)
    if len(parts) > 1:
        output.line(f"{found.program.name}: {found.program.latency:,} cycles in {len(parts)} parts on the hardware")
    for name, path in found.artifacts.items():
        if name.startswith(("report", "trace")):
            output.line(f"{name:12} {path}")


def _print(output: Output, program: "DeviceProgram", summary: "Profile") -> None:
    from ..program.input_regions import latency

    output.line(f"{program.model} on {program.config.name}: {latency(program):,} cycles, "
                f"{summary.cycles:,} of them the run, {program.macs:,} MACs, "
                f"{100 * summary.utilization:.1f} % of the array")  # fmt: skip
    print_layers(output, [asdict(row) for row in summary.layers])
