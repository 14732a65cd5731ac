"""Moves and the layers that they serve."""

from dataclasses import replace

import numpy as np
import pytest
from linked_program import program

from onnxhw.isa.external_instructions import kinds
from onnxhw.isa.instructions import VectorOp
from onnxhw.isa.memory import Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.presets import PRESETS, preset
from onnxhw.program.external_use import moved_bytes
from onnxhw.program.model import DeviceProgram, Layer
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


def test_a_move_belongs_to_whom_it_serves() -> None:
    """Three loads and a store of two layers, and one load that nobody waits for."""
    config = replace(PRESETS["mini"], external=preset("mini+sdram").external)
    load, array, vector, move = (kinds(config)[unit] for unit in (Unit.LOAD, Unit.ARRAY, Unit.VECTOR, Unit.MOVE))
    code = {
        Unit.LOAD: [load(tiles=1, after_move=1), load(tiles=1, after_move=3)],
        Unit.ARRAY: [array(oh_n=8, ow_n=8, after_move=2), array(after_load=2)],
        Unit.VECTOR: [vector(op=VectorOp.DRAIN, after_array=1), vector(op=VectorOp.DRAIN, after_array=2)],
        Unit.MOVE: [
            move(space=Space.WEIGHT, word_n=1), move(space=Space.ACT, word_n=10), move(space=Space.WEIGHT, word_n=100),
            move(space=Space.ACT, word_n=1000, store=1, after_vector=1), move(space=Space.MOVE_UCODE, word_n=10000),
        ],
    }  # fmt: skip
    layers = [
        Layer(name, "Conv", 0, {unit: [(number, number + 1)] for unit in (Unit.LOAD, Unit.ARRAY, Unit.VECTOR)})
        for number, name in enumerate(("first", "second"))
    ]
    empty = np.zeros((0, 256), np.int8)
    made = DeviceProgram(
        config, "moves", code, np.zeros((0, config.weight_word), np.uint8), np.zeros((0, config.lanes), np.uint64),
        empty, {}, [], [], layers, 0, 0,
    )  # fmt: skip
    found = moved_bytes_by_layer(made, timeline(config, code))
    assert (found.layers, found.rest) == ([4 * 1011, 4 * 100], 4 * 10000)


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
