"""``onnxhw check``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common.options import (
    board_option,
    common,
    examples,
    prefer_option,
    preset_option,
    reading_options,
    state_options,
)
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..compiler.capacity import Fit
    from ..compiler.cost import Cost, Prefer
    from ..config import HwConfig
    from ..partition.partitioned import PartitionedModel
    from .common.read_options import ReadOptions

SHOWN = 40
"""Most nodes of each kind that are listed; --json and --all list every one."""
HARDLY = 0.05
"""A model of whose operations' multiplications less is on the hardware is not said to fit."""


@click.command(
    "check",
    help="Say where every node of a model runs, why, and whether it fits a board.\n\n"
    + examples("""
  onnxhw check model.onnx
  onnxhw check model.onnx --board ulx3s-25f --json
  onnxhw check model.onnx --shape N=1 --limit nodes=200000
"""),
    epilog="hardware: an operation of the accelerator; folded: a constant; free: layout only or absorbed; host: runs "
    "on the host; refused: nothing implements it. Exit status 0 if the model can run, 4 if a node is refused, 3 if the "
    "model is not valid, 5 if it does not fit. A model with nothing for the hardware, as a float one, can run, on the "
    "host, so its status is 0; there is no program of it, and compile and synth end with 4 (field compiles).",
)
@click.argument("model", type=click.Path(path_type=Path))
@board_option
@preset_option
@reading_options
@state_options
@prefer_option("speed")
@click.option("--all", "everything", is_flag=True, help="List every node, also those on the hardware.")
@common
@pass_output
def command(
    output: Output, model: Path, board: str, preset: str | None, reading: "ReadOptions", prefer: "Prefer",
    everything: bool,
) -> None:  # fmt: skip
    import gc
    import os

    gc.disable()  # a short process that keeps what it makes: collections would only cost time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy is not loaded yet; threads would only spin
    from ..compiler import place
    from ..compiler.capacity import QUICK, fit
    from ..compiler.cost import all_waiting, of_fit
    from ..compiler.segmented import SegmentedGraphs
    from ..compiler.states import require_external, states_of
    from ..errors import DoesNotFitError
    from ..partition import refuse
    from ..program.throughput import about_throughput
    from .common.pipeline import refuse_oversized, target

    chosen = target(board, preset)
    refuse_oversized(chosen)
    rates, segmented = chosen.rates(), SegmentedGraphs(chosen.config)

    pairs = reading.states
    require_external(chosen.config, pairs)

    def attempt(partitioned: "PartitionedModel") -> "Fit":
        segmented.states = states_of(partitioned, pairs)
        found = fit([part.graph for part in partitioned.hardware], chosen.config, segmented=segmented)
        if found.fits is False:
            raise DoesNotFitError(found.code, found.reason, where=str(model), hint=found.hint)
        return found

    def costs(partitioned: "PartitionedModel", found: "Fit") -> "list[Cost]":
        return of_fit([part.graph for part in partitioned.hardware], found, rates) if rates else []

    placed = place(
        reading.source(model),
        chosen.config,
        attempt,
        limits=reading.allowed,
        shapes=reading.sizes,
        exact_softmax=reading.exact_softmax,
        runnable=False,
        scheduled=QUICK,
        costs=costs if prefer == "speed" else None,
    )
    gc.freeze()  # nor shall the end of the process look at it once more
    partitioned, found = placed.model, placed.made
    too_large = placed.too_large(chosen.config, str(model))
    taken = costs(partitioned, found)
    record: dict[str, Any] = {
        "model": partitioned.name,
        "board": chosen.board.name,
        "preset": chosen.config.name,
        "runs": not partitioned.refused and too_large is None,
        "compiles": bool(partitioned.hardware) and not partitioned.refused and too_large is None,
        "hardware_share": _share(partitioned),
        "nodes": partitioned.counts(),
        "parts": _parts(partitioned, taken, found),
        "unpacked": _unpacked(partitioned, chosen.config, found),
        "waiting": all_waiting(taken, rates).record() if rates and taken else None,
        "throughput": about_throughput(found.parts, rates).record() if rates and taken else None,
        "states": [{"output": state.output, "input": state.input, "bytes": state.initial.size}
                   for state in segmented.states],
        "unused_memory": chosen.board.unused_memory,
        "fit": {name: value for name, value in asdict(found).items() if name not in ("parts", "forecasts")},
        "diagnostics": [diagnostic.record() for diagnostic in partitioned.diagnostics],
        "placement": [dict(vars(row)) for row in partitioned.placement],
    }
    if not output.json:  # it takes a while for a large model
        _print(output, partitioned, record, everything)
    if partitioned.refused:
        output.found = record
        refuse(partitioned)
    if too_large:
        output.found = record
        raise too_large
    output.data(record)


