"""`normalise`: what a file may say in several ways, said in one, so that nothing behind has to know the others.

imports     every domain that is used, once, at the version that binds
"""

import onnx

from .spec.findings import Findings
from .spec.functions import every_node
from .spec.signatures import canonical
from .spec.versions import imports


def normalise(model: onnx.ModelProto) -> None:
    """Rewrite a model in place that `spec.diagnose` has no error for; the result means the same."""
    for owner in (model, *model.functions):
        _imports(owner)


def _imports(owner: onnx.ModelProto | onnx.FunctionProto) -> None:
    """Each domain once: the highest version binds, as `spec.versions.imports` says."""
    entries = owner.opset_import
    nodes = owner.graph.node if isinstance(owner, onnx.ModelProto) else owner.node
    sets = imports(entries, every_node(nodes), "", Findings())
    if len(entries) == len(sets):
        return
    names = {canonical(entry.domain): entry.domain for entry in entries if entry.domain != "ai.onnx"}
    del entries[:]
    for domain, version in sets.items():
        entries.add(domain=names.get(domain, domain or "ai.onnx"), version=version)
