"""A small hand-written program, with what it means."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from onnxhw.config import HwConfig
from onnxhw.fixed import ONE, Scale
from onnxhw.ir.graph import Port
from onnxhw.isa import Array, Load, Ordered, Vector, VectorOp
from onnxhw.isa.timeline import timeline
from onnxhw.program import DeviceProgram, Entry, Layer, Place

Int8 = npt.NDArray[np.int8]


@dataclass
class Case:
    """A program and the tensors it must produce for its inputs."""

    program: DeviceProgram
    inputs: dict[str, Int8]
    expected: dict[str, Int8]


@pytest.fixture
def case() -> Case:
    """3x3 convolution (two row tiles, two accumulator banks), then maximum, then both added.

    The multipliers are 2**-7 and 1, so that the meaning fits in one line each.
    """
    config = HwConfig("tiny", rows=4, cols=4, word=4, lanes=2, act_depth=32, weight_depth=64, acc_depth=32)
    rng = np.random.default_rng(5)
    x = rng.integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)
    weight = rng.integers(-20, 20, (4, 4, 3, 3)).astype(np.int8)  # O, I, KH, KW
    zero, bias = -3, [5, -70, 900, 64]

    places = {name: Place(base, 0, 6, (1, 4, 6, 6)) for name, base in (("x", 0), ("conv", 40), ("pool", 80))}
    places["y"] = Place(0, 0, 6, (1, 4, 6, 6))  # over x, which is no longer needed
    half = {"oh_n": 3, "ow_n": 6}
    code: dict[str, list[Ordered]] = {"load": [], "array": [], "vector": []}
    for tile in range(2):
        code["load"].append(Load(tiles=9))
        code["array"].append(
            Array(act_base=(tile * 18 - 7) & 0xFFFF, kh_n=3, kw_n=3, **half, a_kh=6, a_kw=1, a_oh=6, a_ow=1,
                  ih0=tile * 3 - 1, iw0=-1, ih_kh=1, iw_kw=1, ih_oh=1, iw_ow=1, in_h=6, in_w=6, pad=zero, acc_bank=tile)
        )  # fmt: skip
        code["vector"].append(
            Vector(after_array=tile + 1, op=VectorOp.DRAIN, per_channel=1, exact=1, **half, acc_bank=tile,
                   a_oh=6, a_ow=1, o_base=40 + 18 * tile, o_oh=6, o_ow=1, groups=2, zy=4)
        )  # fmt: skip
    full = {"oh_n": 6, "ow_n": 6, "a_oh": 6, "a_ow": 1, "o_oh": 6, "o_ow": 1, "groups": 2}
    code["vector"].append(
        Vector(after_vector=2, op=VectorOp.MAX, **full, kh_n=2, kw_n=2, a_base=40, a_kh=6, a_kw=1, ih_kh=1, iw_kw=1,
               ih_oh=1, iw_ow=1, in_h=6, in_w=6, o_base=80, param_base=2)
    )  # fmt: skip
    code["vector"].append(
        Vector(after_vector=3, after_array=2, op=VectorOp.ADD, **full, a_base=40, b_base=80, b_oh=6, b_ow=1,
               in_h=6, in_w=6, param_base=3, za=4)
    )  # fmt: skip

    scales = [*(Scale(1 << 23, 30, b) for b in bias), ONE, ONE, *[Scale(1 << 22, 23, 1 << 22)] * 2]
    tiles = weight.transpose(2, 3, 1, 0).reshape(9 * 4, 4)  # KH, KW, I, O
    entries = [
        Entry("x", places["x"], 0.5, zero, 0, 3), Entry("conv", places["conv"], 0.25, 4, 2, 4, "conv"),
        Entry("pool", places["pool"], 0.25, 4, 3, 4, "pool"), Entry("y", places["y"], 0.25, 0, 4, 4, "add"),
    ]  # fmt: skip
    program = DeviceProgram(
        config, "tiny", code, tiles.view(np.uint8), np.array([s.pack() for s in scales], np.uint64).reshape(-1, 2),
        np.zeros((0, 256), np.int8), {entry.name: entry for entry in entries},
        [Port("input", (1, 4, 6, 6), "int8", "x")], [Port("output", (1, 4, 6, 6), "int8", "y")],
        [Layer("conv", "Conv", 5184, {"load": [(0, 2)], "array": [(0, 2)], "vector": [(0, 2)]})],
        timeline(config, code).cycles, 5184,
    )  # fmt: skip

    padded = np.full((4, 8, 8), zero, np.int64)
    padded[:, 1:7, 1:7] = x[0]
    sums = np.array(
        [[[np.sum(padded[:, r : r + 3, c : c + 3] * weight[o]) + bias[o] for c in range(6)] for r in range(6)]
         for o in range(4)]
    )  # fmt: skip
    conv = np.clip(np.rint(sums / 128) + 4, -128, 127).astype(np.int64)
    pool = np.array([[[conv[o, r : r + 2, c : c + 2].max() for c in range(6)] for r in range(6)] for o in range(4)])
    y = np.clip(np.rint((conv - 4 + pool) / 2), -128, 127)
    expected = {name: value[None].astype(np.int8) for name, value in (("conv", conv), ("pool", pool), ("y", y))}
    return Case(program, {"x": x}, expected)
