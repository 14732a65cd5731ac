"""The noise of a quantized value against its float one."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw.quantize.evaluate import noise


def model(op_type):
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    return helper.make_model(helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", kinds[:1], kinds[1:]),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_infinities_and_nan_do_not_count():
    """A grid's zero makes an infinity behind a division; the other elements have a ratio."""
    feeds = {"x": np.array([0, np.nan, 1, 2], np.float32)}
    found = noise(model("Neg"), model("Reciprocal"), {"y": "y"}, lambda: iter([feeds]), "m")["y"]
    assert (found.signal, found.noise) == (5, 2**2 + 2.5**2)
    assert found.snr_db == pytest.approx(10 * np.log10(5 / 10.25))
