"""No file of the package imports itself by way of others, not even inside a function."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

KNOWN = {("onnxhw.rtl.primitives", "onnxhw.rtl.cells")}
"""Behavioural cells are made of the cells that they stand for."""


def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("onnxhw", exclude_type_checking_imports=True)
    found = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    return {name: {other for other in others if (name, other) not in KNOWN} for name, others in found.items()}


def test_no_import_circle() -> None:
    TopologicalSorter(imports()).prepare()


def test_a_circle_is_seen() -> None:
    found = imports()
    found["onnxhw.ir.graph"].add("onnxhw.convert.conversion")
    with pytest.raises(CycleError):
        TopologicalSorter(found).prepare()
