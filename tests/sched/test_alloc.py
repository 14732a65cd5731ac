"""What `alloc` knows of words that are read at the same time, and what it says where there is no room."""

import numpy as np

from onnxhw.presets import PRESETS
from onnxhw.sched.alloc import SCATTERED, Needs, _side_by_side, does_not_fit


def test_every_row_of_one_range_is_beside_every_row_of_the_other():
    ends = np.array([(0, 1), (10, 11), (20, 21), (30, 31), (40, 41)])
    pairs = [(0, 2, 2, 5), (4, 5, 0, 1), (1, 1, 0, 5)]
    wanted = [[*ends[a], *ends[b]] for low, end, first, last in pairs
              for a in range(low, end) for b in range(first, last)]  # fmt: skip
    assert _side_by_side(ends, np.array(pairs)).tolist() == [[int(n) for n in row] for row in wanted]


def test_a_memory_is_too_small_by_the_words_that_are_missing_or_a_little_by_its_banks():
    config = PRESETS["mini"]
    needs = Needs({"a": config.act_words, "b": config.act_words // 4}, {"a": (0, 1), "b": (1, 1)})
    assert does_not_fit(needs, [], config).share == 1 / 4
    needs.life["b"] = 2, 2
    error = does_not_fit(needs, [], config)
    assert "no placement found" in error.what
    assert error.share == SCATTERED
