"""What the scheduler cannot map goes to the host by what its error is about, not by what its message says."""

from typing import Any

import numpy as np
import pytest

from onnxhw.compiler import place_and_schedule
from onnxhw.compiler.reasons import causes
from onnxhw.errors import UnsupportedError
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.sched.lower import lower

TINY = 2.0**-20 / 37
"""A scale so small that no constant of the requantizer is proved."""
NAMES = ["pool", "p" * 400, "p' (AveragePool): node 'first"]
"""Such as a message shows in another way, or shortened, and one in which another node is named."""


def pools(model: Any, *names: str) -> Any:
    """A pool that the scheduler can map, called "first", and of each name one that it cannot."""
    x = model.input([1, 3, 4, 4], 0.125)
    good = model.node("AveragePool", x, kernel_shape=[2, 2])
    model.nodes[-1].name = "first"
    model.output(model.requantize(good, 0.125))
    for name in names:
        y = model.node("AveragePool", x, kernel_shape=[2, 2])
        model.nodes[-1].name = name
        model.output(model.requantize(y, TINY))
    return model


@pytest.mark.parametrize("names", [[name] for name in NAMES] + [NAMES])
def test_an_operation_that_cannot_be_mapped_goes_to_the_host_whatever_its_name(model: Any, names: list[str]) -> None:
    placed = place_and_schedule(pools(model, *names).bytes(), preset("mini"))
    where = {row.node: row.where for row in placed.model.placement}
    assert {name: where[name] for name in names} == dict.fromkeys(names, "host")
    assert where["first"] == "hardware"


def test_every_cause_says_which_operation_it_is_about(model: Any) -> None:
    graph = load(pools(model, *NAMES).bytes())
    with pytest.raises(UnsupportedError) as caught:
        lower(graph, preset("mini"))
    wrong = {op.name for op in graph.ops if np.isclose(graph.tensors[op.output].scale, TINY)}
    assert {cause.operation for cause in causes(caught.value)} == wrong
