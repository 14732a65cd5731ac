"""`cut`: the segment that makes boxes of the results of a group of operations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from ..ir.boxes import Box
from ..ir.graph import Copy, Graph, Op, Piece, Port, Tensor
from ..ir.windows import Pads
from ..passes.packed_inputs import Origin
from .plan import OperationPart, Region, Segment

Boxes = dict[str, Box]


class PartOf:
    """Of a box of an operation's result: `needed`, the boxes of the operands; `part`, the operation that makes it of
    these, None if there is none; and what a segment has of it."""

    def __init__(self, graph: Graph, op: Op, box: Box) -> None:
        self._graph, self._op, self._box = graph, op, box
        self.needed = op.needed(box, graph.operands(op), graph.tensors[op.output])

    @cached_property
    def part(self) -> Op | None:
        """`Operation.part`."""
        return self._op.part(self._box, self._graph.operands(self._op), self._graph.tensors[self._op.output])

    @cached_property
    def operation_part(self) -> OperationPart:
        """What of the model's operation it is."""
        return OperationPart(self._op.name, self._op.output, self._box)


class Cropped(NamedTuple):
    """A box of one of the model's tensors: a tensor of the same name, that as a port, and as a region."""

    tensor: Tensor
    port: Port
    region: Region


class PartsOf:
    """The parts of a graph's operations, and the boxes of its tensors, each worked out once: of a search's groups many
    have the same ones."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[tuple[str, Box], PartOf] = {}
        self._cropped: dict[tuple[str, Box], Cropped] = {}

    def cropped(self, name: str, box: Box) -> Cropped:
        """A box of a tensor."""
        key = name, box
        if (found := self._cropped.get(key)) is None:
            tensor = replace(self.graph.tensors[name], shape=box.shape)
            found = Cropped(tensor, Port(name, tensor.shape, "int8", name), Region(name, box))
            self._cropped[key] = found
        return found

    def of(self, op: Op, box: Box) -> PartOf:
        """That of a box of an operation's result."""
        key = op.output, box
        if (found := self._known.get(key)) is None:
            found = self._known[key] = PartOf(self.graph, op, box)
        return found


class NeededBoxes:
    """Of every tensor that operations make or read the box that the boxes `wanted` of results need, and the operations'
    parts. The operations are added one by one, from the last to the first."""

    def __init__(self, parts: PartsOf) -> None:
        self.graph, self.known = parts.graph, parts
        self.boxes: Boxes = {}
        self.parts: dict[str, PartOf] = {}
        """By result."""

    def add(self, op: Op, wanted: Box | None) -> bool:
        """Whether an operation's result is needed, and no more of it than is `wanted`, if any is; unless that is so the
        boxes are of no use."""
        boxes = self.boxes
        mine = boxes.get(op.output)
        if wanted is not None:
            if mine is not None and mine.size and not mine.inside(wanted):
                return False
            mine = boxes[op.output] = wanted
        if mine is None or not mine.size:
            return False
        part = self.parts[op.output] = self.known.of(op, mine)
        for name, box in zip(op.inputs, part.needed, strict=True):
            before = boxes.get(name)
            boxes[name] = box if before is None else before.hull(box)
        return True


def cut(graph: Graph, ops: Sequence[Op], wanted: Mapping[str, Box]) -> Segment | None:
    """The segment of `ops`, in order, that makes the boxes `wanted`, `numbered`; None if nothing of an operation's
    result is needed, more of a wanted tensor than is wanted, or if an operation has no such part."""
    needed = NeededBoxes(PartsOf(graph))
    able = all(needed.add(op, wanted.get(op.output)) for op in reversed(ops))
    made = segment_of(needed, ops, list(wanted)) if able else None
    return made and numbered(made)


def segment_of(needed: NeededBoxes, ops: Sequence[Op], wanted: Sequence[str]) -> Segment | None:
    """The segment of `ops`, in order, that makes the boxes `needed` of the tensors `wanted`; None if an operation has
    no such part. All inputs are loaded. Its tensors have the model's names."""
    return _Cut(needed).segment(ops, wanted)


