"""Fixtures shared by all tests: where things lie, and what is skipped when it is absent."""

import ctypes
import gc
import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings
from qdq_model import Model

from onnxhw import worker

# A loaded machine is not a failure: examples have no time limit. They are the same in every run, so that a failure is
# one of the change at hand; ONNXHW_RANDOM_EXAMPLES=1 looks for new ones.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("ONNXHW_RANDOM_EXAMPLES"),
)
settings.load_profile("patient")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: a long one that begins last keeps one processor busy and leaves the others idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """What is imported and collected stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


LARGE = 400 << 20
"""Bytes of memory of a test process from which on what a file has left is given back."""
worker.LARGE = 4 << 30
"""A test process grows beyond the 512 MB from which on a worker ends with each call of onnx's own code. Forking one of
900 MB thousands of times took seven of eight minutes of `test_onnx_cases_that_are_proved_hold`."""


@pytest.fixture(scope="module", autouse=True)
def _memory() -> Iterator[None]:
    """Gives memory back after a file whose designs and netlists were large."""
    yield
    if sys.platform == "linux" and _resident() > LARGE:
        gc.collect()
        with suppress(AttributeError):  # another C library than GNU's
            ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def digits() -> Path:
    """The example network, committed."""
    return REPOSITORY / "examples" / "digits.onnx"


@pytest.fixture(scope="session")
def digits_test() -> Path:
    """Its 360 held-out images (`input`) and labels (`label`)."""
    return REPOSITORY / "examples" / "digits_test.npz"


@pytest.fixture
def model() -> Model:
    """A small QDQ model under construction."""
    return Model()


@pytest.fixture
def models() -> type[Model]:
    """For several of them."""
    return Model


def _shared(kind: str) -> Path:
    folder = REPOSITORY.parent / "shared" / kind
    if not folder.is_dir():
        pytest.skip(f"the reference {kind} are not here (../shared/{kind} beside the checkout)")
    return folder


@pytest.fixture(scope="session")
def reference_models() -> Path:
    """MLPerf Tiny reference models; the test is skipped where they are absent."""
    return _shared("models")


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Inputs for the reference models; the test is skipped where they are absent."""
    return _shared("data")


@pytest.fixture(scope="session")
def against_ort() -> ModuleType:
    """The comparison with onnxruntime of `bench/accuracy.py`; the test is skipped without onnxruntime."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    folder = str(REPOSITORY / "bench")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("against_ort")


def _tool(name: str, package: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (Debian: apt install {package})")


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips where there is no C++ compiler."""
    if shutil.which("clang++") is None:
        _tool("g++", "g++")


@pytest.fixture(scope="session")
def icarus() -> None:
    """Skips where there is no Icarus Verilog."""
    _tool("iverilog", "iverilog")
