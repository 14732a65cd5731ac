"""`plan_grids`: which values of a float graph are quantized, and which of them share a grid.

A quantized layer reads and writes quantized values. Between an operation and the Relu or Clip that follows it alone
there is no quantization: the clamp becomes part of the operation. Layers that only select or move elements have one
grid for operands and result. At the edges of the model, moves and functions of one element stay float: the host does
them, without a second rounding.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from .floatgraph import FloatGraph, FloatLayer

MOVES = frozenset(["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Dropout"])
"""Every element of the operand, elsewhere."""
SELECTIONS = frozenset(
    ["MaxPool", "GlobalMaxPool", "Concat", "Slice", "Split", "Pad", "Expand", "DepthToSpace", "SpaceToDepth", "Resize",
     "ReduceMax"]
)  # fmt: skip
"""Elements of the operands, or zeros."""
FUNCTIONS = frozenset(
    ["Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Gelu", "Swish", "Mish", "Selu",
     "Celu", "Softplus", "Softsign", "Exp", "Abs", "Neg", "Sqrt", "Erf", "ThresholdedRelu"]
)  # fmt: skip
"""Functions of one element."""
OPERATIONS = frozenset(
    ["Add", "Sub", "Mul", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum", "Min", "Max", "PRelu"]
)
"""Their result has a range of its own."""
CLAMPS = frozenset(["Relu", "Clip"])


@dataclass(frozen=True)
class QuantizationPlan:
    """What is quantized.

    `layers`: those computed in integers, by output name. `group`: for each quantized value the name of the first of
    those that share its grid. `sources`: for each group the values whose ranges its grid must cover. `fused`: values
    between an operation and its clamp or bias, each with the result of that. `biases`: the MatMul of higher rank to
    which an Add adds its bias, by the Add's output.
    """

    layers: frozenset[str]
    group: dict[str, str]
    sources: dict[str, tuple[str, ...]]
    fused: dict[str, str]
    biases: dict[str, FloatLayer]

    def result(self, layer: FloatLayer) -> str:
        """The quantized value that a layer's result becomes, after what is fused."""
        name = layer.output
        while name in self.fused:
            name = self.fused[name]
        return name


def operands(graph: FloatGraph, layer: FloatLayer) -> list[str]:
    """The values that a quantized layer would read; none if it cannot be quantized."""
    node = layer.node
    if node.domain or not all(graph.is_float(name) for name in node.output if name):
        return []
    names = [name for name in node.input if name and name not in graph.constants]
    if layer.weight is not None:
        names = [node.input[0]]
    elif node.op_type in ("Add", "Sub", "Mul", "Min", "Max", "Div"):
        if not _operands_fit(graph, layer, names):
            return []
    elif node.op_type not in MOVES | SELECTIONS | FUNCTIONS | OPERATIONS or not _mappable(graph, layer):
        return []
    elif node.op_type == "Concat":
        names = list(node.input)
    else:
        names = [node.input[0]]
    return names if names and all(graph.is_float(name) for name in names) else []


def plan_grids(graph: FloatGraph) -> QuantizationPlan:
    """The plan of a folded graph."""
    uses = graph.uses()
    outputs = {value.name for value in graph.outputs}
    made = {name: layer for layer in graph.layers for name in layer.node.output}
    reads = {layer.output: operands(graph, layer) for layer in graph.layers}
    captured = graph.captured
    for layer in graph.layers:
        if any(name in captured for name in (*reads[layer.output], *layer.node.output)):
            reads[layer.output] = []
    fused, biases, pending = dict[str, str](), dict[str, FloatLayer](), set[str]()
    for layer in graph.layers:
        if not reads[layer.output]:
            continue
        before = _alone_before(layer, made, uses, outputs, reads)
        if before is not None and _adds_bias(graph, layer, before):
            biases[layer.output] = before
        elif _is_constant_row(graph, layer):
            reads[layer.output] = []
            continue
        elif before is None or before.output not in pending or layer.node.op_type not in CLAMPS:
            if _computes(graph, layer):
                pending.add(layer.output)
            continue
        fused[layer.node.input[0]] = layer.output
        pending.add(layer.output)
    edge = _edges(graph, reads, fused)
    for layer in graph.layers:
        before = _alone_before(layer, made, uses, outputs, reads)
        if before is None or {layer.output, before.output} & (edge | pending):
            continue
        if reads[layer.output] and is_function(graph, layer) and is_function(graph, before):
            fused[before.output] = layer.output
    chosen = {name for name, read in reads.items() if read and name not in edge}
    group = _groups(graph, chosen, reads, fused)
    sources: dict[str, list[str]] = {}
    for name in group:
        maker = made.get(name)
        selected = maker is not None and maker.output in chosen and shares_grid(maker)
        if not selected:
            sources.setdefault(_root(group, name), []).append(name)
    return QuantizationPlan(
        frozenset(chosen),
        {name: _root(group, name) for name in group},
        {root: tuple(names) for root, names in sources.items()},
        fused,
        biases,
    )


def shares_grid(layer: FloatLayer) -> bool:
    """Has the result the operands' grid?"""
    return layer.node.op_type in MOVES | SELECTIONS


