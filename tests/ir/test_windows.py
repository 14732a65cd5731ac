"""`Window` against its definition, position by position."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from onnxhw.ir.windows import Window

SMALL = st.integers(1, 3)
PAIRS = st.tuples(SMALL, SMALL)


@given(st.tuples(st.integers(1, 6), st.integers(1, 6)), PAIRS, PAIRS, PAIRS, st.tuples(*[st.integers(-2, 3)] * 4))
def test_taps_and_whether_they_are_inside(
    spatial: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:  # fmt: skip
    window, (height, width) = Window(kernel, strides, dilations, pads), spatial
    assume(max(0, -pads[0]) + max(0, -pads[2]) < height and max(0, -pads[1]) + max(0, -pads[3]) < width)
    rows, cols = window.size(spatial)
    assume(rows >= 1 and cols >= 1)
    x = np.arange(1, height * width + 1).reshape(1, 1, height, width)
    met = np.zeros((rows, cols), int)
    for kh, kw, seen in window.taps(x, 0):
        assert seen.shape == (1, 1, rows, cols)
        for i, j in np.ndindex(rows, cols):
            row = i * strides[0] - pads[0] + kh * dilations[0]
            col = j * strides[1] - pads[1] + kw * dilations[1]
            inside = 0 <= row < height and 0 <= col < width
            met[i, j] += inside
            assert seen[0, 0, i, j] == (x[0, 0, row, col] if inside else 0)
    assert window.always_inside(spatial) == bool((met > 0).all())
