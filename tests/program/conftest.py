"""Programs that exercise every field of the container; they need not mean anything."""

import random

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.ir.graph import Port
from onnxhw.isa import UNITS, Ordered
from onnxhw.program import DeviceProgram, Entry, Layer, Place
from onnxhw.program.storage import ElidedChannels, PackedInput

from ..driver.conftest import digits_graph  # noqa: F401, a fixture


def random_instruction(unit: str, rng: random.Random) -> Ordered:
    kind = UNITS[unit]
    values = {}
    for spec in kind.specs():
        if rng.random() < 0.5:
            low = -(1 << (spec.bits - 1)) if spec.signed else 0
            high = low + (1 << spec.bits) - 1
            values[spec.name] = rng.choice([low, high, rng.randint(low, high)])
    return kind(**values)


@pytest.fixture
def program() -> DeviceProgram:
    rng = random.Random(1)
    config = HwConfig("tiny", rows=4, cols=6, word=4, lanes=2, load_rows=2)
    code = {
        unit: [random_instruction(unit, rng) for _ in range(n)]
        for unit, n in (("load", 3), ("array", 4), ("depthwise", 2), ("vector", 5))
    }
    numbers = np.random.default_rng(1)
    scales = [
        Scale(rng.randrange(1 << 26), rng.randint(16, 47), rng.randint(-(1 << 31), (1 << 31) - 1)) for _ in range(8)
    ]
    tensors = [
        Entry(
            "eingang ä\n", Place(3, 40, 40, (1, 4, 1, 40)), 0.1 + 0.2, -128, 0, 2,
            storage=PackedInput(4, 40, 5, 28, 3), model=(1, 3, 5, 9),
        ),
        Entry("y", Place(100, 0, 1, (1, 3, 1, 1), 2), 1e-30, 127, 5, 5, "conv", "ab" * 32,
              ElidedChannels((0, 2, 3), (-128, 127)), (1, 5, 1, 1)),
    ]
    steps = (
        {"op": "QuantizeLinear", "scale": 0.1, "zero_point": -3, "axis": None},
        {"op": "Reshape", "shape": [1, 6, 5, 8]},
    )
    return DeviceProgram(
        config, "models/tiny.onnx", code,
        numbers.integers(0, 256, (9, config.weight_word)).astype(np.uint8),
        np.array([scale.pack() for scale in scales], np.uint64).reshape(-1, config.lanes),
        numbers.integers(-128, 128, (2, 256)).astype(np.int8),
        {entry.name: entry for entry in tensors},
        [Port("x", (1, 6, 5, 8), "float32", "eingang ä\n", steps)],
        [Port("out", (1, 3), "float32", "y"), Port("again", (), "int8", "y", ({"op": "Softmax"},))],
        [Layer("conv\n1", "Conv", 1234, {"load": [(0, 2)], "array": [(0, 3)], "vector": [(0, 1)]}),
         Layer("add", "Add", 0, {"vector": [(1, 4)]})],
        123456, 10**12,
    )  # fmt: skip
