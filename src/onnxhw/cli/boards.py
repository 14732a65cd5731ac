"""``onnxhw boards``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import common, examples, reading_options
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from .common.read_options import ReadOptions


@click.command(
    "boards",
    help="List boards and presets; given a model, which of them fit.\n\n"
    + examples("""
  onnxhw boards
  onnxhw boards model.onnx
  onnxhw boards model.onnx --json
"""),
)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@reading_options
@common
@pass_output
def command(output: Output, model: Path | None, reading: "ReadOptions") -> None:
    from ..board import boards, wrong_files
    from ..config import PRESETS, SIMULATED

    found = boards()
    for error in wrong_files().values():
        output.message(f"not a board: {error.text()}")
    fits = _fits(model, reading, output) if model else None
    names = sorted({name for board in found.values() for name in board.presets} | set(SIMULATED))
    presets = []
    for name in names:
        config = PRESETS[name]
        record: dict[str, Any] = {
            "preset": name,
            "config": config.fingerprint,
            "rows": config.rows,
            "cols": config.cols,
            "macs_per_cycle": config.macs_per_cycle,
            "act_bytes": config.act_bytes,
            "weight_bytes": config.weight_bytes,
            "boards": [board.name for board in found.values() if name in board.presets],
        }
        presets.append(record | (fits[name] if fits else {}))
    rows = [
        {"board": b.name, "aliases": list(b.aliases), "title": b.title, "device": b.device, "preset": b.preset,
         "presets": list(b.presets), "external_bytes": b.external.size if b.external else 0,
         "lut": b.resources.lut4, "dsp": b.resources.dsp, "ebr": b.resources.ebr}
        for b in found.values()
    ]  # fmt: skip
    output.data({"boards": rows, "presets": presets} | ({"model": str(model)} if model else {}))
    output.table(
        ("board", "also", "device", "LUT4", "DSP", "block RAM", "external", "preset", "other presets"),
        [
            (b.name, ", ".join(b.aliases), b.device, b.resources.lut4, b.resources.dsp, b.resources.ebr,
             f"{b.external.size >> 20} MB SDRAM, {b.external.data_bits} bits" if b.external else "none", b.preset,
             ", ".join(name for name in b.presets if name != b.preset))
            for b in found.values()
        ],
        title="Boards",
    )  # fmt: skip
    columns = ["preset", "array", "MACs/cycle", "activations", "weights", "boards"] + (
        ["fits", "cycles"] if fits else []
    )
    output.table(
        columns,
        [
            [p["preset"], f"{p['rows']} x {p['cols']}", p["macs_per_cycle"], f"{p['act_bytes'] // 1024} KiB",
             f"{p['weight_bytes'] // 1024} KiB", ", ".join(p["boards"]) or "none: simulation only",
             *([p["fits"], p["predicted_cycles"]] if fits else [])]
            for p in presets
        ],
        title=f"Presets for {model.name}" if model else "Presets",
    )  # fmt: skip
    for name, why in SIMULATED.items():
        output.line(f"{name} is for simulation only: {why}")
    for reason in dict.fromkeys(record["reason"] for record in (fits or {}).values() if record["reason"]):
        same = [name for name, record in (fits or {}).items() if record["reason"] == reason]
        output.line(f"{', '.join(same)}: {reason}")


def _fits(model: Path, reading: "ReadOptions", output: Output) -> dict[str, dict[str, Any]]:
    """Per preset: whether the model fits, its cycles as `compile` predicts them, and why not, or not in one program.

    A model with nothing for any hardware, or with nodes that run nowhere, is an error.
    """
    from .. import compiler, partition
    from ..board import boards
    from ..compiler.cost import board_rates
    from ..config import PRESETS, SIMULATED
    from ..errors import DoesNotFitError, UnsupportedError

    source, limits, shapes, exact = reading.source(model), reading.allowed, reading.sizes, reading.exact_softmax
    with output.stage(f"read {model.name}"):
        partitioned = partition.read(source, limits=limits, shapes=shapes, exact_softmax=exact)
    partition.refuse(partitioned)
    partition.require_hardware(partitioned, str(model))
    found: dict[str, dict[str, Any]] = {}
    for name in sorted({name for board in boards().values() for name in board.presets} | set(SIMULATED)):
        try:
            with output.stage(f"compile for {name}"):
                placed = compiler.place_and_schedule(
                    source, PRESETS[name], limits=limits, shapes=shapes, exact_softmax=exact,
                    rates=board_rates(PRESETS[name]),
                )  # fmt: skip
            placed.require_hardware(PRESETS[name], str(model))
            large = [note.what for note in placed.model.diagnostics if note.code in compiler.LARGE]
            found[name] = {"fits": not large, "predicted_cycles": placed.made.latency, "reason": "; ".join(large)}
        except (DoesNotFitError, UnsupportedError) as error:
            found[name] = {"fits": False, "predicted_cycles": None, "reason": f"{error.code} {error.what}"}
    return found