def _share(partitioned: "PartitionedModel") -> float:
    """The part of the operations' multiplications that is on the hardware; operators of the host have none."""
    from ..ir.parts import HostPart

    everywhere = sum(part.graph.macs() for part in partitioned.parts if not isinstance(part, HostPart))
    here = sum(part.graph.macs() for part in partitioned.hardware)
    return here / everywhere if everywhere else float(bool(partitioned.hardware))


def _unpacked(partitioned: "PartitionedModel", config: "HwConfig", fit: "Fit") -> list[dict[str, str]]:
    """Why inputs of first convolutions do not lie in packed bytes. Those of parts in segments come stripe by stripe,
    each packed if that is quicker."""
    from ..passes.packed_inputs import unpacked

    forecasts = fit.forecasts or (None,) * len(partitioned.hardware)
    on_chip = [part.graph for part, each in zip(partitioned.hardware, forecasts, strict=True) if each is None]
    found = [pair for graph in on_chip for pair in unpacked(graph, config).items()]
    return [{"input": name, "reason": reason} for name, reason in found]


def _parts(partitioned: "PartitionedModel", costs: "list[Cost]", fit: "Fit") -> list[dict[str, Any]]:
    """A record of each part; of those on the hardware also what an inference takes there and on the host, in ms, and
    what is larger than the chip."""
    from ..ir.parts import HardwarePart, HostPart

    found: list[dict[str, Any]] = []
    left, forecasts = iter(costs), iter(fit.forecasts)
    for part in partitioned.parts:
        if isinstance(part, HostPart):
            found.append({"where": "host", "nodes": len(part.nodes)})
            continue
        record = {"operations": len(part.graph.ops), "macs_nominal": part.graph.macs()}
        if not isinstance(part, HardwarePart):
            found.append({"where": "host", **record})
            continue
        cost = next(left, None)
        times = {} if cost is None else {
            "line_ms": round(cost.line, 4), "load_ms": round(cost.load, 4), "core_ms": round(cost.core, 4),
            "host_ms": round(cost.host, 4),
        }  # fmt: skip
        forecast = next(forecasts, None)
        sizes = {} if forecast is None else {
            "segments": forecast.segments, "external_bytes": forecast.external_bytes,
            "moved_bytes": forecast.moved_bytes,
        }  # fmt: skip
        found.append({"where": "hardware", **record, **times, **sizes})
    return found


