"""Import contracts, generated pages, and what a wheel carries."""

import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from onnxhw import __version__


def test_import_contracts(repository):
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed")
    environment = {"PYTHONPATH": "src", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    run = subprocess.run([command], cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_no_folder_of_tests_is_passed_over(repository, pytestconfig):
    folders = {part for path in (repository / "tests").rglob("test_*.py") for part in path.parent.parts}
    skipped = pytestconfig.getini("norecursedirs")
    assert {name for name in folders if any(fnmatch(name, pattern) for pattern in skipped)} <= set(repository.parts)


def test_generated_pages_are_fresh(repository):
    run = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_makefile_lists_every_task(repository):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    listed = subprocess.run(["make"], cwd=repository, capture_output=True, text=True, check=True).stdout
    for task in ("demo", "test", "lint", "bench", "docs", "clean"):
        assert f"make {task} " in listed


@pytest.mark.slow
def test_the_wheel_has_boards_templates_and_no_tests(repository, tmp_path):
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns(
        ".git", ".venv", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"
    )
    shutil.copytree(repository, source, ignore=ignore)
    run = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode and "hatchling" in run.stderr:
        pytest.skip("the build backend cannot be installed here (offline)")
    assert run.returncode == 0, run.stderr
    names = zipfile.ZipFile(tmp_path / f"onnxhw-{__version__}-py3-none-any.whl").namelist()
    for name in (
        "onnxhw/boards/ulx3s-85f.toml",
        "onnxhw/report/report.html.j2",
        "onnxhw/py.typed",
        "onnxhw/cli/app.py",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("tests", "bench/", "examples"))]
