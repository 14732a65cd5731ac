"""A baked program is what the host would have written."""

from collections import defaultdict

import numpy as np
import pytest

from onnxhw.build.images import images
from onnxhw.build.netlist_program import memory_writes
from onnxhw.compiler import compile
from onnxhw.config import preset
from onnxhw.errors import InternalError
from onnxhw.isa.memory import UCODE_SPACES, Control, Space, host_stride, word_bytes


def places(lanes):
    """The memories of a design, as a routed netlist names them."""
    return [
        "autorun",
        "device.core.load.memory",
        "device.core.vector.params.memory",
        *(f"device.core.{unit}_fetch.ucode" for unit in UCODE_SPACES),
        *(f"device.core.vector.tables.lane_{lane}" for lane in range(lanes)),
        "device.core.act.bank_0",
        "device.loader.buffer",
    ]


@pytest.fixture(scope="module", params=["mini", "ulx3s-25f", "ulx3s-85f"])
def program(request, digits):
    """The example network, with a table it does not use, so that tables are compared too."""
    made = compile(digits, preset(request.param))
    made.tables = np.arange(-128, 128, dtype=np.int8)[::-1].reshape(1, 256).copy()
    return made


def test_contents_are_those_of_the_host_writes(program):
    written = defaultdict(dict)
    for space, address, word, strobes in memory_writes(program):
        assert strobes == 0xF
        written[space][address] = word
    found = images(program, places(program.config.lanes))

    def words(space):
        """Memory words from the 32-bit host words."""
        stride = host_stride(word_bytes(program.config, space))
        top = max(written[space]) // stride + 1
        return [sum(written[space].get(at * stride + i, 0) << 32 * i for i in range(stride)) for at in range(top)]

    for unit, space in UCODE_SPACES.items():
        assert found[f"device.core.{unit}_fetch.ucode"] == words(space)
    assert found["device.core.load.memory"] == words(Space.WEIGHT)
    assert found["device.core.vector.params.memory"] == words(Space.PARAM)
    for lane in range(program.config.lanes):
        assert found[f"device.core.vector.tables.lane_{lane}"] == words(Space.TABLE)
    control = written[Space.CONTROL]
    counts = [control[register] for register in (Control.LOAD_COUNT, Control.ARRAY_COUNT, Control.VECTOR_COUNT)]
    assert found["autorun"][1:4] == counts
    assert found["autorun"][0] == 3
    assert found["autorun"][4] >= program.cycles
    assert len(found) == 6 + program.config.lanes


def test_a_design_without_the_memory_is_refused_by_name(program):
    with pytest.raises(InternalError) as caught:
        images(program, ["autorun", "device.core.load.memory"])
    assert caught.value.code == "E1131"
    assert "load microcode" in caught.value.text()
