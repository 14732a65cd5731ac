"""`execute`: a plan's segments in order, each by the golden model, with one array of bytes as external memory."""

from collections.abc import Iterator, Mapping

import numpy as np

from ..golden.model import run
from ..ir.graph import Array8, Graph
from .plan import Plan, Region

POISON = 0x55
"""What external memory holds where nothing was written."""


def execute(graph: Graph, plan: Plan, tensors: Mapping[str, Array8]) -> Iterator[tuple[Region, Array8]]:
    """What every part of every segment makes: the region of the model's tensor, and its values.

    `tensors` as of `onnxhw.golden.run`, one sample. Weights are those of the segments' graphs.
    """
    external = np.full(plan.external_bytes, POISON, np.int8)
    views = {
        buffer.name: external[buffer.address : buffer.address + buffer.size].reshape(graph.tensors[buffer.name].shape)
        for buffer in plan.buffers
        if not buffer.weights
    }
    for port in graph.inputs:
        views[port.tensor][:] = tensors[port.tensor]
    chip: dict[Region, Array8] = {}
    for segment in plan.segments:
        loaded = {region: views[region.tensor][region.box.slices].copy() for region in segment.loads}
        given = {region: loaded[region] if region in loaded else chip[region] for region in segment.inputs}
        ports = zip(segment.graph.inputs, segment.inputs, strict=True)
        made = run(segment.graph, {port.tensor: given[region] for port, region in ports})
        results = {op.name: made[op.output] for op in segment.graph.ops}
        for part in segment.parts:
            yield Region(part.tensor, part.box), results[part.op]
        stored = {
            region: made[port.tensor] for port, region in zip(segment.graph.outputs, segment.outputs, strict=True)
        }
        for region, values in stored.items():
            views[region.tensor][region.box.slices] = values
        if whole := segment.gathered:
            if whole not in chip:
                chip[whole] = np.full(whole.box.shape, POISON, np.int8)
            for region, values in stored.items():
                chip[whole][region.box.slices] = values
            stored[whole] = chip[whole]
        chip = {**given, **stored}


def differences(graph: Graph, plan: Plan, tensors: Mapping[str, Array8]) -> list[Region]:
    """The regions that a plan's parts make otherwise than the golden model makes the whole graph, and those tensors as
    a whole of which it makes nothing, or not all that the model gives."""
    expected = run(graph, tensors)
    seen = {name: np.zeros(x.shape, bool) for name, x in expected.items()}
    found: list[Region] = []
    for region, values in execute(graph, plan, tensors):
        seen[region.tensor][region.box.slices] = True
        if not np.array_equal(values, expected[region.tensor][region.box.slices]):
            found.append(region)
    outputs = {port.tensor for port in graph.outputs} - {port.tensor for port in graph.inputs}
    missing = {op.output for op in graph.ops if not seen[op.output].any()}
    missing |= {name for name in outputs if not seen[name].all()}
    return found + [Region(name, Region.whole(graph, name).box) for name in sorted(missing)]