def _print(output: Output, partitioned: "PartitionedModel", record: dict[str, Any], everything: bool) -> None:
    from ..onnxmodel.quantizers import quantizes
    from ..partition.partitioned import undecided
    from ..program.throughput import throughput_sentence

    for diagnostic in partitioned.diagnostics:
        output.line(diagnostic.text())
    kinds = ("refused", "host", "folded", "free", "hardware") if everything else ("refused", "host")
    for where in kinds:
        rows = [row for row in partitioned.placement if row.where == where and (row.code or everything)]
        shown = rows if everything else rows[:SHOWN]
        if rows:
            output.table(
                ("node", "operator", "part", "reason"),
                [(row.node, f"{row.domain}.{row.op_type}".lstrip("."), row.part, row.reason) for row in shown],
                title=f"{where}: {len(rows)}",
            )
        if len(rows) > len(shown):
            output.line(f"  and {len(rows) - len(shown)} more (--all)")
        for hint in list(dict.fromkeys(row.hint for row in rows if row.hint))[:5]:
            output.line(f"  hint: {hint}")
    counts = ", ".join(f"{count:,} {where}" for where, count in record["nodes"].items() if count)
    parts = len(partitioned.parts)
    output.line(f"{partitioned.name}: {sum(record['nodes'].values()):,} nodes: {counts}; {parts} parts in turn")
    fit = record["fit"]
    if not fit["operations"]:
        float_model = not any(quantizes(row.op_type) for row in partitioned.placement)
        advice = "; onnxhw quantize makes an int8 model of a float one" if float_model else ""
        by = "onnxhw.InferenceSession" if partitioned.golden else "onnxhw run MODEL -i FILE"
        output.line(f"nothing runs on the hardware{advice}; {by} computes it on the host, compile ends with 4")
        if error := undecided(partitioned, ""):
            output.line(f"  {error.what}")
            output.line(f"  hint: {error.hint}")
        return
    least = "" if fit["exact"] else "at most " if fit["at_most"] else "about " if fit["about"] else "at least "
    output.line(f"on {record['board']}, preset {record['preset']}: {least}{fit['cycles']:,} cycles, "
                f"{fit['macs_nominal']:,} multiply-accumulates, weights {fit['weight_bytes']:,} of "
                f"{fit['weight_bytes_available']:,} bytes, largest tensor {fit['activation_bytes']:,} of "
                f"{fit['activation_bytes_available']:,}")  # fmt: skip
    if record["unused_memory"]:
        output.line(f"{record['board']} has {record['unused_memory']}, for which there is no controller: programs run "
                    "from the chip's own memories only")  # fmt: skip
    for one in record["unpacked"]:
        output.line(f"input {one['input']!r} is not packed: {one['reason']}")
    if fit["segments"]:
        why = "states in external memory" if record["states"] else "larger than the chip"
        output.line(f"{why}: {fit['segments']:,} segments with {fit['external_bytes']:,} of "
                    f"{fit['external_bytes_available']:,} bytes of external memory, of which {fit['moved_bytes']:,} "
                    "bytes pass in a run")  # fmt: skip
    programs = sum(part["where"] == "hardware" for part in record["parts"])
    in_turn = f", as {programs} programs in turn" if programs > 1 else ""
    if record["hardware_share"] < HARDLY:
        output.line(f"hardly anything runs on the hardware: {record['hardware_share']:.1%} of the multiplications")
    else:
        output.line("fits" + in_turn if fit["fits"] else f"not decided: {fit['reason']}")
    if record["waiting"]:
        _print_times(output, record["parts"], record["waiting"])
        output.line(throughput_sentence(record["throughput"]))


def _print_times(output: Output, parts: list[dict[str, Any]], waiting: dict[str, Any]) -> None:
    """What an inference takes: of each part on the hardware where there are several, and of all."""
    from ..compiler.cost import ms_text, waiting_sentence

    rows = [(number, part) for number, part in enumerate(parts) if part["where"] == "hardware"]
    if len(rows) > 1:
        shown = rows[:SHOWN]
        output.table(
            ("part", "operations", "line ms", "load ms", "core ms", "host ms", "faster"),
            [
                (number, part["operations"],
                 *(ms_text(part[f"{name}_ms"]) for name in ("line", "load", "core", "host")),
                 "host" if part["host_ms"] < part["line_ms"] + part["load_ms"] + part["core_ms"] else "hardware")
                for number, part in shown
            ],
            title="on the hardware",
        )  # fmt: skip
    output.line(waiting_sentence(waiting))
