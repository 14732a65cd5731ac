"""What a program takes of external memory, from its moves, pieces and image."""

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL

from onnxhw.compiler import compile_graph
from onnxhw.emu.moves import move_addresses
from onnxhw.isa.memory import Space, host_stride
from onnxhw.program.external_use import external_record, external_sentence, external_words, filled_words, moved_bytes
from onnxhw.program.external_use import moves as moves_of
from onnxhw.program.model import DeviceProgram


@pytest.fixture(scope="module")
def program() -> DeviceProgram:
    return compile_graph(NETWORKS["branches"](), SMALL)


def test_words_are_those_that_moves_reach(program: DeviceProgram) -> None:
    addresses = [move_addresses(move) for move in moves_of(program)]
    assert moved_bytes(program) == 4 * sum(len(external) for _, external in addresses)
    last = max(int(external.max()) for _, external in addresses)
    assert last < external_words(program) <= last + 1 + host_stride(SMALL.word) * 100
    weights = [chip.max() for move, (chip, _) in zip(moves_of(program), addresses, strict=True)
               if move.space == Space.WEIGHT]  # fmt: skip
    assert filled_words(program, Space.WEIGHT) == int(np.max(weights)) // host_stride(SMALL.weight_word) + 1


def test_the_record_and_its_sentence(program: DeviceProgram) -> None:
    record = external_record([program], SMALL)
    assert record is not None
    assert SMALL.external is not None
    assert record["segments"] == program.segments > 1
    assert record["image_bytes"] == program.external.nbytes <= record["bytes"] <= record["bytes_available"]
    assert record["bytes_available"] == SMALL.external.size
    assert f"{record['moved_bytes']:,} bytes moved" in external_sentence(record)
    assert external_record([program], None) is None
