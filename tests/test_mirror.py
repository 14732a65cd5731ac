"""Tests lie where their subject lies: tests/rtl/units/test_depthwise.py tests rtl/units/depthwise.py.

A file is called after its subject: a module or package of the folder of the same path, or that folder itself for what
concerns several of its modules. A topic may follow: ``test_session_shapes.py``. Modules directly in the package may
have a folder of tests. Programs beside the package (bench, examples, scripts, sim) are mirrored, too.
"""

from pathlib import Path

import pytest

import onnxhw

ROOT = Path(onnxhw.__file__).parent
TESTS = Path(__file__).parent
BESIDE = ("bench", "examples", "scripts", "sim")
CROSS_CUTTING = {
    "gate": "digests of what every layer makes",
    "ladder": "whole models on every rung of the exactness ladder",
    "netlist": "the rung of the synthesized netlist, and its rig",
    "peers": "what users of other generators complain about",
    "sklearn_exports": "models of another exporter, from reading to results",
    "test_docs.py": "the pages",
    "test_imports.py": "all modules",
    "test_mirror.py": "all tests",
    "test_names.py": "all modules",
    "test_packaging.py": "the wheel",
}
"""Folders and files of tests without one module or package as their subject, each with what it is about."""


def subjects(folder: Path, tests: Path) -> set[str]:
    """What test files in `tests` may be called after, which mirrors `folder`: its modules, its packages, itself."""
    found = {path.stem for path in folder.glob("*.py")}
    found |= {path.name for path in folder.glob("*") if path.is_dir() and any(path.glob("*.py"))}
    itself = folder.is_dir() or folder.with_suffix(".py").is_file()
    return found | ({tests.name} if itself else set())


def mirrors(file: Path, root: Path, beside: Path) -> bool:
    """Whether `file`, relative to the folder of tests, is called after a module or package below `root` or `beside`."""
    folders = [root / file.parent, *([beside / file.parent] if file.parts[0] in BESIDE else [])]
    names = {name for folder in folders for name in subjects(folder, file.parent)} - {""}
    stem = file.stem.removeprefix("test_")
    return any(stem == name or stem.startswith(f"{name}_") for name in names)


@pytest.mark.parametrize("file", [path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py"))], ids=str)
def test_a_test_is_called_after_its_subject(file: Path) -> None:
    assert file.parts[0] in CROSS_CUTTING or mirrors(file, ROOT, TESTS.parent)


def test_exceptions_are_there() -> None:
    assert [name for name in CROSS_CUTTING if not (TESTS / name).exists()] == []


@pytest.mark.parametrize(
    ("file", "good"),
    [
        ("rtl/units/test_depthwise.py", True),
        ("rtl/test_depthwise.py", False),
        ("rtl/test_units.py", True),
        ("rtl/units/test_units_together.py", True),
        ("rtl/units/test_depthwise_edges.py", True),
        ("rtl/units/test_depthwisely.py", False),
        ("board/test_board.py", True),
        ("board/test_pads.py", False),
        ("nowhere/test_nowhere.py", False),
        ("test_files.py", True),
        ("test_nowhere.py", False),
        ("bench/test_simspeed.py", True),
        ("bench/test_nothing.py", False),
    ],
)
def test_what_lies_elsewhere_is_refused(file: str, good: bool) -> None:
    assert mirrors(Path(file), ROOT, TESTS.parent) == good
