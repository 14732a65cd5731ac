"""Inputs and outputs in external memory: pieces, packed ones too."""

import numpy as np

from onnxhw.ir.boxes import Box
from onnxhw.isa.memory import host_stride
from onnxhw.program.external_tensors import external_span, external_tensor, external_words
from onnxhw.program.layout import Place, from_host
from onnxhw.program.model import Entry, ExternalPiece
from onnxhw.program.storage import PackedInput

SHAPE = (1, 3, 4, 5)
VALUES = np.arange(60, dtype=np.int8).reshape(SHAPE)


def entry(*pieces: ExternalPiece) -> Entry:
    return Entry("x", Place(0, 20, 5, SHAPE), 0.5, -7, external=pieces)


def test_an_output_is_what_was_written() -> None:
    one = entry(ExternalPiece(Box.whole(SHAPE), Place(6, 20, 5, SHAPE)))
    ((first, words),) = external_words(one, VALUES, 4)
    assert (first, len(words)) == external_span(one, 4) == (6, 20)
    assert np.array_equal(external_tensor(one, words, 4), VALUES)


def test_pieces_hold_their_boxes() -> None:
    """A stripe of rows as bytes in a row, the zero point between them."""
    box = Box((0, 3), (1, 3), (0, 5))
    packed = PackedInput(word=8, words=5, first=2, row=18, column=3)
    stored = packed.stored_shape(box.shape)
    one = entry(ExternalPiece(box, Place(9, stored[2] * stored[3], stored[3], stored), packed))
    ((first, words),) = external_words(one, VALUES, 8)
    assert first == 9 * host_stride(8)
    flat = from_host(words, 8).view(np.int8).reshape(-1)
    assert np.array_equal(packed.restore(flat.reshape(1, 1, 5, 8).transpose(0, 3, 1, 2), box.shape), VALUES[box.slices])
    assert flat[:2].tolist() == [-7, -7]
