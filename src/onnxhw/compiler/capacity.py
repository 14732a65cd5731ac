"""`fit`: memory and cycles of hardware parts before anything is built: exactly where that is quick, else bounds.

The scheduler answers exactly, in about a tenth of a second per operation; of more than `SEARCHED` operations or `PARTS`
parts it gives the cycles before its search for better cuts. Beyond `QUICK` operations, or `TILES` weight tiles, the
answer is what must hold for every schedule:

    run_cycles   >= multiply-accumulates with weights other than 0 / those per cycle of array and depthwise unit
    weights      >= the bytes of all output channels' weights, equal ones once
    activations  >= the bytes of the largest tensor

each the least that a rewrite of the graph (`onnxhw.passes`) leaves of it.

With external memory, parts that are larger than the chip are planned (`segmented`), and what they take is a forecast;
of a model of more than `PLANNED` operations there are bounds only, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, prod
from typing import Any

from ..board import boards
from ..config import WINDOW, HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..isa.input_port import PASSAGE
from ..passes.variants import variants
from ..presets import PRESETS
from ..program.input_regions import latency
from ..program.traffic import Traffic, plain_traffic, traffic_of
from ..program.variant import Variant
from .external_presets import external_presets
from .segmented import Forecast, SegmentedGraphs, on_chip_or_segmented

QUICK = 64
"""Most operations that are scheduled: an initial schedule takes about 0.02 s for each (0.57 s for the 29 of VWW)."""
TILES = 1 << 14
"""Most weight tiles of a model that is scheduled, if each were used once: time is told tile by tile."""
SEARCHED = 16
"""Most operations for which that search is made: it takes up to two seconds."""
PARTS = 3
"""Most parts for which it is: it takes up to a second of each."""
MAPPED = 256
"""Most operations of a model with a part too large that are looked at for those that cannot be mapped: mapping takes
about 0.04 s for each (1.2 s for the 29 of VWW)."""
PLANNED = 1024
"""Most operations that are planned for external memory: a chain of 1,000 convolutions of 32 channels takes 10 s, the
212 of YOLOv5n 6."""


@dataclass(frozen=True)
class Fit:
    """What the hardware parts need together; each runs alone, so memory is that of the largest.

    `cycles`: of one inference from the acceptance of the last input on; of these, `run_cycles` are those of the runs.
    `exact`: they were scheduled; else bounds, from below, or with `at_most` from above; or with `about` within some
    20 %, of which `segments`, `external_bytes` and `moved_bytes` tell what is not on the chip alone (`Forecast`).
    `fits` is None where the bounds leave it open. `code` and `reason` say what does not fit.
    """

    operations: int
    macs_nominal: int
    cycles: int
    run_cycles: int
    exact: bool
    at_most: bool
    weight_bytes: int
    activation_bytes: int
    weight_bytes_available: int
    activation_bytes_available: int
    fits: bool | None
    code: str = ""
    reason: str = ""
    hint: str = ""
    about: bool = False
    segments: int = 0
    external_bytes: int = 0
    external_bytes_available: int = 0
    moved_bytes: int = 0
    forecasts: tuple[Forecast | None, ...] = ()
    """Of each part what it takes in segments; None if it runs on the chip alone; empty if none is in segments."""
    parts: tuple[tuple[int, Traffic], ...] = ()
    """Of each part the cycles of its run, as exact as all of them, and what travels for an inference; none if it does
    not fit."""


def fit(
    graphs: Sequence[Graph], config: HwConfig, quick: int = QUICK, segmented: SegmentedGraphs | None = None
) -> Fit:
    """The fit of a model's hardware parts on a configuration, with the choice of `onnxhw.compiler.compile`; `segmented`
    keeps plans from one call to the next.

    `UnsupportedError` E43xx for operations that cannot be mapped, where they were looked at: in up to `quick`
    operations, or in a part that is too large of up to `MAPPED`. With external memory, errors as of
    `SegmentedGraphs.forecast`.
    """
    operations = sum(len(graph.ops) for graph in graphs)
    options = [variants(graph, config) for graph in graphs]
    every = [[variant.graph for group in groups for variant in group] for groups in options]
    weights = max((min(map(weight_bytes, each)) for each in every), default=0)
    activations = max((min(map(largest_tensor, each)) for each in every), default=0)
    macs = sum(graph.macs() for graph in graphs)
    leasts = [ceil(min(map(least_macs, each)) / _peak(config)) for each in every]

    def found(
        cycles: tuple[int, int], exact: bool, fits: bool | None, code: str = "", reason: str = "", hint: str = "",
        parts: Sequence[tuple[int, Traffic]] = (),
    ) -> Fit:  # fmt: skip
        return Fit(operations, macs, *cycles, exact, bool(fits) and not exact, weights, activations,
                   config.weight_bytes, config.act_bytes, fits, code, reason, hint, parts=tuple(parts),
                   external_bytes_available=config.external.size if config.external else 0)  # fmt: skip

    least = sum(leasts) + PASSAGE * sum(bool(graph.inputs) for graph in graphs), sum(leasts)
    over = [too_much for graph in graphs if (too_much := excess(graph, config))]

    def bounds(most: str) -> Fit:
        moved = [plain_traffic(graph, config.word) for graph in graphs]
        what = f"more than {most}: bounds only; onnxhw compile decides"
        return found(least, False, None, reason=what, parts=list(zip(leasts, moved, strict=True)))

    if config.external is not None:
        if operations > PLANNED:
            beyond = next(filter(None, (external_excess(graph, config) for graph in graphs)), None)
            return found(least, False, False, *beyond) if beyond else bounds(f"{PLANNED} operations")
        planned = _with_external_memory(graphs, options, config, segmented or SegmentedGraphs(config))
        if planned is not None:
            return replace(found((0, 0), False, True), **planned)
    if not over and not scheduled(graphs, config, quick):
        if error := _too_many_tables(every, config):
            return found(least, False, False, error.code, error.what, larger(graphs, config, error.code))
        return bounds(f"{quick} operations" if operations > quick else f"{TILES} weight tiles")
    if over and operations > max(quick, MAPPED):
        return found(least, False, False, *over[0], larger(graphs, config, over[0][0]))
    from .. import sched  # only here: it takes long to import

    if over:
        for graph in graphs:
            if operations <= quick or excess(graph, config):
                sched.map_operations(graph, config)
        code, reason = over[0]
        return found(least, False, False, code, reason, larger(graphs, config, code))
    try:
        if len(options) > PARTS or operations > SEARCHED:
            figures, exact = [sched.initial_cycles(groups, config) for groups in options], False
        else:
            programs, exact = [sched.fastest(groups, config) for groups in options], True
            figures = [(latency(program), program.cycles, traffic_of(program)) for program in programs]
        total = sum(cycles for cycles, _, _ in figures), sum(run for _, run, _ in figures)
        return found(total, exact, True, parts=[(run, moved) for _, run, moved in figures])
    except DoesNotFitError as error:
        return found(least, False, False, error.code, error.what, larger(graphs, config, error.code))


def _with_external_memory(
    graphs: Sequence[Graph], options: Sequence[Sequence[Sequence[Variant]]], config: HwConfig,
    segmented: SegmentedGraphs,
) -> dict[str, Any] | None:  # fmt: skip
    """Fields of `Fit` if a part is larger than the chip; None if none is."""
    from .. import sched  # only here: it takes long to import

    cycles, run, parts = 0, 0, list[tuple[int, Traffic]]()
    forecasts: list[Forecast | None] = []
    for graph, groups in zip(graphs, options, strict=True):
        made = on_chip_or_segmented(
            bool(segmented.states or excess(graph, config)),
            partial(sched.initial_cycles, groups, config), partial(segmented.forecast, graph),
        )  # fmt: skip
        forecasts.append(made if isinstance(made, Forecast) else None)
        total, own, moved = (
            (made.cycles, made.cycles, made.traffic) if isinstance(made, Forecast) else made
        )
        cycles, run = cycles + total, run + own
        parts.append((own, moved))
    there = [each for each in forecasts if each is not None]
    if not there:
        return None
    return {
        "cycles": cycles, "run_cycles": run, "at_most": False, "about": True, "parts": tuple(parts),
        "forecasts": tuple(forecasts), "segments": sum(each.segments for each in there),
        "external_bytes": max(each.external_bytes for each in there),
        "moved_bytes": sum(each.moved_bytes for each in there),
    }  # fmt: skip


def scheduled(graphs: Sequence[Graph], config: HwConfig, quick: int = QUICK) -> bool:
    """Whether parts are so small that `fit` schedules them."""
    ops = [op for graph in graphs for op in graph.ops]
    return len(ops) <= quick and sum(op.weight.size for op in ops) <= TILES * config.rows * config.cols


def _too_many_tables(parts: Sequence[Sequence[Graph]], config: HwConfig) -> DoesNotFitError | None:
    """E5105 of a part that needs more tables than there are in each of its forms."""
    for forms in parts:
        if sum(op.elementwise and len(set(op.inputs)) == 1 for op in forms[0].ops) > config.tables:
            from ..sched import tables_of

            if (needed := min(len(set(tables_of(form).values())) for form in forms)) > config.tables:
                return DoesNotFitError("E5105", f"needs {needed} tables, {config.name} has {config.tables}")
    return None


def excess(graph: Graph, config: HwConfig) -> tuple[str, str] | None:
    """Code and reason if no schedule of a part can have room for its weights, or for its largest tensor."""
    most = sum(op.weight.size for op in graph.ops)  # equal channels count once: perhaps less
    weights = weight_bytes(graph) if most > config.weight_bytes else most
    return _excess(weights, largest_tensor(graph), config)


def external_excess(graph: Graph, config: HwConfig) -> tuple[str, str] | None:
    """Code and reason if external memory cannot have room for a part's weights and its largest tensor."""
    assert config.external is not None
    size, needed = config.external.size, weight_bytes(graph) + largest_tensor(graph)
    if needed <= size:
        return None
    return "E5190", f"a part has {needed} bytes of weights and of its largest tensor, external memory has {size}"


