"""`check_banks`: one reader and one writer per bank of activation memory and cycle."""

from collections.abc import Sequence

from ..isa.instructions import VectorOp
from ..isa.memory import Space, host_stride
from ..isa.timeline import Timeline
from ..isa.timing import START, results_later
from ..isa.units import Unit
from . import footprint
from .bank_conflicts import BankUse, conflict
from .checked_code import CheckedCode
from .stream_state import Words


def check_banks(checked: CheckedCode, times: Timeline) -> None:
    """No two readers, nor two writers, of one activation bank in the same cycle."""
    depth = checked.config.act_depth
    for index, i in enumerate(checked.vectors):
        if i.op in (VectorOp.ADD, VectorOp.MUL):
            a = footprint.vector_steps(i, i.a_base, i.a_cb, i.a_oh, i.a_ow) // depth
            b = footprint.vector_steps(i, i.b_base, i.b_cb, i.b_oh, i.b_ow) // depth
            if (a == b).any():
                checked.fail("E1210", Unit.VECTOR, index, "reads both operands from one bank")
        seen = [set((words // depth).tolist()) for words in (footprint.vector_a(i), footprint.vector_b(i))]
        if i.op == VectorOp.DOT and seen[0] & seen[1]:
            checked.fail("E1210", Unit.VECTOR, index, "reads a bank for both operands")
    _require_disjoint(checked, _readers(checked, times), "reads")
    _require_disjoint(checked, _writers(checked, times), "writes")


def _require_disjoint(checked: CheckedCode, uses: Sequence[BankUse], does: str) -> None:
    if found := conflict(uses):
        one, other = found
        text = checked.program.code[other.unit][other.index].text()
        what = f"{does} a bank that {other.unit}[{other.index}] {does}: {text}"
        checked.fail("E1210", one.unit, one.index, what)


def _readers(checked: CheckedCode, times: Timeline) -> list[BankUse]:
    """Reads of activation memory: of a store from its issue to its end, of others from the first operand on."""
    found = [
        _use(checked, unit, index, words, span.issue + START, span.end)
        for unit, reads in (
            *((stream.unit, stream.reads) for stream in checked.streams), (Unit.VECTOR, checked.vector_reads),
        )
        for index, (words, span) in enumerate(zip(reads, times.spans[unit], strict=True)) if len(words)
    ]  # fmt: skip
    return found + _moves(checked, times, 1)


def _writers(checked: CheckedCode, times: Timeline) -> list[BankUse]:
    """Writes: of loads likewise, of vector instructions from just before their first result until it is there."""
    if not checked.program.code.get(Unit.MOVE):
        return []
    spans = zip(checked.vector_writes, times.spans[Unit.VECTOR], strict=True)
    return _moves(checked, times, 0) + [
        _use(checked, Unit.VECTOR, index, words, span.issue + results_later(), span.done)
        for index, (words, span) in enumerate(spans)
    ]


def _moves(checked: CheckedCode, times: Timeline, store: int) -> list[BankUse]:
    """Moves between external and activation memory, in one direction."""
    stride = host_stride(checked.config.word)
    return [
        _use(checked, Unit.MOVE, index, footprint.move_words(i)[0] // stride, span.issue, span.end)
        for index, (i, span) in enumerate(zip(checked.moves, times.spans[Unit.MOVE], strict=True))
        if i.space == Space.ACT and i.store == store
    ]


def _use(checked: CheckedCode, unit: Unit, index: int, words: Words, first: int, last: int) -> BankUse:
    return BankUse(unit, index, first, last, frozenset(footprint.banks(words, checked.config.act_depth).tolist()))
