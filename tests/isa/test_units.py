"""The declaration of units against the names that registers, spaces, fields and configurations have."""

import json

import pytest

from onnxhw.isa import UNITS, Ordered, Unit, Vector
from onnxhw.isa.external_instructions import EXTERNAL
from onnxhw.isa.instructions import SETTINGS, follows
from onnxhw.isa.memory import Control
from onnxhw.isa.units import STREAMING, ucode_words, units_of
from onnxhw.presets import PRESETS, preset


@pytest.mark.parametrize("unit", Unit)
def test_a_unit_is_its_name(unit: Unit) -> None:
    name = unit.value
    assert unit == name
    assert {unit: 1}[name] == {name: 1}[unit] == 1
    assert [f"{unit}", str(unit), f"{unit:>12}".strip(), json.loads(json.dumps(unit))] == [name] * 4
    assert json.loads(json.dumps({unit: 1})) == {name: 1}
    assert Unit(name) is unit


def test_a_name_of_no_unit() -> None:
    with pytest.raises(ValueError, match="'loads' is not a valid Unit"):
        Unit("loads")


@pytest.mark.parametrize("unit", Unit)
def test_what_a_unit_declares_is_called_after_it(unit: Unit) -> None:
    registers, loud = unit.registers, unit.upper()
    assert unit.microcode.name == f"{loud}_UCODE"
    assert [registers.count.name, registers.done.name, registers.stall_order.name] == [
        f"{loud}_COUNT", f"{loud}_DONE", f"STALL_ORDER_{loud}",
    ]  # fmt: skip
    optional = {f"STALL_WEIGHTS_{loud}": registers.stall_weights, f"BUSY_{loud}": registers.busy}
    assert optional == {name: Control.__members__.get(name) for name in optional}
    assert EXTERNAL[unit].UNIT is unit
    assert unit == Unit.MOVE or UNITS[unit].UNIT is unit
    for config in (*PRESETS.values(), preset("mini+sdram")):
        assert unit.ucode(config) == getattr(config, f"{unit}_ucode")
        assert ucode_words(config, unit) == (unit.ucode(config) if unit in units_of(config) else 0)


def test_units_are_in_the_order_of_their_counters() -> None:
    assert list(UNITS) == [unit for unit in Unit if unit != Unit.MOVE]
    assert [unit.registers.count for unit in UNITS] == list(range(Control.LOAD_COUNT, Control.LOAD_COUNT + len(UNITS)))
    assert [unit.registers.done for unit in UNITS] == list(range(Control.LOAD_DONE, Control.LOAD_DONE + len(UNITS)))
    assert [unit.number for unit in Unit] == list(range(1, len(Unit) + 1))
    waiting = {unit.after: 10 + unit.number for unit in UNITS}
    assert Ordered(**waiting).waits == tuple(range(11, 11 + len(UNITS)))


@pytest.mark.parametrize("unit", Unit)
def test_with_external_memory_all_wait_for_moves_too(unit: Unit) -> None:
    waiting = {other.after: 10 + other.number for other in Unit}
    assert EXTERNAL[unit](**waiting).waits == tuple(range(11, 11 + len(Unit)))


def test_units_of_presets() -> None:
    assert units_of(PRESETS["mini"]) == ["load", "array", "vector"]
    assert units_of(PRESETS["ulx3s-85f"]) == ["load", "array", "depthwise", "vector"]
    assert units_of(preset("mini+sdram")) == ["load", "array", "vector", "move"]
    assert list(STREAMING) == ["array", "depthwise"]


def test_what_holds_still_while_vector_instructions_overlap() -> None:
    still = {"op", "per_channel", "exact", "use_table", "table_index", "groups", "column_group", "lane_group",
             "za", "zb", "zy", "lo", "hi"}  # fmt: skip
    assert set(SETTINGS) == still
    plain = Vector()
    for spec in Vector.specs():
        changed = plain.but(**{spec.name: getattr(plain, spec.name) ^ 1})
        assert follows(plain, changed) == (spec.name not in still), spec.name
