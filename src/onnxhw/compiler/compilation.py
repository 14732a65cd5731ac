"""`compile`: the program of a model, or of an integer graph, for one configuration."""

from collections.abc import Mapping

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.parts import HardwarePart
from ..onnxfile.limits import Limits
from ..onnxmodel.prepared import Source
from ..partition import PartitionedModel, refuse
from ..passes.variants import choose
from ..program.model import DeviceProgram
from ..program.parts import Program
from ..program.traffic import Rates
from .capacity import larger
from .cost import Cost, Prefer, of_program
from .placement import Placement, place
from .reasons import causes, size_error


def compile(
    source: Source | Graph,
    config: HwConfig,
    *,
    limits: Limits | None = None,
    shapes: Mapping[str, int] | None = None,
    patches: bool | None = True,
    rates: Rates | None = None,
    prefer: Prefer = "speed",
    exact_softmax: bool = False,
) -> Program:
    """The checked program of a model, or of an integer graph as a whole.

    Parameters
    ----------
    limits, shapes, exact_softmax : as of `onnxhw.partition.read`; a graph has none.
    patches : inputs of a first convolution are loaded as patches of its window if that takes fewer cycles; False: only
        if the model does not fit as it is. None: what takes least time of line and core at these `rates`; as True if
        they are None.
    rates, prefer : with `rates`, parts that the host runs quicker are left to it (`cost.slower`, W3480), unless
        `prefer` is "hardware".

    What `partition` places on the hardware but the scheduler cannot map (no constant proved, say) goes to the host
    too. `InvalidModelError` (E3xxx); `UnsupportedError` E4401 names nodes that nothing can run; `DoesNotFitError`
    (E5xxx) what is too large. What comes back has passed `onnxhw.sched.checker`.
    """
    if isinstance(source, Graph):
        return Program.of(compile_graph(source, config, patches=patches, rates=rates))
    return place_and_schedule(
        source, config, limits=limits, shapes=shapes, patches=patches, rates=rates, prefer=prefer,
        exact_softmax=exact_softmax,
    ).made  # fmt: skip


def compile_graph(
    graph: Graph, config: HwConfig, *, patches: bool | None = True, rates: Rates | None = None
) -> DeviceProgram:
    """The checked program of one integer graph on the hardware as a whole; `patches` and `rates` as in `compile`.

    `UnsupportedError` (E4xxx) and `DoesNotFitError` (E5xxx) say what is in the way.
    """
    try:
        return _schedule(graph, config, patches, rates)
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
    patches: bool | None = True,
    rates: Rates | None = None,
    prefer: Prefer = "speed",
    exact_softmax: bool = False,
) -> Placement[Program]:
    """As `compile`, with where its nodes run and what was moved to the host."""

    def attempt(model: PartitionedModel) -> Program:
        refuse(model)
        parts = [
            _schedule(part.graph, config, patches, rates) if isinstance(part, HardwarePart) else part
            for part in model.parts
        ]
        return Program(model.name, model.inputs, model.outputs, parts, model.batch)

    def costs(model: PartitionedModel, made: Program) -> list[Cost]:
        assert rates is not None
        pairs = zip(model.hardware, made.programs, strict=True)
        return [of_program(part.graph, program, rates) for part, program in pairs]

    judge = costs if rates and prefer == "speed" else None
    return place(source, config, attempt, limits=limits, shapes=shapes, exact_softmax=exact_softmax, costs=judge)


def _schedule(graph: Graph, config: HwConfig, patches: bool | None, rates: Rates | None) -> DeviceProgram:
    """`sched.fastest` of the graph's variants, with the presets that may do in the hint of what is too large."""
    from .. import sched  # only here: it takes long to import

    by = rates if patches is None else None
    try:
        return choose(graph, config, patches, lambda groups: sched.fastest(groups, config, by))
    except DoesNotFitError as error:
        hint = larger([graph], config, error.code)
        raise DoesNotFitError(error.code, error.what, where=error.where, hint=hint) from error
