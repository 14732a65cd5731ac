"""A public class's name says which class it is, wherever it is read: no other module has another of the name."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import onnxhw

ROOT = Path(onnxhw.__file__).parent
SAME_NAME: dict[str, str] = {}
"""Names that several modules may use, each with the reason."""


def classes(text: str) -> list[str]:
    """Public classes of a module, those under a condition too."""
    found: list[str] = []
    for node in ast.parse(text).body:
        for inner in ast.walk(node) if isinstance(node, ast.If | ast.Try) else [node]:
            if isinstance(inner, ast.ClassDef) and not inner.name.startswith("_"):
                found.append(inner.name)
    return found


def shared(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names of which more than one module, given as name and text, has a class."""
    owners: dict[str, list[str]] = defaultdict(list)
    for module, text in modules:
        for name in set(classes(text)):
            owners[name].append(module)
    return {name: sorted(found) for name, found in owners.items() if len(found) > 1}


def test_no_two_modules_have_a_public_class_of_one_name() -> None:
    files = sorted(ROOT.rglob("*.py"))
    found = shared((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in files)
    assert len(files) > 400
    assert {name: owners for name, owners in found.items() if name not in SAME_NAME} == {}
    assert set(SAME_NAME) <= set(found), "exceptions that nothing needs"


def test_a_shared_name_is_seen() -> None:
    text = "class A: ...\nclass _B: ...\nif True:\n    class C: ...\ndef f():\n    class D: ..."
    assert classes(text) == ["A", "C"]
    assert shared([("x", text), ("y", "class _B: ...\nclass C: ..."), ("z", "class D: ...")]) == {"C": ["x", "y"]}
