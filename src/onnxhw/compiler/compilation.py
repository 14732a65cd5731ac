"""`compile`: the program of a model, or of an integer graph, for one configuration."""

from collections.abc import Mapping, Sequence

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.parts import HardwarePart
from ..onnxfile.limits import Limits
from ..onnxmodel.prepared import Source
from ..partition import PartitionedModel, refuse
from ..passes.variants import variants
from ..program.model import DeviceProgram
from ..program.parts import Program
from ..program.traffic import Rates
from .capacity import excess, larger
from .cost import Cost, Prefer, of_program
from .placement import Placement, place
from .reasons import causes, size_error
from .segmented import SegmentedGraphs, on_chip_or_segmented
from .states import StatePair, require_external, states_of


def compile(
    source: Source | Graph,
    config: HwConfig,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    rates: Rates | None = None,
    prefer: Prefer = "speed",
    exact_softmax: bool = False,
    persist: Sequence[StatePair] = (),
) -> Program:
    """The checked program of a model, or of an integer graph as a whole.

    Parameters
    ----------
    limits, shapes, exact_softmax : as of `onnxhw.partition.read`; a graph has none.
    rates, prefer : with `rates`, parts that the host runs quicker are left to it (`cost.slower`, W3480), unless
        `prefer` is "hardware".
    persist : outputs that are inputs of the next run and stay in external memory; errors as of `states_of`, and E2571
        without external memory. An integer graph has its own (`onnxhw.segments.link`).

    What `partition` places on the hardware but the scheduler cannot map (no constant proved, say) goes to the host
    too. `InvalidModelError` (E3xxx); `UnsupportedError` E4401 names nodes that nothing can run; `DoesNotFitError`
    (E5xxx) what is too large. What comes back has passed `onnxhw.sched.checker`. With external memory, what is larger
    than the chip is one program in segments (`onnxhw.segments`).
    """
    if isinstance(source, Graph):
        return Program.of(compile_graph(source, config))
    return place_and_schedule(
        source, config, limits=limits, shapes=shapes, rates=rates, prefer=prefer, exact_softmax=exact_softmax,
        persist=persist,
    ).made  # fmt: skip


def compile_graph(graph: Graph, config: HwConfig) -> DeviceProgram:
    """The checked program of one integer graph on the hardware as a whole.

    `UnsupportedError` (E4xxx) and `DoesNotFitError` (E5xxx) say what is in the way.
    """
    try:
        return _schedule(graph, config, SegmentedGraphs(config))
    except UnsupportedError as error:
        refused = causes(error)
        if too_large := size_error([graph], refused, config):
            raise too_large from error
        raise


def place_and_schedule(
    source: Source,
    config: HwConfig,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    rates: Rates | None = None,
    prefer: Prefer = "speed",
    exact_softmax: bool = False,
    persist: Sequence[StatePair] = (),
) -> Placement[Program]:
    """As `compile`, with where its nodes run and what was moved to the host."""

    require_external(config, persist)
    segmented = SegmentedGraphs(config)

    def attempt(model: PartitionedModel) -> Program:
        refuse(model)
        segmented.states = states_of(model, persist)
        parts = [
            _schedule(part.graph, config, segmented) if isinstance(part, HardwarePart) else part for part in model.parts
        ]
        return model.program(parts, segmented.states)

    def costs(model: PartitionedModel, made: Program) -> list[Cost]:
        assert rates is not None
        pairs = zip(model.hardware, made.programs, strict=True)
        return [of_program(part.graph, program, rates) for part, program in pairs]

    judge = costs if rates and prefer == "speed" else None
    return place(source, config, attempt, limits=limits, shapes=shapes, exact_softmax=exact_softmax, costs=judge)


def _schedule(graph: Graph, config: HwConfig, segmented: SegmentedGraphs) -> DeviceProgram:
    """`sched.fastest` of the graph's variants, with the presets that may do in the hint of what is too large; where
    there is external memory, a graph that is too large for the chip in segments."""
    from .. import sched  # only here: it takes long to import

    def on_chip() -> DeviceProgram:
        return sched.fastest(variants(graph, config), config)

    if config.external is not None:
        too_large = bool(segmented.states or excess(graph, config))
        return on_chip_or_segmented(too_large, on_chip, lambda: segmented.program(graph))
    try:
        return on_chip()
    except DoesNotFitError as error:
        hint = larger([graph], config, error.code)
        raise DoesNotFitError(error.code, error.what, where=error.where, hint=hint) from error
