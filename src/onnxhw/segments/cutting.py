"""`cut`: the segment that makes boxes of the results of a group of operations."""

from collections.abc import Mapping, Sequence

from ..ir.boxes import Box
from ..ir.graph import Copy, Graph, Op, Piece, Port, Tensor
from ..ir.windows import Pads
from .plan import OperationPart, Region, Segment

Boxes = dict[str, Box]


class PartsOf:
    """What operations of a graph need for a box of their result, and their parts that make it, each worked out once: of
    a search's groups many have the same ones."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._needed: dict[tuple[str, Box], list[Box]] = {}
        self._parts: dict[tuple[str, Box], Op | None] = {}

    def needed(self, op: Op, box: Box) -> list[Box]:
        """`Operation.needed`."""
        key = op.output, box
        if (found := self._needed.get(key)) is None:
            found = self._needed[key] = op.needed(box, self.graph.operands(op), self.graph.tensors[op.output])
        return found

    def part(self, op: Op, box: Box) -> Op | None:
        """`Operation.part`."""
        key = op.output, box
        if key not in self._parts:
            self._parts[key] = op.part(box, self.graph.operands(op), self.graph.tensors[op.output])
        return self._parts[key]


def boxes_of(
    graph: Graph, ops: Sequence[Op], wanted: Mapping[str, Box], parts: PartsOf | None = None
) -> Boxes | None:
    """Of every tensor that the operations make or read the box that the boxes `wanted` of results need; None if nothing
    of an operation's result is needed, or more of a wanted tensor than is wanted. `parts`: what is known of them."""
    parts = parts or PartsOf(graph)
    boxes = dict(wanted)
    for op in reversed(ops):
        if op.output not in boxes or not boxes[op.output].size:
            return None
        for name, box in zip(op.inputs, parts.needed(op, boxes[op.output]), strict=True):
            boxes[name] = boxes[name].hull(box) if name in boxes else box
    return boxes if all(boxes[name] == box for name, box in wanted.items()) else None


def cut(
    graph: Graph, ops: Sequence[Op], wanted: Mapping[str, Box], parts: PartsOf | None = None
) -> Segment | None:
    """The segment of `ops`, in order, that makes the boxes `wanted`; None if an operation has no such part. `parts`:
    what is known of them.

    The tensors of its graph are numbered, so that segments which do the same are alike. All inputs are loaded.
    """
    parts = parts or PartsOf(graph)
    boxes = boxes_of(graph, ops, wanted, parts)
    return _Cut(graph, boxes, parts).segment(ops, wanted) if boxes else None


class _Cut:
    """A segment under construction; `names`: of the tensors in its graph by those of the model."""

    def __init__(self, graph: Graph, boxes: Boxes, known: PartsOf) -> None:
        self.graph, self.boxes, self.known = graph, boxes, known
        self.made = Graph("segment", {}, [], [], [])
        self.names: dict[str, str] = {}
        self.parts: list[OperationPart] = []

    def segment(self, ops: Sequence[Op], wanted: Mapping[str, Box]) -> Segment | None:
        made = {op.output for op in ops}
        inputs = list(dict.fromkeys(name for op in ops for name in op.inputs if name not in made))
        inputs = [name for name in inputs if self.boxes[name].size]
        for name in inputs:
            self.names[name] = self._tensor(self.graph.tensors[name], self.boxes[name])
        if not all(map(self._add, ops)):
            return None
        self.made.inputs = [self._port(self.names[name]) for name in inputs]
        self.made.outputs = [self._port(self.names[name]) for name in wanted]
        read = tuple(Region(name, self.boxes[name]) for name in inputs)
        outputs = tuple(Region(name, box) for name, box in wanted.items())
        return Segment(self.made, tuple(self.parts), read, outputs, read)

    def _add(self, op: Op) -> bool:
        """Whether the operation has a part that makes its box of the operands' boxes."""
        y, box = self.graph.tensors[op.output], self.boxes[op.output]
        part, needed = self.known.part(op, box), self.known.needed(op, box)
        if part is None:
            return False
        taken: list[str] = []
        for name, mine in zip(op.inputs, needed, strict=True):
            if not mine.size:
                continue
            have = self.boxes[name]
            if mine == have:
                taken.append(self.names[name])
            elif mine.channels != have.channels:
                return False
            elif len(part.inputs) == 1 and (padded := part.padded(_cropped(have, mine))):
                part = padded
                taken.append(self.names[name])
            else:
                taken.append(self._crop(self.names[name], have, mine))
        self.names[op.output] = self._tensor(y, box)
        self.parts.append(OperationPart(op.name, op.output, box))
        self.made.ops.append(part.reading(tuple(taken), self.names[op.output]))
        return True

    def _crop(self, name: str, have: Box, mine: Box) -> str:
        """A tensor of the box `mine` of one that holds the box `have`."""
        (top, left, *_), (rows, cols) = _cropped(have, mine), mine.shape[2:]
        width = have.shape[3]
        cropped = self._tensor(self.made.tensors[name], mine)
        piece = Piece(0, -top * width - left, width, 1, rows, cols)
        self.made.ops.append(Copy(f"crop of {name} to {cropped}", (name,), cropped, pieces=(piece,)))
        return cropped

    def _tensor(self, like: Tensor, box: Box) -> str:
        name = f"t{len(self.made.tensors)}"
        self.made.tensors[name] = Tensor(name, box.shape, like.scale, like.zero_point)
        return name

    def _port(self, name: str) -> Port:
        return Port(name, self.made.tensors[name].shape, "int8", name)


def _cropped(have: Box, mine: Box) -> Pads:
    """What is left out around a box inside another, as padding."""
    (y0, y1), (x0, x1), (top, bottom), (left, right) = have.rows, have.cols, mine.rows, mine.cols
    return y0 - top, x0 - left, bottom - y1, right - x1
