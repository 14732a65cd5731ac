"""No file of the package imports itself by way of others, not even inside a function or for type checkers only."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("onnxhw")
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


def test_no_import_circle() -> None:
    TopologicalSorter(imports()).prepare()


def test_a_circle_is_seen() -> None:
    found = imports()
    found["onnxhw.ir.graph"].add("onnxhw.convert.conversion")
    with pytest.raises(CycleError):
        TopologicalSorter(found).prepare()
