"""A program as memory contents."""

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL

from onnxhw.build.memory_contents import images, require_block_rams
from onnxhw.compiler import compile_graph
from onnxhw.errors import InternalError, UsageError
from onnxhw.isa.instructions import Array, Load, Vector
from onnxhw.presets import PRESETS
from onnxhw.program.model import DeviceProgram

NAMES = [
    "autorun", "description", "design.device.core.act.bank_0", "design.device.core.load.memory.all",
    "design.device.core.load_fetch.ucode", "design.device.core.array_fetch.ucode",
    "design.device.core.vector_fetch.ucode",
    "design.device.core.vector.params", "design.device.core.vector.tables.lane_0",
    "design.device.core.vector.tables.lane_1", "design.device.core.array.accumulators.bank_0",
]  # fmt: skip


@pytest.fixture
def program():
    config = PRESETS["mini"]
    code = {"load": [Load(base=3, tiles=2)], "array": [Array(oh_n=5)] * 2, "vector": [Vector(lo=-3)] * 3}
    weights = np.arange(2 * config.weight_word, dtype=np.uint8).reshape(2, -1)
    tables = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    params = np.array([[1 << 63, 5]], np.uint64)
    return DeviceProgram(config, "m", code, weights, params, tables, {}, [], [], [], 100, 0)


def test_every_memory_gets_its_contents(program):
    found = images(program, NAMES)
    core = "design.device.core."
    assert found[f"{core}load_fetch.ucode"] == Load(base=3, tiles=2).encode()
    first = Array(oh_n=5).encode()
    assert found[f"{core}array_fetch.ucode"] == [*first, 1, first[0]]
    assert len(found[f"{core}vector_fetch.ucode"]) == Vector.words() + 2 * 2
    assert found[f"{core}load.memory.all"] == [0x03020100, 0x07060504]
    assert found[f"{core}vector.params"] == [1 << 63 | 5 << 64]
    # Entry 0 is the table's value at -128, itself -128.
    assert found[f"{core}vector.tables.lane_0"][:2] == [0x80, 0x81]
    assert found[f"{core}vector.tables.lane_1"] == found[f"{core}vector.tables.lane_0"]
    assert found["autorun"] == [3, 1, 2, 0, 3, 200]
    assert (
        not {name for name in found if "act" in name or "accumulators" in name}
        - {f"{core}array_fetch.ucode"}
        - {name for name in found if "vector" in name}
    )


def test_a_design_without_a_needed_memory_is_refused(program):
    with pytest.raises(InternalError, match="no memory for weights"):
        images(program, [name for name in NAMES if "load.memory.all" not in name])


def test_a_network_larger_than_the_chip_does_not_stand_alone() -> None:
    """Of what block RAMs hold nothing fills external memory at power-up."""
    program = compile_graph(NETWORKS["residual"](), SMALL)
    with pytest.raises(UsageError, match=r"E2333 .*image of external memory"):
        require_block_rams(program)
