"""`normalise`: what a file may say in several ways, said in one, so that nothing behind has to know the others.

imports        every domain that is used, once, at the version that binds
sizes          a dimension of -1 is an open one
given inputs   a nested graph's inputs are what its operator gives; before IR version 4 its initializers were inputs too
absent         what a node leaves out at the end of its inputs and outputs is not there, not an empty name
pads           a window whose pads are computed (auto_pad) has none of its own, which could only be zeros
names          a nested graph has no input or initializer of the name of a value around it
"""

from collections.abc import Iterable, Sequence

import onnx

from .specification.findings import Findings
from .specification.functions import every_node
from .specification.signatures import canonical
from .specification.types import OPEN, dims, graphs
from .specification.versions import imports
from .subgraph_copy import FreshNames, nested, own_names
from .trailing_names import trim

WITHOUT_INPUTS = 4
"""The IR version from which initializers need not be inputs."""
NAMED = ("input", "output", "initializer", "value_info")
"""The fields of a graph whose entries have names of values."""


def normalise(model: onnx.ModelProto) -> None:
    """Rewrite a model in place that `spec.diagnose` has no error for; the result means the same."""
    for owner in (model, *model.functions):
        sets = _imports(owner)
        for node in every_node(owner.graph.node if isinstance(owner, onnx.ModelProto) else owner.node):
            trim(node, sets)
    for _, dim in dims(model):
        if dim.dim_value == OPEN:
            dim.ClearField("dim_value")
    for owner in (model.graph, *model.functions):
        _pads(every_node(owner.node))
    inner = [graph for graph in graphs(model) if graph is not model.graph]
    if model.ir_version < WITHOUT_INPUTS and any(graph.initializer for graph in inner):
        for graph in inner:
            _given(graph)
        model.ir_version = WITHOUT_INPUTS
    if inner:
        fresh = FreshNames.of(model.graph)
        _distinct(model.graph, set(), {}, fresh)
        for function in model.functions:
            taken = {name for node in every_node(function.node) for name in (*node.input, *node.output)}
            around = {*function.input, *(name for node in function.node for name in node.output)}
            _renamed(function.node, around, {}, FreshNames(taken | fresh.taken))


def _imports(owner: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    """Each domain once: the highest version binds, as `spec.versions.imports` says. The versions by domain."""
    entries = owner.opset_import
    nodes = owner.graph.node if isinstance(owner, onnx.ModelProto) else owner.node
    sets = imports(entries, every_node(nodes), "", Findings())
    if len(entries) == len(sets):
        return sets
    names = {canonical(entry.domain): entry.domain for entry in entries if entry.domain != "ai.onnx"}
    del entries[:]
    for domain, version in sets.items():
        entries.add(domain=names.get(domain, domain or "ai.onnx"), version=version)
    return sets


def _pads(nodes: Iterable[onnx.NodeProto]) -> None:
    """Drop zero pads beside an auto_pad: shape inference would take them, and onnxruntime refuses both."""
    for node in nodes:
        if any(one.name == "auto_pad" and one.s not in (b"", b"NOTSET") for one in node.attribute):
            for place, one in enumerate(node.attribute):
                if one.name == "pads" and not any(one.ints) and not one.ref_attr_name:
                    del node.attribute[place]
                    break


def _given(graph: onnx.GraphProto) -> None:
    """Drop inputs that are initializers."""
    constants = {tensor.name for tensor in graph.initializer}
    kept = [value for value in graph.input if value.name not in constants]
    if len(kept) < len(graph.input):
        del graph.input[:]
        graph.input.extend(kept)


def _distinct(graph: onnx.GraphProto, around: set[str], renamed: dict[str, str], fresh: FreshNames) -> None:
    """Rename inputs and initializers that have a name of `around`, and what is `renamed` around, in place."""
    own = own_names(graph)
    made = {name for node in graph.node for name in node.output}
    names = {old: new for old, new in renamed.items() if old not in own | made}
    names |= {name: fresh.name(graph.name, name) for name in sorted(own & around)}
    if names:
        entries = [value for field in NAMED for value in getattr(graph, field)]
        for entry in (*entries, *(sparse.values for sparse in graph.sparse_initializer)):
            entry.name = names.get(entry.name, entry.name)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
    _renamed(graph.node, around | own | made, names, fresh)


def _renamed(nodes: Sequence[onnx.NodeProto], around: set[str], names: dict[str, str], fresh: FreshNames) -> None:
    """Rename what nodes read, and the graphs in them; `around` are all values that these may see."""
    for node in nodes:
        if names and not names.keys().isdisjoint(node.input):
            node.input[:] = [names.get(name, name) for name in node.input]
        for graph in nested(node):
            _distinct(graph, around, names, fresh)
