"""`check_plan`: the proofs of a plan, made from its segments alone, without a look at how they were chosen."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import InternalError
from ..ir.boxes import Box
from ..ir.graph import Graph
from ..ir.verify import verify
from .chaining import pending_words
from .gathering import gathered_words, on_chip
from .plan import Buffer, Plan, Segment, peak_words, ports_of, region_words, weights_of
from .weight_stream import may_stream

Written = dict[str, npt.NDArray[np.bool_]]


def check_plan(graph: Graph, plan: Plan, config: HwConfig) -> None:
    """`InternalError` E1391 unless

    - every segment's graph is sound, and its ports have the shapes of the regions that they stand for;
    - every input is loaded, or on chip from the segment before, or made there by those right before it, each of which
      makes some whole rows of it;
    - every element is written once, by a segment before the one that reads it, and all outputs are written;
    - what a segment needs at once fits weight and activation memory, loads that come early included, and those
      read nothing that the segment before writes; only the weights of one operation alone, of one set of columns, may
      come in pieces;
    - every buffer is as large as its tensor, or as the weights that it holds; it is in use whenever it is written or
      read, lies in external memory, and shares no byte with another that is in use at the same time.
    """
    written: Written = {name: np.zeros(x.shape, bool) for name, x in graph.tensors.items()}
    for port in graph.inputs:
        written[port.tensor][:] = True
    for n, segment in enumerate(plan.segments):
        _ports(n, segment, graph)
        _operands(n, segment, plan.segments[:n], written)
        _capacity(n, plan.segments, config)
        _results(n, segment, written)
    for port in graph.outputs:
        _require(bool(written[port.tensor].all()), port.tensor, "is not written as a whole")
    _buffers(graph, plan, config)


def _require(holds: bool, where: object, what: str) -> None:
    if not holds:
        raise InternalError("E1391", what, where=f"segment {where}" if isinstance(where, int) else str(where))


def _ports(n: int, segment: Segment, graph: Graph) -> None:
    verify(segment.graph)
    for ports, regions in ((segment.graph.inputs, segment.inputs), (segment.graph.outputs, segment.outputs)):
        _require(len(ports) == len(regions), n, "has other ports than regions")
        for port, region in zip(ports, regions, strict=True):
            tensor, whole = segment.graph.tensors[port.tensor], graph.tensors[region.tensor]
            inside = region.box.size > 0 and region.box.inside(Box.whole(whole.shape))
            _require(inside, n, f"{region} is no box of its tensor")
            alike = (tensor.shape, tensor.scale, tensor.zero_point) == (region.box.shape, whole.scale, whole.zero_point)
            _require(alike, n, f"port {port.tensor} is not {region}")


def _operands(n: int, segment: Segment, earlier: Sequence[Segment], written: Written) -> None:
    there = on_chip(earlier)
    for region in segment.inputs:
        _require(region in segment.loads or region in there, n, f"{region} is not on chip")
    for region in segment.loads:
        _require(region in segment.inputs, n, f"{region} is loaded for nothing")
        _require(bool(written[region.tensor][region.box.slices].all()), n, f"{region} is read before it is written")


def _results(n: int, segment: Segment, written: Written) -> None:
    whole = segment.gathered
    for region in segment.outputs:
        if whole:
            rows = region.tensor == whole.tensor and region.box.inside(whole.box) and region.box.cols == whole.box.cols
            _require(rows and len(segment.outputs) == 1, n, f"{region} is not of whole rows of {whole}")
            _require(whole.box == Box.whole(written[whole.tensor].shape), n, f"{whole} is not whole")
        mine = written[region.tensor][region.box.slices]
        _require(not mine.any(), n, f"{region} is written twice")
        mine[:] = True


def _capacity(n: int, segments: Sequence[Segment], config: HwConfig) -> None:
    segment, after = segments[n], segments[n + 1] if n + 1 < len(segments) else None
    words = sum(weights_of(segment, config).values())
    fits = words <= config.weight_depth or may_stream(segment.graph, config)
    _require(fits, n, f"needs {words} weight words of {config.weight_depth}")
    kept = set(after.inputs) - set(after.loads) if after else set()
    words = peak_words(segment.graph, config, ports_of(segment, kept)) + gathered_words(segment, config)
    _require(words <= config.act_words, n, f"needs {words} activation words of {config.act_words}")
    if after and after.early:
        for load, made in product(after.loads, segment.outputs):
            apart = load.tensor != made.tensor or not load.box.meets(made.box)
            _require(apart, n + 1, f"{load} is loaded while {made} is being made")
        words += region_words(after.loads, config) + pending_words(segments[:n], config)
        _require(words <= config.act_words, n + 1, f"comes too early: {words} activation words of {config.act_words}")
    _require(n > 0 or not segment.early, n, "comes early, but nothing runs before it")


def _buffers(graph: Graph, plan: Plan, config: HwConfig) -> None:
    assert config.external is not None
    tensors = {buffer.name: buffer for buffer in plan.buffers if not buffer.weights}
    weights = {buffer.name: buffer for buffer in plan.buffers if buffer.weights}
    _require(len(tensors) + len(weights) == len(plan.buffers), "buffers", "two have one name")
    for name, buffer in tensors.items():
        _require(buffer.size == graph.tensors[name].shape[1] * _pixels(graph, name), name, "is not its tensor's size")
    end = len(plan.segments)
    for port in graph.inputs:
        _uses(tensors, port.tensor, -1)
    for port in graph.outputs:
        _uses(tensors, port.tensor, end)
    needed: dict[str, dict[tuple[int, int], int]] = {}
    for n, segment in enumerate(plan.segments):
        for region in segment.loads:
            _uses(tensors, region.tensor, n)
        for region in segment.outputs:
            _uses(tensors, region.tensor, n)
            _uses(tensors, region.tensor, min(n + 1, end))  # stores go on while the next segment runs
        for (op, channels), words in weights_of(segment, config).items():
            needed.setdefault(op, {})[channels] = words
            _uses(weights, op, -1)
            _uses(weights, op, end)
    for op, parts in needed.items():
        least = sum(words * config.weight_word + 8 * (high - low) for (low, high), words in parts.items())
        _require(weights[op].size >= least, op, f"needs {least} bytes for its weights")
    for buffer in plan.buffers:
        inside = buffer.address >= 0 and buffer.address + buffer.size <= config.external.size
        _require(inside, buffer.name, "leaves external memory")
    for a, b in combinations(plan.buffers, 2):
        apart = a.address + a.size <= b.address or b.address + b.size <= a.address
        _require(apart or a.last < b.first or b.last < a.first, a.name, f"shares bytes with {b.name}")


def _pixels(graph: Graph, name: str) -> int:
    return graph.tensors[name].height * graph.tensors[name].width


def _uses(buffers: dict[str, Buffer], name: str, n: int) -> None:
    _require(name in buffers, name, "has no buffer")
    _require(buffers[name].first <= n <= buffers[name].last, name, f"is not kept as long as segment {n}")
