"""``onnxhw boards``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import SubcommandCommand, common, examples, reading_options
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..board import Board
    from ..config import HwConfig
    from ..partition import PartitionedModel
    from .common.read_options import ReadOptions


@click.command(
    "new",
    help="Write a commented board file with every key, for a board that onnxhw does not know.\n\n"
    + examples("""
  onnxhw boards new my-board
  onnxhw boards new my-board --device LFE5U-45F --package BG381 --speed 6
  onnxhw boards new my-board --device GW2A-18C --package PG256 --speed C8/I7
"""),
    epilog="Resources, idcode and presets are those of the device. What only the board's schematic tells is '?' or 0: "
    "`onnxhw check MODEL --board ./NAME.toml` names it until all is filled in. docs/boards.md says how to go on.",
)
@click.argument("name")
@click.option("--device", default="LFE5U-25F", show_default=True, metavar="NAME", help="The device.")
@click.option("--package", metavar="NAME", help="Its package, by the maker's short name; default: BG381 of an ECP5.")
@click.option("--speed", metavar="GRADE", help="Its speed grade; default: 6 of an ECP5.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: NAME.toml.")
@common
@pass_output
def new(
    output: Output, name: str, device: str, package: str | None, speed: str | None, out: Path | None
) -> None:  # fmt: skip
    from ..errors import UsageError
    from .common.board_file import new_board
    from .common.outdir import write_atomically

    text = new_board(name, device, package, speed)
    target = out or Path(f"{name}.toml")
    if target.exists():
        raise UsageError("E2903", "is there already", where=str(target), hint="another name with -o, or remove it")
    write_atomically(target, text.encode())
    output.data({"board": name, "file": str(target)})
    shown = target if target.is_absolute() else f"./{target}"
    output.line(f"{target}: fill in what is '?' or 0; then onnxhw check MODEL --board {shown}")


@click.command(
    "boards",
    cls=SubcommandCommand,
    subcommands=[new],
    help="List boards and presets; given a model, which of them fit.\n\n"
    + examples("""
  onnxhw boards
  onnxhw boards model.onnx
  onnxhw boards model.onnx --json
  onnxhw boards new my-board                    a board file to fill in (onnxhw boards new --help)
"""),
)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@reading_options
@common
@pass_output
def command(output: Output, model: Path | None, reading: "ReadOptions") -> None:
    from ..board import boards, wrong_files
    from ..presets import SDRAM, SIMULATED

    found = boards()
    for error in wrong_files().values():
        output.message(f"not a board: {error.text()}")
    fits = _fits(model, reading, output) if model else None
    presets = []
    for name, config in _configurations(found.values()).items():
        record: dict[str, Any] = {
            "preset": name,
            "config": config.fingerprint,
            "rows": config.rows,
            "cols": config.cols,
            "macs_per_cycle": config.macs_per_cycle,
            "act_bytes": config.act_bytes,
            "weight_bytes": config.weight_bytes,
            "boards": [
                board.name for board in found.values()
                if name in (board.preset, board.external_preset + SDRAM, *board.presets)
            ],
        }
        presets.append(record | (fits[name] if fits else {}))
    rows = [
        {"board": b.name, "aliases": list(b.aliases), "title": b.title, "device": b.device, "preset": b.preset,
         "presets": list(b.presets), "external_bytes": b.external.size if b.external else 0,
         "unused_memory": b.unused_memory, "clock_mhz": b.core_hz_of(b.preset) / 1e6, "link": b.link,
         "lut": b.resources.lut4, "dsp": b.resources.dsp, "ebr": b.resources.ebr}
        for b in found.values()
    ]  # fmt: skip
    output.data({"boards": rows, "presets": presets} | ({"model": str(model)} if model else {}))
    output.table(
        ("board", "also", "device", "LUT4", "DSP", "block RAM", "external", "link", "preset", "other presets"),
        [
            (b.name, ", ".join(b.aliases), b.device, b.resources.lut4, b.resources.dsp, b.resources.ebr,
             _memory(b), b.link, b.preset,
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
             *([p["fits"], _cycles(p)] if fits else [])]
            for p in presets
        ],
        title=f"Presets for {model.name}" if model else "Presets",
    )  # fmt: skip
    for name, why in SIMULATED.items():
        output.line(f"{name} is for simulation only: {why}")
    for reason in dict.fromkeys(record["reason"] for record in (fits or {}).values() if record["reason"]):
        same = [name for name, record in (fits or {}).items() if record["reason"] == reason]
        output.line(f"{', '.join(same)}: {reason}")


def _configurations(boards: "Iterable[Board]") -> "dict[str, HwConfig]":
    """The presets by name: those of all boards, with external memory where a board's own has some or its file names
    one for networks larger than the chip, and those for simulation."""
    from ..compiler.cost import REFERENCE
    from ..presets import PRESETS, SDRAM, SIMULATED

    boards = sorted(boards, key=lambda board: not board.name.startswith(REFERENCE))  # whose memory counts
    found = {name: PRESETS[name] for board in boards for name in board.presets}
    for board in boards:
        if (name := board.external_preset + SDRAM) != SDRAM:
            found.setdefault(name, board.configuration(name))
    found |= {board.preset: board.configuration() for board in boards if board.preset not in found}
    found |= {name: PRESETS[name] for name in SIMULATED}
    return dict(sorted(found.items()))


def _memory(board: "Board") -> str:
    """A board's external memory in words."""
    if board.external:
        return f"{board.external.size >> 20} MB SDRAM, {board.external.data_bits} bits"
    return f"none ({board.unused_memory}: no controller)" if board.unused_memory else "none"