def _excess(weights: int, activations: int, config: HwConfig) -> tuple[str, str] | None:
    if weights > config.weight_bytes:
        return "E5102", f"a part has {weights} bytes of weights, {config.name} has room for {config.weight_bytes}"
    if activations > config.act_bytes:
        return "E5101", f"a tensor has {activations} bytes, {config.name} has room for {config.act_bytes}"
    return None


ROOM: dict[str, Callable[[HwConfig], int]] = {
    "E5101": lambda config: config.act_bytes,
    "E5102": lambda config: config.weight_bytes,
    "E5103": lambda config: config.param_depth * config.lanes,
    "E5104": lambda config: config.load_ucode + config.array_ucode + config.vector_ucode,
    "E5105": lambda config: config.tables,
    "E5106": lambda config: config.acc_bits,
}
"""By code, how much a configuration has of what is too little."""


def larger(graphs: Sequence[Graph], config: HwConfig, code: str, quick: int = QUICK) -> str:
    """A hint: the presets that `roomier` finds, else those with external memory."""
    if found := roomier(graphs, config, code, quick):
        return f"large enough may be {found}. onnxhw boards MODEL tries them"
    if found := external_presets(config):
        return f"no preset of any board is large enough by itself. With the board's SDRAM: {found}"
    return "no preset of any board is large enough: the model must become smaller"


