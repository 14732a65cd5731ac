"""The networks of `bench/networks`, reduced, in forms of onnxruntime's quantizer: one part, the host at the edges."""

import networks
import numpy as np
import onnx
import pytest

from onnxhw import golden
from onnxhw.ir.parts import HardwarePart
from onnxhw.partition import read

IN_FLOAT = {("unet", "qop")}
"""The quantizer's QOperator form leaves ConvTranspose in float, weights included."""
OTHERWISE = ("mobilenetv3", "mobilenetv3-clip", "unet", "unet-bilinear")
"""Networks with operators that the two forms write otherwise."""
CASES = [*((name, "qdq") for name in networks.SMALL), *((name, "qop") for name in OTHERWISE)]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_network_is_one_part_on_the_hardware(name: str, form: str) -> None:
    model = networks.quantized(networks.SMALL[name](), form)
    parts = read(model.SerializeToString(), runnable=False).parts
    found = [isinstance(part, HardwarePart) for part in parts]
    assert (found == [True]) is ((name, form) not in IN_FLOAT)


@pytest.mark.parametrize("form", networks.FORMS)
def test_every_form_is_near_to_onnxruntime(form: str) -> None:
    """Of the golden model's result no element is far away."""
    import onnxruntime

    model = networks.quantized(networks.SMALL["squeezenet"](), form)
    (part,) = read(model.SerializeToString()).parts
    assert isinstance(part, HardwarePart)
    feeds = {"x": np.random.default_rng(3).normal(0, 1, (1, 3, 96, 96)).astype(np.float32)}
    made = golden.host.finish(part.graph, golden.run(part.graph, golden.host.prepare(part.graph, feeds)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    (mine,) = made.values()
    assert float(np.abs(mine - wanted).max()) < 0.15 * float(np.ptp(wanted))


def test_an_open_batch_and_other_sizes() -> None:
    small = networks.SMALL["squeezenet"]
    open_batch = small(batch="N")
    assert open_batch.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    (part,) = read(networks.quantized(open_batch, "qdq").SerializeToString()).parts
    assert isinstance(part, HardwarePart)
    onnx.checker.check_model(open_batch, full_check=True)
