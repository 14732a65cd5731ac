"""Encoding, decoding and text of every instruction, from the declarations alone."""

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw.errors import InternalError, UsageError
from onnxhw.isa import UNITS, Array, Load, Vector, VectorOp
from onnxhw.isa.fields import FieldSpec, Instruction


def limits(spec: FieldSpec) -> tuple[int, int]:
    low = -(1 << (spec.bits - 1)) if spec.signed else 0
    return low, low + (1 << spec.bits) - 1


def instructions(kind: type[Instruction]) -> st.SearchStrategy[Instruction]:
    return st.builds(kind, **{spec.name: st.integers(*limits(spec)) for spec in kind.specs()})


any_instruction = st.sampled_from(list(UNITS.values())).flatmap(instructions)
FIELDS = [pytest.param(kind, spec, id=f"{kind.UNIT}.{spec.name}") for kind in UNITS.values() for spec in kind.specs()]


@settings(deadline=None)
@given(any_instruction)
def test_encode_and_decode(instruction: Instruction) -> None:
    words = instruction.encode()
    assert len(words) == instruction.words()
    assert all(0 <= word < 1 << 32 for word in words)
    assert type(instruction).decode(words) == instruction


@settings(deadline=None)
@given(any_instruction)
def test_text_and_parse(instruction: Instruction) -> None:
    text = instruction.text()
    assert text.split()[0] == instruction.UNIT
    assert type(instruction).parse(text) == instruction
    assert all(f" {spec.name}=0" not in text or getattr(type(instruction)(), spec.name) for spec in instruction.specs())


@settings(deadline=None)
@given(any_instruction)
def test_an_encoding_is_the_sum_of_its_fields(instruction: Instruction) -> None:
    value = sum(word << (32 * n) for n, word in enumerate(instruction.encode()))
    offset = 0
    fields = {field.name: field for field in dataclasses.fields(instruction)}
    leading = type(instruction).LEADING
    for name in (*leading, *(name for name in fields if name not in leading)):
        bits = fields[name].metadata["bits"]
        assert (value >> offset) % (1 << bits) == getattr(instruction, name) % (1 << bits)
        offset += bits
    assert value >> offset == 0


@pytest.mark.parametrize(("kind", "spec"), FIELDS)
def test_ranges_are_checked(kind: type[Instruction], spec: FieldSpec) -> None:
    low, high = limits(spec)
    for value in (low, high):
        assert getattr(kind.decode(kind(**{spec.name: value}).encode()), spec.name) == value
    for value in (low - 1, high + 1):
        words = rf"{kind.__name__}\.{spec.name} must be {low}\.\.{high}, not {value}"
        with pytest.raises(InternalError, match=words) as caught:
            kind(**{spec.name: value}).encode()
        assert caught.value.code == "E1101"


@pytest.mark.parametrize("kind", UNITS.values())
def test_a_wrong_number_of_words_is_refused(kind: type[Instruction]) -> None:
    with pytest.raises(InternalError, match=f"takes {kind.words()} words, not {kind.words() - 1}") as caught:
        kind.decode(kind().encode()[1:])
    assert caught.value.code == "E1102"


def test_text_is_what_a_person_writes() -> None:
    assert Load().text() == "load"
    assert Vector(op=VectorOp.ADD, lo=-5, groups=1).text() == "vector op=3 lo=-5"
    assert Array.parse("array  pad=-0x3 kh_n=3") == Array(pad=-3, kh_n=3)


def test_parse_errors_teach() -> None:
    with pytest.raises(UsageError, match=r"load has no field 'kh_n'\.? Hint: fields: after_array, .*, tiles") as caught:
        Load.parse("load kh_n=1")
    assert caught.value.code == "E2110"
    with pytest.raises(UsageError, match=r"load\.tiles must be an integer, not 'many'") as caught:
        Load.parse("load tiles=many")
    assert caught.value.code == "E2111"


def test_an_instruction_fits_its_words_and_widths_do_not_depend_on_anything() -> None:
    for kind in UNITS.values():
        assert kind.bits() <= 32 * kind.words() < kind.bits() + 32
        assert {f"after_{unit}" for unit in UNITS} < {spec.name for spec in kind.specs()}


@pytest.mark.parametrize("kind", UNITS.values(), ids=str)
def test_a_loop_goes_round_once_at_least(kind: type[Instruction]) -> None:
    """The fields that a loop counts to are those with a least value; what lies below it is found."""
    specs = {spec.name: spec for spec in kind.specs()}
    loops = set(re.findall(r"range\((\w+)\)", str(kind.__doc__))) & set(specs)
    assert loops == {name for name, spec in specs.items() if not spec.signed and spec.least}
    once = kind(**dict.fromkeys(loops, 1))
    assert once.too_small() is None
    for name in loops:
        assert once.but(**{name: 0}).too_small() == specs[name]


@pytest.mark.parametrize("kind", UNITS.values(), ids=str)
def test_a_base_is_where_an_access_begins(kind: type[Instruction]) -> None:
    """The first term of each address in the loop: no position (those are signed), no group of lanes (a setting)."""
    starts = set(re.findall(r"(?:\[|= )(\w+)(?: \+|\n)", str(kind.__doc__)))
    fields = {spec.name for spec in kind.specs() if spec.name in starts and not spec.signed and not spec.setting}
    assert {spec.name for spec in kind.specs() if spec.base} == fields
