"""``onnxhw bench``."""

from contextlib import AbstractContextManager
from typing import Any

import click

from .options import common, examples
from .output import Output, pass_output


@click.command(
    "bench",
    help="Measure the benchmark models in one table.\n\n"
    + examples("""
  onnxhw bench
  onnxhw bench --models ic,kws --layers
  onnxhw bench --preset ulx3s-25f --json
  onnxhw bench --models my.onnx --no-rtl
"""),
    epilog="Models: ic, kws, vww, ad (the MLPerf Tiny networks, with the reference weights where they are found, else "
    "with deterministic random ones) or files. Resources, Fmax and latency appear where `synth` has "
    "left a routed design in the cache.",
)
@click.option("-p", "--preset", "presets", multiple=True, metavar="NAME", help="May be repeated; default: ulx3s-85f.")
@click.option(
    "-m", "--models", default="ic,kws,vww,ad", show_default=True, metavar="LIST", help="Names or .onnx files."
)
@click.option("--layers", is_flag=True, help="Also a table of the layers of each model.")
@click.option("--no-rtl", is_flag=True, help="Only predicted cycles; no RTL simulation.")
@common
@pass_output
def command(output: Output, presets: tuple[str, ...], models: str, layers: bool, no_rtl: bool) -> None:
    from ..bench.measure import Row, measure, model
    from ..config import preset
    from ..program.model import Program
    from .engine import Execute, runner
    from .synthesis import cached_route

    def rtl(program: Program) -> AbstractContextManager[Execute]:
        return runner("cxxrtl", program, output)

    configs = [preset(name) for name in presets or ("ulx3s-85f",)]
    entries = [model(name.strip()) for name in models.split(",") if name.strip()]
    rows: list[Row] = []
    for config in configs:
        with output.stage(f"look for a bitstream of {config.name}"):
            routed = cached_route(config)
        for entry in entries:
            with output.stage(f"{entry.name} on {config.name}"):
                rows.append(measure(entry, config, None if no_rtl else rtl, routed))
    if output.json:
        output.data([row.record() for row in rows])
        return
    output.table(
        ("model", "preset", "weights", "MACs", "cycles predicted", "cycles RTL", "equal", "utilisation %",
         "LUT", "FF", "DSP", "EBR", "Fmax MHz", "latency ms"),
        [
            (r.model, r.preset, r.weights, r.macs, r.cycles_predicted, r.cycles_rtl, r.equal, _percent(r.utilization),
             r.lut, r.ff, r.dsp, r.ebr, r.fmax_mhz, r.latency_ms)
            for r in rows
        ],
    )  # fmt: skip
    for row in rows:
        if row.note:
            output.line(f"{row.model} on {row.preset}: {row.note}")
        if layers and row.layers:
            _layers(output, row.model, row.preset, row.layers)


def _layers(output: Output, name: str, preset: str, layers: list[dict[str, Any]]) -> None:
    output.table(
        ("layer", "kind", "MACs", "cycles", "utilisation %", "wait weights", "array waits", "vector waits"),
        [
            (one["name"], one["kind"], one["macs"], one["cycles"],
             _percent(one["utilization"]) if one["macs"] else None,
             one["wait_weights"], one["wait_array"], one["wait_vector"])
            for one in layers
        ],
        title=f"{name} on {preset}",
    )  # fmt: skip


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
