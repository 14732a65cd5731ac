"""Reading in a child process gives the same models and errors, and bounds memory and time."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hostile_base import DATA, base
from hostile_external import outside

from onnxhw.errors import InvalidModelError, UsageError
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel.read import read
from onnxhw.partition import untrusted
from onnxhw.partition.untrusted import read_untrusted

INFINITE = np.full_like(DATA, np.inf)
BUSY = "\n_limit(1, 1 << 34)\nwhile True: pass"
PATIENCE = 600
"""Seconds for a child that does nothing wrong, on a busy machine."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")


def test_the_model_and_its_warnings_come_back(digits: Path, tmp_path: Path) -> None:
    assert read_untrusted(digits, seconds=PATIENCE).model == read(digits).model
    odd = base()
    odd.graph.initializer[0].raw_data = INFINITE.tobytes()
    path = outside(extra=lambda tensor: tensor.external_data.add(key="prepacked_0", value=""))(tmp_path)
    assert isinstance(path, Path)
    (path.parent / "w.bin").write_bytes(INFINITE.tobytes())
    reading = read_untrusted(path, seconds=PATIENCE)
    assert reading.model == odd
    assert [warning.code for warning in reading.warnings] == ["W3102", "W3150"]


def test_errors_come_back_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"E3001 .*none\.onnx"):
        read_untrusted(tmp_path / "none.onnx", seconds=PATIENCE)
    with pytest.raises(LimitError, match="E3106") as caught:
        read_untrusted(base().SerializeToString(), Limits(nodes=5), seconds=PATIENCE)
    assert "--limit nodes=" in caught.value.hint


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "CHILD", "import time; time.sleep(600)")
    with pytest.raises(InvalidModelError, match="E3170"):
        read_untrusted(b"", seconds=1)


def test_processor_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "CHILD", untrusted.CHILD.replace("import answer; answer()", "import _limit") + BUSY)
    start = time.monotonic()
    with pytest.raises(InvalidModelError, match="E3170"):
        read_untrusted(b"", seconds=PATIENCE)
    assert time.monotonic() - start < PATIENCE / 2  # it was the processor time, not the wall time


def heavy(folder: Path) -> Path:
    """A model of 200 MB of weights."""
    model = base()
    model.graph.initializer[0].dims[:] = [50_000_000]
    model.graph.initializer[0].raw_data = bytes(200_000_000)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_memory_is_bounded(tmp_path: Path) -> None:
    """What does not fit into what is left of the child's address space."""
    with pytest.raises(InvalidModelError, match="E3171"):
        read_untrusted(heavy(tmp_path), seconds=PATIENCE, memory=400 << 20)


@pytest.mark.parametrize("which", ["(limit, limit)", "(limit, resource.RLIM_INFINITY)"])
def test_lower_limits_of_the_process_hold(
    which: str, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child cannot, and does not, raise what it is limited to already."""
    lower = "import resource; limit = {}; resource.setrlimit(resource.RLIMIT_AS, " + which + "); " + untrusted.CHILD
    monkeypatch.setattr(untrusted, "CHILD", lower.format(4 << 30))
    assert read_untrusted(digits, seconds=PATIENCE).model == read(digits).model
    monkeypatch.setattr(untrusted, "CHILD", lower.format(400 << 20))
    with pytest.raises(InvalidModelError, match="E3171"):
        read_untrusted(heavy(tmp_path), seconds=PATIENCE)


def test_a_child_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "CHILD", "import os; os.abort()")
    with pytest.raises(InvalidModelError, match="E3172"):
        read_untrusted(b"", seconds=PATIENCE)


def test_systems_without_limits_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="E2161"):
        read_untrusted(b"", seconds=PATIENCE)


def test_the_environment_does_not_reach_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert os.getcwd() == str(tmp_path)
    assert len(read_untrusted(digits, seconds=PATIENCE).model.graph.node) > 10
