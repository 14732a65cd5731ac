"""onnx's own test runner accepts the backend: a part of its suite (all of it: tests/conformance)."""

import warnings

import pytest

pytest.importorskip("onnx.backend.test")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the suite's own numpy
    from onnx.backend.test import BackendTest

    import onnxhw.backend

    suite = BackendTest(onnxhw.backend, __name__)
    suite.include(r"^test_(qlinear|quantizelinear|dequantizelinear|convinteger|matmulinteger|dynamicquantize)")
    suite.include(r"^test_(if|loop1[13]|scan|optional|sequence|softmax|maxpool_2d|averagepool_2d|lstm|gru|rnn)")
    suite.include(r"^test_(Conv2d|BatchNorm2d|Linear|operator_|single_relu|strnorm)")
    found = suite.test_cases
    for case in found.values():  # cases that are not included come as skipped tests: thousands of them
        for name in [name for name, test in vars(case).items() if getattr(test, "__unittest_skip__", False)]:
            delattr(case, name)
    del case  # it would be collected a second time
    globals().update(found)
