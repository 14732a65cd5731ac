"""``onnxhw report``."""

from pathlib import Path

import click

from .options import common, examples
from .output import Output, pass_output


@click.command(
    "report",
    help="Write and print the report of an output directory.\n\n"
    + examples("""
  onnxhw report build/model-ulx3s-85f
  onnxhw report build/model-ulx3s-85f --json
"""),
    epilog="Writes report.html and trace.json (open it in Perfetto) from program.ohw, manifest.json and what "
    "`simulate` found.",
)
@click.argument("directory", type=click.Path(path_type=Path))
@common
@pass_output
def command(output: Output, directory: Path) -> None:
    from ..report.profile import profile
    from .artifacts import read_directory, refresh_report, report_record
    from .outdir import staged

    found = read_directory(directory)
    summary = profile(found.program)
    with staged(directory) as stage:
        refresh_report(stage, found, found.simulations, summary)
    if output.json:
        output.data(report_record(found, summary))
        return
    output.line(f"{found.program.model} on {found.program.config.name}: {summary.cycles:,} cycles, "
                f"{found.program.macs:,} MACs, {100 * summary.utilization:.1f} % of the array")  # fmt: skip
    output.table(
        ("layer", "kind", "MACs", "cycles", "utilisation %", "wait weights", "array waits", "vector waits"),
        [
            (row.name, row.kind, row.macs, row.cycles, round(100 * row.utilization, 1) if row.macs else None,
             row.wait_weights, row.wait_array, row.wait_vector)
            for row in summary.layers
        ],
    )  # fmt: skip
    for name in ("report.html", "trace.json"):
        output.line(f"{name:12} {directory / name}")
