"""The noise of a quantized value against its float one."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw.errors import UsageError
from onnxhw.quantize.evaluate import Accuracy, accuracy, noise


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


def test_labels_are_of_samples_or_of_their_rows(make_net):
    net = make_net([2, 3])
    model = net.model(net.add("Relu", "x"))
    x = np.array([[[0, 1, 2], [1, 2, 0]], [[5, 2, 1], [0, 0, 1]]], np.float32)

    def top1(labels):
        return accuracy(model, model, lambda: iter([{"x": one} for one in x]), labels, "net")

    assert top1([2, 1, 0, 0]) == Accuracy(3, 3, 4)
    assert top1([2, 0]) == Accuracy(2, 2, 2)  # of all elements of a sample
    for wrong in ([], [1], [1, 2, 3], list(range(8))):
        with pytest.raises(UsageError, match="E2607"):
            top1(wrong)
