"""Moves and the layers that they serve."""

import pytest
from linked_program import program

from onnxhw.isa.external_instructions import Move
from onnxhw.isa.instructions import Ordered
from onnxhw.isa.memory import Space
from onnxhw.isa.timing import timeline
from onnxhw.isa.units import Unit
from onnxhw.program.external_use import moved_bytes
from onnxhw.program.model import DeviceProgram
from onnxhw.report.moved_bytes import moved_bytes_by_layer
from onnxhw.report.page import page
from onnxhw.report.profile import profile


@pytest.fixture(scope="module")
def linked() -> DeviceProgram:
    return program()


def test_every_byte_is_a_layers_or_none_s(linked: DeviceProgram) -> None:
    found = moved_bytes_by_layer(linked, timeline(linked.config, linked.code))
    assert sum(found.layers) + found.rest == moved_bytes(linked)
    assert all(found.layers)


def test_by_kind(linked: DeviceProgram) -> None:
    """Results of the last layer alone are stored in the end; what brings microcode back serves none."""
    times = timeline(linked.config, linked.code)
    moves: list[Ordered] = linked.code[Unit.MOVE]
    last = moves[-1]
    assert isinstance(last, Move)
    assert Space(last.space) in (Space.LOAD_UCODE, Space.ARRAY_UCODE, Space.VECTOR_UCODE, Space.MOVE_UCODE)
    assert moved_bytes_by_layer(linked, times).rest >= 4 * last.runs * last.word_n
    for number in range(len(linked.layers)):
        mine = {index for index in linked.layers[number].indices(Unit.VECTOR)}
        stored = sum(
            4 * move.runs * move.word_n
            for move in moves if isinstance(move, Move) and move.store and move.after_vector - 1 in mine
        )  # fmt: skip
        assert stored <= moved_bytes_by_layer(linked, times).layers[number]


def test_page_and_rows_tell_them(linked: DeviceProgram) -> None:
    found = profile(linked)
    assert sum(row.moved_bytes for row in found.layers) + found.moved_rest == moved_bytes(linked)
    text = page(linked, found, {}, [])
    assert f"<td>{found.layers[0].moved_bytes:,}</td></tr>" in text
    assert f"{found.moved_rest:,} more bring microcode back" in text


def test_of_a_program_without_moves(digits: DeviceProgram) -> None:
    found = moved_bytes_by_layer(digits, timeline(digits.config, digits.code))
    assert (set(found.layers), found.rest) == ({0}, 0)
    assert "bytes<br>moved" not in page(digits, profile(digits), {}, [])