def roomier(graphs: Sequence[Graph], config: HwConfig, code: str, quick: int = QUICK) -> str:
    """The presets, with their boards, that have more of what is too little, and room as far as `fit` can tell without
    scheduling; empty if there are none."""
    needs = [(weight_bytes(graph), largest_tensor(graph)) for graph in graphs]
    owners = {name: [board.name for board in boards().values() if name in board.presets] for name in PRESETS}
    found = [
        f"preset {name} on {', '.join(owners[name])}"
        for name, other in PRESETS.items()
        if owners[name]
        and _has_more(other, config, code)
        and not any(_excess(*need, other) for need in needs)
        and _may_fit(graphs, other, code, quick)
    ]
    return "; ".join(found)


def _has_more(other: HwConfig, config: HwConfig, code: str) -> bool:
    return code not in ROOM or ROOM[code](other) > ROOM[code](config)


def _may_fit(graphs: Sequence[Graph], config: HwConfig, code: str, quick: int) -> bool:
    if sum(len(graph.ops) for graph in graphs) > quick:
        return True
    return all(
        any(_has_capacity(variant.graph, config, code) for group in variants(graph, config) for variant in group)
        for graph in graphs
    )


def _has_capacity(graph: Graph, config: HwConfig, code: str) -> bool:
    from .. import sched

    try:
        sched.check_capacity(sched.map_operations(graph, config), config)
    except UnsupportedError:
        return False
    except DoesNotFitError as error:
        return error.code == "E5105" != code  # tables alone: what is beyond them runs on the host
    return True


def weight_bytes(graph: Graph) -> int:
    """Bytes of the weights of all output channels, without padding; equal ones count once, as they may be stored."""
    rows: set[bytes] = set()
    for op in graph.ops:
        rows.update(channel.tobytes() for channel in op.weight)
    return sum(map(len, rows))


def least_macs(graph: Graph) -> int:
    """Multiply-accumulates that no schedule leaves out: those of weights other than 0."""
    return sum(op.least_macs(graph.operands(op), graph.tensors[op.output]) for op in graph.ops)


def _peak(config: HwConfig) -> int:
    """Multiply-accumulates per cycle of the array and the depthwise unit beside it."""
    return config.macs_per_cycle + (WINDOW**2 * config.depthwise_lanes if config.depthwise else 0)


def largest_tensor(graph: Graph) -> int:
    """Bytes of the largest activation."""
    return max((prod(tensor.shape) for tensor in graph.tensors.values()), default=0)