def numbered(segment: Segment) -> Segment:
    """The segment with tensors that are numbered, so that segments which do the same are alike."""
    graph = segment.graph
    names = {name: f"t{n}" for n, name in enumerate(graph.tensors)}
    tensors = {name: replace(graph.tensors[old], name=name) for old, name in names.items()}
    ops = [op.reading(tuple(names[name] for name in op.inputs), names[op.output]) for op in graph.ops]
    inputs, outputs = ([Port(names[port.name], port.shape, port.dtype, names[port.tensor]) for port in ports]
                       for ports in (graph.inputs, graph.outputs))  # fmt: skip
    origins = {names[name]: origin for name, origin in segment.origins.items()}
    return replace(segment, graph=Graph(graph.name, tensors, ops, inputs, outputs), origins=origins)


class _Cut:
    """A segment under construction."""

    def __init__(self, needed: NeededBoxes) -> None:
        self.graph, self.boxes, self.parts = needed.graph, needed.boxes, needed.parts
        self.cropped = needed.known.cropped
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []

    def segment(self, ops: Sequence[Op], wanted: Sequence[str]) -> Segment | None:
        boxes, made = self.boxes, {op.output for op in ops}
        names = dict.fromkeys([name for op in ops for name in op.inputs if name not in made])
        inputs = [self.cropped(name, box) for name in names if (box := boxes[name]).size]
        for each in inputs:
            self.tensors[each.port.name] = each.tensor
        for op in ops:
            if not self._add(op):
                return None
        outputs = [self.cropped(name, boxes[name]) for name in wanted]
        ports = [each.port for each in inputs], [each.port for each in outputs]
        read = tuple([each.region for each in inputs])
        parts = tuple([self.parts[op.output].operation_part for op in ops])
        graph = Graph("segment", self.tensors, self.ops, *ports)
        model = {port.tensor for port in self.graph.inputs}
        origins = {
            each.port.tensor: Origin.of(each.region.box, self.graph.tensors[each.region.tensor].shape)
            for each in inputs if each.region.tensor in model
        }  # fmt: skip
        return Segment(graph, parts, read, tuple([each.region for each in outputs]), read, origins=origins)

    def _add(self, op: Op) -> bool:
        """Whether the operation has a part that makes its box of the operands' boxes."""
        known = self.parts[op.output]
        part = known.part
        if part is None:
            return False
        taken: list[str] = []
        for name, mine in zip(op.inputs, known.needed, strict=True):
            have = self.boxes[name]
            if mine == have:
                if mine.size:
                    taken.append(name)
            elif not mine.size:
                continue
            elif mine.channels != have.channels:
                return False
            elif len(part.inputs) == 1 and (padded := part.padded(_cropped(have, mine))):
                part = padded
                taken.append(name)
            else:
                taken.append(self._crop(name, have, mine))
        self.tensors[op.output] = self.cropped(op.output, self.boxes[op.output]).tensor
        self.ops.append(part if part.inputs == (inputs := tuple(taken)) else part.reading(inputs, op.output))
        return True

    def _crop(self, name: str, have: Box, mine: Box) -> str:
        """A tensor of the box `mine` of one that holds the box `have`."""
        (top, left, *_), (rows, cols) = _cropped(have, mine), mine.shape[2:]
        width, x = have.shape[3], self.graph.tensors[name]
        cropped = next(each for each in _names(f"crop of {name}") if each not in {*self.tensors, *self.graph.tensors})
        self.tensors[cropped] = Tensor(cropped, mine.shape, x.scale, x.zero_point)
        piece = Piece(0, -top * width - left, width, 1, rows, cols)
        self.ops.append(Copy(cropped, (name,), cropped, pieces=(piece,)))
        return cropped


def _names(name: str) -> Iterator[str]:
    """Names, one of which nobody has yet."""
    while True:
        yield name
        name += "'"


def _cropped(have: Box, mine: Box) -> Pads:
    """What is left out around a box inside another, as padding."""
    (y0, y1), (x0, x1), (top, bottom), (left, right) = have.rows, have.cols, mine.rows, mine.cols
    return y0 - top, x0 - left, bottom - y1, right - x1
