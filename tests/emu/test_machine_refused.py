"""Instructions that mean nothing are refused with a code and a place."""

import pytest

from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.errors import InternalError
from onnxhw.isa import Array, Load, Vector, VectorOp

CONFIG = HwConfig(
    "4x4", rows=4, cols=4, word=4, lanes=2, acc_bits=20, act_banks=4, act_depth=512, weight_depth=512, acc_depth=64,
    param_depth=256, tables=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("instruction", "code", "words"),
    [
        (Load(base=509, tiles=1), "E1121", "weight word 512 of 512"),
        (Array(act_base=2047, ow_n=2, a_ow=1, iw_ow=1, in_w=2), "E1121", "address 2048 in a memory of 2048 words"),
        (Array(acc_base=63, ow_n=2), "E1121", "address 64 in a memory of 64 words"),
        (Array(sub_n=2), "E1121", "row group 1 of 1"),
        (Array(kw_n=2), "E1124", "not loaded"),
        (Array(oh_n=0), "E1122", "oh_n must be at least 1"),
        (Vector(a_base=64), "E1121", "address 64 in a memory of 64"),
        (Vector(op=VectorOp.SUM, a_base=2048), "E1121", "address 2048"),
        (Vector(op=VectorOp.ADD, b_base=2048), "E1121", "address 2048"),
        (Vector(o_base=2048), "E1121", "address 2048"),
        (Vector(groups=3), "E1121", "lane group 2 of 2"),
        (Vector(column_group=2), "E1121", "column group 2 of 2"),
        (Vector(use_table=1, table_index=3), "E1121", "table 3 of 3"),
        (Vector(per_channel=1, groups=2, param_base=255), "E1121", "parameter row 256 of 256"),
        (Vector(op=7), "E1122", "no vector operation 7"),
        (Vector(op=VectorOp.ADD, kh_n=2), "E1122", "only SUM, MAX and DOT have a window"),
        (Vector(op=VectorOp.DOT, groups=2), "E1122", "DOT has one group, and sums of 25 bits"),
        (Vector(op=VectorOp.DOT, kw_n=259, za=-128, zb=-128), "E1122", "DOT has one group, and sums of 25 bits"),
        (Vector(op=VectorOp.DOT, kw_n=2, iw_kw=1), "E1122", "only SUM and MAX may leave positions out"),
        (Vector(op=VectorOp.MUL, iw0=-1), "E1122", "only SUM and MAX may leave positions out"),
        (Vector(op=VectorOp.MAX, ih0=-1), "E1122", "without a position inside"),
    ],
)
def test_what_means_nothing_is_refused(instruction: Load | Array | Vector, code: str, words: str) -> None:
    machine = Machine(CONFIG)
    if not isinstance(instruction, Load):
        machine.execute(Load(tiles=1))
    with pytest.raises(InternalError, match=words) as caught:
        machine.execute(instruction)
    assert caught.value.code == code


def test_padding_reads_no_memory() -> None:
    machine = Machine(CONFIG)
    machine.execute(Load(tiles=1))
    machine.execute(Array(act_base=60000, ih0=-1, pad=3))
    machine.execute(Vector(op=VectorOp.SUM, a_base=60000, iw0=1))
