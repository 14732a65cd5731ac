"""What `alloc` knows of words that are read at the same time."""

import numpy as np

from onnxhw.sched.alloc import _side_by_side


def test_every_row_of_one_range_is_beside_every_row_of_the_other():
    ends = np.array([(0, 1), (10, 11), (20, 21), (30, 31), (40, 41)])
    pairs = [(0, 2, 2, 5), (4, 5, 0, 1), (1, 1, 0, 5)]
    wanted = [[*ends[a], *ends[b]] for low, end, first, last in pairs
              for a in range(low, end) for b in range(first, last)]  # fmt: skip
    assert _side_by_side(ends, np.array(pairs)).tolist() == [[int(n) for n in row] for row in wanted]
