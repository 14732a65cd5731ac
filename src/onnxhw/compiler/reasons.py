"""Why operations leave the hardware: too large, too slow, not mapped; in the words that a user reads."""

from collections.abc import Sequence

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..partition import PartitionedModel
from ..segments import NoPartError
from .capacity import excess, larger
from .cost import Cost, ms_text, slower

Reasons = dict[str, tuple[str, str]]
"""Operations by result, why they go to the host, and what to do."""
SHOWN = 8
"""Most operations in a message: with what stands around them a third of a terminal's 24 lines."""
TABLES_HINT = "a configuration with more tables; the same function of the same scales and zero points shares one"
"""What is said of a node whose table is too many."""
TAKES = "its part takes {} ms on the line and {} ms in the core, about {} ms on the host"
"""Why such an operation does."""
PREFER = "--prefer hardware leaves them on the hardware"
"""What to do about it."""


def size_error(
    graphs: Sequence[Graph], refused: Sequence[UnsupportedError], config: HwConfig, where: str = ""
) -> DoesNotFitError | None:
    """The `DoesNotFitError` (E51xx) of hardware parts that nothing but size keeps from running: memory that is too
    small for any schedule, else the operations in `refused`. None if there are other reasons, or none at all."""
    from .. import sched

    large = [error for error in refused if isinstance(error, sched.TooLargeError)]
    if not large or len(large) < len(refused):
        return None
    lines = [f"{error.where}: {error.what}" for error in large[:SHOWN]]
    over = next((found for graph in graphs if (found := excess(graph, config))), None)
    code, text = over or (large[0].size_code, f"nothing of the model fits {config.name}")
    more = [f"and {len(large) - SHOWN} more"] if len(large) > SHOWN else []
    what = "\n  ".join([f"{text}:", *lines, *more])
    return DoesNotFitError(code, what, where=where, hint=larger(graphs, config, code))


def causes(error: UnsupportedError) -> tuple[UnsupportedError, ...]:
    """The errors of which a scheduler's is made: one for each operation."""
    from .. import sched

    return sched.causes(error)


def no_part(model: PartitionedModel, error: DoesNotFitError) -> Reasons:
    """The operations that go to the host because of one of them no part fits the chip: it alone, or all of its Softmax
    in integers; empty if the error is another."""
    if not isinstance(error, NoPartError):
        return {}
    ops = [op for part in model.hardware for op in part.graph.ops]
    softmax = {*model.integer_softmax}.intersection(n for op in ops if op.name == error.operation for n in op.nodes)
    reason = error.what, error.hint
    return {op.output: reason for op in ops if op.name == error.operation or not softmax.isdisjoint(op.nodes)}


def too_much(model: PartitionedModel, error: DoesNotFitError, config: HwConfig) -> Reasons:
    """The operations that go to the host first because a model is too large; empty if there are none."""
    graphs = [part.graph for part in model.hardware]
    if softmax := set(model.integer_softmax):
        reason = f"with it on the hardware: {error.what}", ""
        return {op.output: reason for graph in graphs for op in graph.ops if not softmax.isdisjoint(op.nodes)}
    if error.code != "E5105":
        return {}
    from .. import sched

    reason = f"its table would be one more than the {config.tables} of {config.name}", TABLES_HINT
    return {op.output: reason for graph in graphs for op in sched.over_table_limit(graph, config.tables)}


def too_slow(model: PartitionedModel, costs: Sequence[Cost]) -> Reasons:
    """The operations of the hardware parts that the host runs quicker."""
    found: Reasons = {}
    several = len(costs) > 1
    for at in slower(costs):
        cost = costs[at]
        why = TAKES.format(*map(ms_text, (cost.line + cost.load * several, cost.core, cost.host)))
        found |= {op.output: (why, PREFER) for op in model.hardware[at].graph.ops}
    return found


def unmapped(model: PartitionedModel, error: UnsupportedError) -> Reasons:
    """The operations that a scheduler's error is about."""
    refused = {cause.operation: (cause.what, cause.hint) for cause in causes(error)}
    return {op.output: refused[op.name] for part in model.hardware for op in part.graph.ops if op.name in refused}
