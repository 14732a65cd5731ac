"""Instructions of configurations with external memory: forms, what they wait for, words that they are fetched with."""

import random
from dataclasses import fields, replace

import pytest

from onnxhw.isa.external_instructions import (
    COUNT_BITS,
    EXTERNAL,
    ExternalArray,
    ExternalVector,
    Fetched,
    Move,
    as_external,
    code_for,
    fetched,
    kinds,
    reads_waited,
    ring_units,
    waiting,
)
from onnxhw.isa.instructions import UNITS, Array, Depthwise, Load, Ordered, Vector, wait_reads
from onnxhw.isa.microcode import length, pack
from onnxhw.isa.units import Unit, units_of
from onnxhw.presets import preset

PLAIN, EXTENDED = preset("mini"), preset("mini+sdram")


def test_configurations_have_their_kinds() -> None:
    assert kinds(PLAIN) == UNITS
    assert kinds(EXTENDED) == EXTERNAL
    assert list(EXTERNAL) == list(Unit)
    assert ring_units(PLAIN) == []
    assert ring_units(EXTENDED) == units_of(EXTENDED)


@pytest.mark.parametrize("kind", UNITS.values(), ids=str)
def test_the_external_form_has_all_fields_and_no_move_to_wait_for(kind: type[Ordered]) -> None:
    specs = {spec.name: random.Random(spec.name).randrange(1 << spec.bits - spec.signed) for spec in kind.specs()}
    plain = kind(**specs)
    made = as_external(plain)
    assert type(made) is EXTERNAL[kind.UNIT]
    assert {field.name: getattr(made, field.name) for field in fields(made)} == {**specs, "after_move": 0}
    assert as_external(made) is made


def test_code_of_a_plain_configuration_is_as_it_was() -> None:
    code = {Unit.VECTOR: [Vector(after_array=5), Vector()]}
    assert code_for(PLAIN, code)[Unit.VECTOR] == code[Unit.VECTOR]


def test_code_is_made_external() -> None:
    code = {Unit.LOAD: [Load(after_vector=2), Load()], Unit.ARRAY: [Array(**wait_reads(3, 7))]}
    made = code_for(EXTENDED, code)
    assert [i.waits for i in made[Unit.LOAD]] == [(0, 0, 0, 2, 0), (0, 0, 0, 0, 0)]
    assert [reads_waited(i) for i in made[Unit.ARRAY]] == [7]
    assert made[Unit.VECTOR] == made[Unit.MOVE] == []


@pytest.mark.parametrize("kind", EXTERNAL.values(), ids=str)
def test_all_ordering_fields_are_as_wide_as_the_counters(kind: type[Ordered]) -> None:
    specs = [spec for spec in kind.specs() if spec.name.startswith("after_")]
    assert {spec.name for spec in specs} == {unit.after for unit in Unit}
    assert {spec.bits for spec in specs} == {COUNT_BITS}
    most = kind(**{spec.name: (1 << COUNT_BITS) - 1 for spec in specs})
    assert kind.decode(most.encode()).waits == (65_535,) * len(Unit)


@pytest.mark.parametrize("unit", Unit)
def test_what_an_instruction_waits_for_is_set(unit: Unit) -> None:
    made = waiting(EXTERNAL[unit](), [5000, 1, 2, 3, 60_000], 20)
    assert made.waits == (5000, 1, 2, 3, 60_000)
    assert reads_waited(made) == (20 if unit in (Unit.ARRAY, Unit.DEPTHWISE) else 0)


def test_reads_beyond_what_a_field_holds_are_waited_for_as_instructions() -> None:
    made = waiting(ExternalArray(), [0, 0, 0, 10, 0], 100)
    assert (made.after_vector, made.more_reads) == (100 - 63, 63)
    assert reads_waited(Vector(after_vector=4)) == 0
    assert reads_waited(Depthwise(**wait_reads(3, 9))) == 9


def test_words_that_are_fetched() -> None:
    """Those of each instruction, and the mask of the next; together all words of the unit's microcode."""
    code = [ExternalVector(), ExternalVector(zy=3), ExternalVector(zy=3), ExternalVector(zy=4, after_move=2)]
    found = fetched(code)
    assert found[0] == Fetched(0, ExternalVector.words() + 1)
    assert [one.end for one in found[:-1]] == [other.first for other in found[1:]]
    assert found[-1].end == length(code) == len(pack(code))
    assert [each.end - each.first for each in found] == [ExternalVector.words() + 1, 2, 2, 2]
    assert fetched([]) == []


def test_a_move_says_what_it_does() -> None:
    assert Move(store=1).what == "store"
    assert Move().what == "load"
    assert Move(block_n=3, run_n=5, word_n=7).runs == 15
    assert replace(Move(after_move=9), after_load=4).waits == (4, 0, 0, 0, 9)
