"""`correct_biases`: shift each bias by the mean error that quantization causes at its layer's outputs.

Layers are corrected in order of depth: those before are corrected already when a layer's error is measured, so errors
do not count twice. One pass over the samples for each depth.
"""

from collections.abc import Mapping

import numpy as np

from ..qdq import Grid
from .calibrate import Samples
from .floatgraph import FloatGraph, FloatLayer
from .plan import QuantizationPlan
from .runner import Runner
from .write import float_model, qdq_model


def correct_biases(graph: FloatGraph, plan: QuantizationPlan, grids: Mapping[str, Grid], samples: Samples) -> None:
    """Add the mean of ``float - quantized`` over samples and positions to each bias, per channel, in place.

    What is compared is a layer's real result before its Relu and its QuantizeLinear.
    """
    reference = float_model(graph)
    for layers in _by_depth(graph, plan):
        quantized = qdq_model(graph, plan, grids)
        names = [layer.output for layer in layers]
        written = [quantized.results[name] for name in names]
        runners = Runner(reference, names, graph.where), Runner(quantized.model, written, graph.where)
        sums = {layer.output: np.zeros(_channels(layer)) for layer in layers}
        count = 0
        for feeds in samples():
            wanted, found = (runner.run(feeds) for runner in runners)
            count += 1
            for name, other in zip(names, written, strict=True):
                error = wanted[name].astype(np.float64) - found[other]
                sums[name] += error.mean(axis=tuple(axis for axis in range(error.ndim) if axis != 1))
        for layer in layers:
            layer.bias = (quantized.biases[layer.output] + sums[layer.output] / count).astype(np.float32)


def _channels(layer: FloatLayer) -> int:
    assert layer.bias is not None
    return len(layer.bias)


def _by_depth(graph: FloatGraph, plan: QuantizationPlan) -> list[list[FloatLayer]]:
    """The quantized layers with a bias, those with equally many such layers before them together."""
    depth: dict[str, int] = {}
    found: dict[int, list[FloatLayer]] = {}
    for layer in graph.layers:
        own = max((depth.get(name, 0) for name in layer.node.input), default=0)
        if layer.bias is not None and layer.output in plan.layers:
            found.setdefault(own, []).append(layer)
            own += 1
        depth.update({name: own for name in layer.node.output})
    return [found[key] for key in sorted(found)]
