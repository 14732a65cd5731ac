"""What instructions touch, against the loops of their docstrings."""

from itertools import product

import numpy as np

from onnxhw.isa.instructions import ADDRESS, Array, Vector, VectorOp
from onnxhw.sched import footprint


def test_a_window_reads_what_its_loops_do_wherever_it_begins() -> None:
    """Also where addresses pass the last one, some of them or all."""
    rng = np.random.default_rng(0)
    split = 0
    for _ in range(200):
        kt_n, kh_n, kw_n, oh_n, ow_n = (int(n) for n in rng.integers(1, 4, 5))
        width, top, left = int(rng.integers(3, 9)), *(int(n) for n in rng.integers(-1, 1, 2))
        base = (int(rng.integers(-20, 40)) + top * width + left) & ADDRESS
        i = Array(
            act_base=base, kt_n=kt_n, a_kt=80, kh_n=kh_n, kw_n=kw_n, oh_n=oh_n, ow_n=ow_n, ih0=top, iw0=left, ih_kh=1,
            iw_kw=1, ih_oh=1, iw_ow=1, in_h=4, in_w=width, a_kh=width, a_kw=1, a_oh=width, a_ow=1,
        )  # fmt: skip
        wanted = set()
        for kt, kh, kw, oh, ow in product(*map(range, (kt_n, kh_n, kw_n, oh_n, ow_n))):
            if 0 <= top + kh + oh < 4 and 0 <= left + kw + ow < width:
                wanted.add((base + kt * 80 + (kh + oh) * width + kw + ow) & ADDRESS)
        assert footprint.array_reads(i, 16).tolist() == sorted(wanted)
        planes = footprint.array_planes(i, 16)
        assert set(np.concatenate(planes).tolist()) == wanted
        split += max(wanted, default=0) - min(wanted, default=0) > 1000
    assert split


def test_two_operands_are_read_where_either_is() -> None:
    """Words of both, in order; a move of one operand reads that alone."""
    i = Vector(op=VectorOp.ADD, a_base=7, b_base=3, ow_n=3, a_ow=1, b_ow=1, in_w=3)
    assert footprint.vector_reads(i).tolist() == [3, 4, 5, 7, 8, 9]
    assert footprint.vector_reads(i.but(op=int(VectorOp.SUM), iw_ow=1)).tolist() == [7, 8, 9]


def test_banks_and_common_words() -> None:
    """As sets tell them."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(300):
        one, other = (rng.integers(0, 40, rng.integers(0, 4)) + rng.integers(0, 3) * 20 for _ in range(2))
        assert footprint.banks(one, 16).tolist() == sorted({int(word) // 16 for word in one})
        meets = bool(set(one.tolist()) & set(other.tolist()))
        assert footprint.meet(one, other) == meets
        seen.add(meets)
    assert seen == {True, False}
