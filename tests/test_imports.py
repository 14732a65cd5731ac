"""No file imports itself by way of others, not even inside a function or for type checkers only; none is hidden."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import onnxhw

ROOT = Path(onnxhw.__file__).parent


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


def bound(text: str) -> set[str]:
    """Names that a package's own file gives a meaning, other than that of a module in it."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            own = node.level == 1 and not node.module  # `from . import name` is the module
            found |= {name.asname or name.name for name in node.names if name.asname or not own}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


@pytest.mark.parametrize("init", sorted(ROOT.rglob("__init__.py")), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_no_package_hides_a_module(init: Path) -> None:
    """`from package import name` means the module wherever there is one."""
    folder = init.parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert bound(init.read_text(encoding="utf-8")) & modules == set()


def test_a_hidden_module_is_seen() -> None:
    assert bound("from .a import a\nfrom . import b\nfrom .. import c\nfrom ..x import d as e") == {"a", "c", "e"}
    assert bound("def f(): ...\nclass G: ...\nh: int = 1\ni, j = 2, 3") == {"f", "G", "h", "i", "j"}