def is_function(graph: FloatGraph, layer: FloatLayer) -> bool:
    """Is this a function of one element: unary, or arithmetic with a scalar?"""
    node = layer.node
    if node.op_type in FUNCTIONS:
        return True
    return node.op_type in ("Add", "Sub", "Mul", "Div") and any(name in graph.constants for name in node.input)


def _alone_before(
    layer: FloatLayer, made: dict[str, FloatLayer], uses: Counter[str], outputs: set[str], reads: dict[str, list[str]]
) -> FloatLayer | None:
    """The quantizable layer whose result this one alone reads, as its first operand."""
    x = next((name for name in reads[layer.output]), "")
    before = made.get(x)
    if before is None or uses[x] != 1 or x in outputs or x != layer.node.input[0]:
        return None
    return before if reads[before.output] else None


def _computes(graph: FloatGraph, layer: FloatLayer) -> bool:
    """Does the layer end in a requantization, which may clamp?"""
    return layer.weight is not None or (layer.node.op_type in OPERATIONS and not is_function(graph, layer))


def _is_constant_row(graph: FloatGraph, layer: FloatLayer) -> bool:
    """Is this arithmetic with a constant that is not a scalar?"""
    return any(name in graph.constants and graph.constants[name].size > 1 for name in layer.node.input) and (
        layer.node.op_type in ("Add", "Sub", "Mul", "Div") and layer.weight is None
    )


def _adds_bias(graph: FloatGraph, layer: FloatLayer, before: FloatLayer) -> bool:
    """Is this an Add of one constant per output to a MatMul of higher rank?"""
    if before.weight is None or before.bias is not None or layer.node.op_type != "Add":
        return False
    constant = graph.constants.get(layer.node.input[1])
    return constant is not None and constant.shape == (before.weight.shape[1],)


def _operands_fit(graph: FloatGraph, layer: FloatLayer, names: list[str]) -> bool:
    """Two values of one shape (Mul: or one of them of a single pixel), or a value and a constant scalar."""
    shapes = [graph.shape(name) for name in layer.node.input]
    if len(shapes) != 2 or None in shapes:
        return False
    first, second = shapes
    assert first is not None
    assert second is not None
    if len(names) == 1:
        constant = first if layer.node.input[0] in graph.constants else second
        bias = layer.node.op_type == "Add" and len(constant) == 1
        return layer.node.op_type not in ("Min", "Max") and (prod(constant) == 1 or bias)
    if layer.node.op_type == "Div":
        return False
    if first == second:
        return True
    small, large = sorted((first, second), key=prod)
    one_pixel = len(small) == len(large) and small == (*large[:2], *[1] * (len(large) - 2))
    return layer.node.op_type == "Mul" and one_pixel


def _mappable(graph: FloatGraph, layer: FloatLayer) -> bool:
    """Attributes under which a layer selects, moves or maps elements."""
    node, found = layer.node, layer.attributes()
    if node.op_type == "MaxPool":
        return len(node.output) == 1
    if node.op_type == "Pad":
        value = graph.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        zero = (len(node.input) < 3 or not node.input[2]) or (value is not None and not value.any())
        return found.get("mode", "constant") != "constant" or zero
    if node.op_type == "Resize":
        return bool(found.get("mode", "nearest") == "nearest")
    if node.op_type == "Clip":
        return all(name in graph.constants for name in node.input[1:] if name)
    if node.op_type == "PRelu":
        return node.input[1] in graph.constants
    return True


def _edges(graph: FloatGraph, reads: dict[str, list[str]], fused: dict[str, str]) -> set[str]:
    """Layers at the model's inputs and outputs that stay float."""

    def light(layer: FloatLayer) -> bool:
        small = layer.node.op_type in MOVES or is_function(graph, layer)
        return small and layer.node.input[0] not in fused and layer.output not in fused

    near = {value.name for value in graph.inputs}
    edge = set[str]()
    for layer in graph.layers:
        if reads[layer.output] and light(layer) and all(name in near for name in reads[layer.output]):
            edge.add(layer.output)
            near |= set(layer.node.output)
    needed = set[str]()  # values that a quantized layer reads
    for layer in reversed(graph.layers):
        if not reads[layer.output] or layer.output in edge:
            continue
        if light(layer) and not any(name in needed for name in layer.node.output):
            edge.add(layer.output)
        else:
            needed |= set(reads[layer.output])
    return edge


def _groups(graph: FloatGraph, chosen: set[str], reads: dict[str, list[str]], fused: dict[str, str]) -> dict[str, str]:
    """Union-find over the quantized values: each points to itself or to an earlier one of its group."""
    parent: dict[str, str] = {}
    for layer in graph.layers:
        if layer.output not in chosen:
            continue
        values = [name for name in _values(layer, reads) if name not in fused]
        for name in values:
            parent.setdefault(name, name)
        if shares_grid(layer):
            for name in values[1:]:
                first, second = _root(parent, values[0]), _root(parent, name)
                if first != second:
                    parent[second] = first
    return parent


def _values(layer: FloatLayer, reads: dict[str, list[str]]) -> Iterator[str]:
    yield from dict.fromkeys(reads[layer.output])
    yield from (name for name in layer.node.output if name)


def _root(parent: dict[str, str], name: str) -> str:
    while parent[name] != name:
        name = parent[name]
    return name