def _fits(model: Path, reading: "ReadOptions", output: Output) -> dict[str, dict[str, Any]]:
    """Per preset: whether the model fits, its cycles as `compile` predicts them, and why not, or not in one program.

    Of a large model what `check` forecasts, where that tells whether it fits: `compile` divides it into dozens of
    programs for each preset that is too small, for minutes. A model with nothing for any hardware, or with nodes that
    run nowhere, is an error.
    """
    from .. import compiler, partition
    from ..board import boards
    from ..compiler.cost import board_rates
    from ..errors import DoesNotFitError, UnsupportedError

    source, limits, shapes, exact = reading.source(model), reading.allowed, reading.sizes, reading.exact_softmax
    with output.stage(f"read {model.name}"):
        partitioned = partition.read(source, limits=limits, shapes=shapes, exact_softmax=exact)
    partition.refuse(partitioned)
    partition.require_hardware(partitioned, str(model))
    found: dict[str, dict[str, Any]] = {}
    for name, config in _configurations(boards().values()).items():
        try:
            if (told := _forecast(partitioned, config)) is not None:
                found[name] = told
                continue
            with output.stage(f"compile for {name}"):
                placed = compiler.place_and_schedule(
                    source, config, limits=limits, shapes=shapes, exact_softmax=exact,
                    rates=board_rates(config),
                )  # fmt: skip
            placed.require_hardware(config, str(model))
            large = [note.what for note in placed.model.diagnostics if note.code in compiler.LARGE]
            found[name] = _fitted(not large, placed.made.latency, "; ".join(large))
        except (DoesNotFitError, UnsupportedError) as error:
            found[name] = _fitted(False, None, f"{error.code} {error.what}")
    return found


def _cycles(record: dict[str, Any]) -> str:
    cycles = record["predicted_cycles"]
    return "" if cycles is None else f"{'about ' if record['about'] else ''}{cycles:,}"


def _fitted(fits: bool, cycles: int | None, reason: str = "", about: bool = False) -> dict[str, Any]:
    return {"fits": fits, "predicted_cycles": cycles, "about": about, "reason": reason}


def _forecast(partitioned: "PartitionedModel", config: "HwConfig") -> dict[str, Any] | None:
    """Of a model of more operations than `check` schedules whether it fits, about; None of others, and where bounds
    leave it open."""
    from ..compiler.capacity import QUICK, fit

    graphs = [part.graph for part in partitioned.hardware]
    if sum(len(graph.ops) for graph in graphs) <= QUICK:
        return None
    found = fit(graphs, config)
    if found.fits is False:
        return _fitted(False, None, f"{found.code} {found.reason}")
    return _fitted(True, found.cycles, about=True) if found.fits and found.about else None
