"""onnx's own test runner accepts the backend: a part of its suite (all of it: tests/conformance)."""

import unittest
import warnings

import pytest

import onnxhw.backend

PARTS = (
    r"^test_(qlinear|quantizelinear|dequantizelinear|convinteger|matmulinteger|dynamicquantize)",
    r"^test_(if|loop1[13]|scan|optional|sequence|softmax|maxpool_2d|averagepool_2d|lstm|gru|rnn)",
    r"^test_(Conv2d|BatchNorm2d|Linear|operator_|single_relu|strnorm)",
)


def chosen() -> unittest.TestSuite:
    """The cases that the runner makes of `PARTS`; making the whole suite takes seconds, so not at import."""
    testing = pytest.importorskip("onnx.backend.test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite's own numpy
        suite = testing.BackendTest(onnxhw.backend, __name__)
    for part in PARTS:
        suite.include(part)
    cases = unittest.TestSuite()
    for kind in suite.test_cases.values():  # cases that are not included come as skipped tests: thousands of them
        names = [name for name in unittest.TestLoader().getTestCaseNames(kind)]
        cases.addTests(kind(name) for name in names if not getattr(getattr(kind, name), "__unittest_skip__", False))
    return cases


def test_cases_of_the_runner_pass() -> None:
    cases, result = chosen(), unittest.TestResult()
    count = cases.countTestCases()
    cases.run(result)
    wrong = [f"{case}: {trace}" for case, trace in [*result.errors, *result.failures]]
    assert not wrong, "\n".join(wrong)
    assert result.testsRun - len(result.skipped) == count > 200
