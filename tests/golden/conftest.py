"""The comparison of `bench/accuracy.py`, which the tests share with the bench."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def accuracy(repository: Path) -> ModuleType:
    """The module; the test is skipped without onnxruntime."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    spec = importlib.util.spec_from_file_location("accuracy", repository / "bench" / "accuracy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
