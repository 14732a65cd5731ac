"""Microcode gives the words that change: nothing is lost, and no word too many."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw.errors import InternalError
from onnxhw.isa import UNITS
from onnxhw.isa.fields import FieldSpec, Instruction
from onnxhw.isa.instructions import Load, Vector
from onnxhw.isa.microcode import given as given_words
from onnxhw.isa.microcode import length, pack, unpack


def some(kind: type[Instruction], changes: list[tuple[int, int]]) -> list[Instruction]:
    """Instructions of which each has another value in one field than the one before."""
    specs: tuple[FieldSpec, ...] = kind.specs()
    found = [kind()]
    for number, value in changes:
        spec = specs[number % len(specs)]
        found.append(found[-1].but(**{spec.name: spec.unpack(value << spec.offset)}))
    return found


changes = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, (1 << 32) - 1)), max_size=12)


@settings(deadline=None)
@given(st.sampled_from(list(UNITS.values())), changes)
def test_what_is_packed_is_unpacked(kind: type[Instruction], values: list[tuple[int, int]]) -> None:
    code = some(kind, values)
    words = pack(code)
    assert len(words) == length(code) == sum(given_words(code)) + len(code) - 1
    assert unpack(kind, words, len(code)) == code
    assert unpack(kind, [*words, 0, 0], len(code)) == code
    with pytest.raises(InternalError, match="E1103"):
        unpack(kind, words[:-1], len(code))
    with pytest.raises(InternalError, match="E1103"):
        unpack(kind, [*words, 0, 0], len(code) + 1)


@settings(deadline=None)
@given(st.sampled_from(list(UNITS.values())), changes)
def test_each_word_that_changes_is_given(kind: type[Instruction], values: list[tuple[int, int]]) -> None:
    code = some(kind, values)
    whole = [instruction.encode() for instruction in code]
    for before, after, count in zip(whole, whole[1:], given_words(code)[1:], strict=False):
        changed = sum(one != other for one, other in zip(before, after, strict=True))
        assert max(1, changed) <= count <= max(2, changed)  # a field that lies in two words gives both


def test_of_neighbours_only_what_differs_is_given() -> None:
    code = [Vector(o_base=5), Vector(o_base=6), Vector(o_base=6), Vector(o_base=6, a_base=1, param_base=9)]
    assert given_words(code) == [Vector.words(), 1, 1, 1]
    assert pack(code[1:3])[Vector.words() :] == [1, code[1].encode()[0]]
    assert given_words([]) == pack([]) == []
    assert length([]) == 0


def test_fields_that_change_together_share_words() -> None:
    """What most instructions differ in, for it decides over the size of programs."""
    first = Vector()
    often = first.but(a_base=1, param_base=2, after_depthwise=3, lane_group=1)
    assert given_words([first, often])[1] == 2
    assert given_words([often, often.but(o_base=1, after_array=1)])[1] == 1
    assert given_words([Load(), Load(base=1, depthwise=1)])[1] == 1
