"""``onnxhw bench``."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.layers import percent, print_layers
from .common.options import common, examples
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..bench.measure import BenchmarkRow


@click.command(
    "bench",
    help="Measure the benchmark models in one table.\n\n"
    + examples("""
  onnxhw bench
  onnxhw bench --models ic,kws --layers
  onnxhw bench --preset ulx3s-25f --json
  onnxhw bench --random-weights --no-rtl
  onnxhw bench --models my.onnx --no-rtl
  onnxhw bench --plots plots
"""),
    epilog="Models: ic, kws, vww, ad (the MLPerf Tiny networks, with the reference weights where they are found, else "
    "with deterministic random ones) or files. Resources, Fmax and latency appear where `synth` has "
    "left a routed design in the cache.",
)
@click.option("-p", "--preset", "presets", multiple=True, metavar="NAME", help="May be repeated; default: ulx3s-85f.")
@click.option(
    "-m", "--models", default="ic,kws,vww,ad", show_default=True, metavar="LIST", help="Names or .onnx files."
)
@click.option(
    "--random-weights", is_flag=True,
    help="The networks with deterministic random weights, which have no constant channels to leave out.",
)  # fmt: skip
@click.option("--layers", is_flag=True, help="Also a table of the layers of each model.")
@click.option("--no-rtl", is_flag=True, help="Only predicted cycles; no RTL simulation.")
@click.option(
    "--plots", "folder", type=click.Path(path_type=Path), metavar="DIR",
    help="Draw a roofline and a timeline of the layers per model and preset (PNG, and both in one HTML page).",
)  # fmt: skip
@common
@pass_output
def command(
    output: Output, presets: tuple[str, ...], models: str, random_weights: bool, layers: bool, no_rtl: bool,
    folder: Path | None,
) -> None:  # fmt: skip
    from .. import engines
    from ..bench.measure import BenchmarkRow, latencies, measure, model
    from ..bench.peers import table
    from ..config import HwConfig
    from ..errors import UsageError
    from ..presets import preset
    from .common.outdir import staged
    from .common.synthesis import cached_route

    def rtl(config: HwConfig) -> engines.Engine:
        with output.stage("prepare cxxrtl"):
            return engines.open("cxxrtl", config, progress=output.message)

    if folder:
        _can_draw(folder)
    configs = [preset(name) for name in presets or ("ulx3s-85f",)]
    names = [name.strip() for name in models.split(",") if name.strip()]
    if not names:
        raise UsageError("E2901", "--models names no model", hint="--models ic,kws")
    entries = [model(name, random_weights) for name in names]
    rows: list[BenchmarkRow] = []
    pictures: dict[str, bytes] = {}
    for config in configs:
        with output.stage(f"look for a bitstream of {config.name}"):
            routed = cached_route(config)
        for entry in entries:
            with output.stage(f"{entry.name} on {config.name}"):
                found = measure(entry, config, None if no_rtl else rtl, routed)
                rows.append(found.row)
                if folder:
                    from ..bench.plots import draw

                    for number, (program, profile) in enumerate(found.programs, 1):
                        part = f"-{number}" if len(found.programs) > 1 else ""
                        pictures.update(draw(program, profile, f"{entry.name}-{config.name}{part}"))
    if folder:
        with staged(folder) as stage:
            for name, data in pictures.items():
                (stage / name).write_bytes(data)
    output.data([asdict(row) for row in rows])
    output.table(
        ("model", "preset", "weights", "MACs nominal", "executed", "cycles predicted", "cycles RTL", "of the run",
         "equal", "utilisation %", "LUT", "FF", "DSP", "EBR", "Fmax MHz", "seed", "latency ms"),
        [
            (r.model, r.preset, r.weights, r.macs_nominal, r.macs_executed, r.cycles_predicted, r.cycles_rtl,
             r.run_cycles, r.equal, percent(r.utilization), r.lut, r.ff, r.dsp, r.ebr, r.fmax_mhz, r.seed, r.latency_ms)
            for r in rows
        ],
    )  # fmt: skip
    print_premises(output, rows)
    if ours := latencies(rows):
        columns, lines = table(ours)
        output.table(columns, lines, title="latency of the core, without the line, beside what others have published")
    for row in rows:
        if row.note:
            output.line(f"{row.model} on {row.preset}: {row.note}")
        if layers and row.layers:
            print_layers(output, row.layers, f"{row.model} on {row.preset}")
    for name in pictures:
        output.line(f"{folder}/{name}")


def print_premises(output: Output, rows: "Sequence[BenchmarkRow]") -> None:
    """What the cycles of the rows take for granted, and what a person waits for."""
    output.table(
        ("model", "preset", "constant channels left out", "cycles", "bytes on the line", "line ms", "core ms",
         "host alone ms, about"),
        [
            (r.model, r.preset, f"{r.constant_channels['left_out']:,} of {r.constant_channels['of']:,}",
             r.cycles_predicted, *_shown(r.waiting, "bytes", "line_ms", "core_ms", "host_ms"))
            for r in rows if r.cycles_predicted
        ],
        title="what the cycles take for granted, and what a person waits for (one inference alone, at the rates of the "
        "preset's board)",
    )  # fmt: skip


def _shown(record: dict[str, Any] | None, *names: str) -> list[Any]:
    from ..compiler.cost import ms_text

    if record is None:
        return [None] * len(names)
    return [ms_text(record[name]) if name.endswith("_ms") else record[name] for name in names]


def _can_draw(folder: Path) -> None:
    """Say now what would prevent the pictures in the end: E2606 without matplotlib, E2903 for the folder."""
    from ..report.figure import figure
    from .common.outdir import refuse_unwritable

    figure(1, 1)
    refuse_unwritable(folder)
