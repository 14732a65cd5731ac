"""What a compiled core depends on: every module it imports, and nothing else."""

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from onnxhw.build import cache
from onnxhw.build.cache import sources

NEEDED = """
import sys
import onnxhw.{root}
print(*[module.__file__ for name, module in sys.modules.items() if name.startswith("onnxhw.")])
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package to change."""
    real = Path(str(resources.files("onnxhw")))
    copy = tmp_path / "onnxhw"
    shutil.copytree(real, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache.resources, "files", lambda name: copy)
    return copy


@pytest.mark.parametrize("root", ["rtl.core", "rtl.top"])
def test_every_module_that_is_imported_counts(package: Path, root: str) -> None:
    real = Path(cache.__file__).parents[1]
    command = [sys.executable, "-c", NEEDED.format(root=root)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    names = [Path(path).relative_to(real) for path in loaded.stdout.split()]
    assert len(names) > 20
    file = f"{root.replace('.', '/')}.py"
    before = sources(file)
    for name in names:
        path = package / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "# changed\n", encoding="utf-8")
        assert sources(file) != before, name
        path.write_text(text, encoding="utf-8")
    assert sources(file) == before


@pytest.mark.parametrize(
    "name", ["rtl/top.py", "rtl/link/commands.py", "isa/link.py", "driver/client.py", "sched/scheduler.py"]
)
def test_what_the_core_does_not_import_does_not_count(package: Path, name: str) -> None:
    before = sources("rtl/core.py")
    (package / name).write_text("changed", encoding="utf-8")
    assert sources("rtl/core.py") == before
