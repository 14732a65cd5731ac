"""`rate`: how often an operator's results differ, over random models."""

from dataclasses import dataclass

import numpy as np

from onnxhw import golden
from onnxhw.partition import load

from .operators import CASES
from .session import session


@dataclass(frozen=True)
class Rate:
    """Results of one operator that differ from onnxruntime's, over several models with random constants."""

    operator: str
    scales: str
    elements: int
    differ: int
    largest: int


def rate(operator: str, powers: bool, elements: int, seed: int = 1) -> Rate:
    """The rate of one operator over at least `elements` results."""
    rng = np.random.default_rng(seed)
    total = differ = largest = 0
    while total < elements:
        model = CASES[operator](rng, powers)
        graph, runtime = load(model.SerializeToString()), session(model, True)
        feeds = {port.name: rng.integers(0, 256, port.shape).astype(np.uint8).view(port.dtype) for port in graph.inputs}
        ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))["y_q"]
        gap = np.abs(ours.astype(int) - runtime.run(["y_q"], feeds)[0])
        total, differ, largest = total + gap.size, differ + int((gap > 0).sum()), max(largest, int(gap.max()))
    return Rate(operator, "powers of two" if powers else "random", total, differ, largest)
