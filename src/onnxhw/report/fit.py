"""`fit`: memory and cycles of hardware parts before anything is built: exactly where that is quick, else bounds.

The scheduler answers exactly, in about a tenth of a second per operation. Beyond `QUICK` operations the answer is what
must hold for every schedule:

    cycles       >= multiply-accumulates / multiply-accumulates per cycle
    weights      >= the bytes of all weights
    activations  >= the bytes of the largest tensor

each the least that a rewrite of the graph (`onnxhw.passes`) leaves of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Conv, Graph
from ..passes import variants

QUICK = 64
"""Most operations that are scheduled."""


@dataclass(frozen=True)
class Fit:
    """What the hardware parts need together; each runs alone, so memory is that of the largest.

    `exact`: they were scheduled, and `cycles` is what a run takes; else bounds from below. `fits` is None where the
    bounds leave it open. `code` and `reason` say what does not fit, or why a part cannot be scheduled.
    """

    operations: int
    macs: int
    cycles: int
    exact: bool
    weight_bytes: int
    activation_bytes: int
    weight_bytes_available: int
    activation_bytes_available: int
    fits: bool | None
    code: str = ""
    reason: str = ""
    hint: str = ""


def fit(graphs: Sequence[Graph], config: HwConfig, quick: int = QUICK) -> Fit:
    """The fit of a model's hardware parts on a configuration."""
    operations = sum(len(graph.ops) for graph in graphs)
    options = [variants(graph) for graph in graphs]
    every = [[variant.graph for group in groups for variant in group] for groups in options]
    weights = max((min(map(weight_bytes, each)) for each in every), default=0)
    activations = max((min(map(largest_tensor, each)) for each in every), default=0)
    macs = sum(min(graph.macs() for graph in each) for each in every)

    def found(cycles: int, exact: bool, fits: bool | None, code: str = "", reason: str = "", hint: str = "") -> Fit:
        return Fit(operations, macs, cycles, exact, weights, activations, config.weight_bytes, config.act_bytes, fits,
                   code, reason, hint)  # fmt: skip

    least = ceil(macs / config.macs_per_cycle)
    if weights > config.weight_bytes:
        reason = f"a part has {weights} bytes of weights, {config.name} has room for {config.weight_bytes}"
        return found(least, False, False, "E5102", reason, "a board or preset with more weight memory")
    if activations > config.act_bytes:
        reason = f"a tensor has {activations} bytes, {config.name} has room for {config.act_bytes}"
        return found(least, False, False, "E5101", reason, "a board or preset with more activation memory")
    if operations > quick:
        return found(least, False, None, reason=f"more than {quick} operations: bounds only; onnxhw compile decides")
    from .. import sched  # only here: it takes long to import

    try:
        return found(sum(sched.fastest(groups, config).cycles for groups in options), True, True)
    except DoesNotFitError as error:
        return found(least, False, False, error.code, error.what, error.hint)
    except UnsupportedError as error:
        return found(least, False, None, error.code, error.what, "onnxhw compile moves these operations to the host")


def weight_bytes(graph: Graph) -> int:
    """Bytes of all weights, without any padding."""
    return sum(op.weight.size for op in graph.ops if isinstance(op, Conv))


def largest_tensor(graph: Graph) -> int:
    """Bytes of the largest activation."""
    return max((prod(tensor.shape) for tensor in graph.tensors.values()), default=0)
