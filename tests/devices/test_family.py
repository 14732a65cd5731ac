"""What every device family must be, and how the RTL gets its cells."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from onnxhw.board import boards, families, find
from onnxhw.devices import family_of, find_family
from onnxhw.devices.ecp5.floorplan import LINK, memory_sites, plan
from onnxhw.devices.family import check_fit
from onnxhw.errors import UsageError
from onnxhw.garbage import collection_paused
from onnxhw.isa.timing import MEMORY, MULTIPLY
from onnxhw.presets import PRESETS
from onnxhw.rtl.cells import BEHAVIOURAL, primitives_of


@pytest.mark.parametrize("name", families())
def test_a_family_keeps_the_timing_of_the_core(name):
    """Programs run on every family in the same cycles: what a cell lacks is made of fabric, more cannot be hidden."""
    family = find_family(name)
    assert family.name == name
    assert family.memory <= MEMORY
    assert family.multiplier <= MULTIPLY
    counts = family.estimate(PRESETS["mini"]).counts()
    assert set(family.counts({})) == set(counts)
    assert all(counts.values())


def test_every_board_has_a_family_that_knows_its_part():
    for board in boards().values():
        family_of(board).check_part(board)
        family_of(board).check_clock(board)
        check_fit(family_of(board).estimate(board.configuration()).counts(), board)


@pytest.mark.parametrize("board", ["ulx3s-25f", "tang-nano-20k"])
@pytest.mark.parametrize("clock", [{"core_hz": 1_000_000_000}, {"clock_hz": 25}])
def test_a_clock_that_the_pll_cannot_make_is_refused(board, clock):
    found = find(board)
    with pytest.raises(UsageError, match=f"E2310 .*board {board}: clock.core_hz"):
        family_of(found).check_clock(replace(found, **clock))


@pytest.mark.parametrize("board", ["ulx3s-25f", "tang-nano-20k"])
def test_so_is_a_preset_s_own(board):
    found = replace(find(board), preset_hz=(("mini", 1_000_000_000),))
    with pytest.raises(UsageError, match=f"E2310 .*board {board}: clock.preset_hz: mini"):
        family_of(found).check_clock(found)


@pytest.mark.parametrize("name", ["ecp6", "", "..", "family", "ecp5.cells"])
def test_what_is_no_family_is_refused_by_name(name):
    with pytest.raises(UsageError, match="E2306") as caught:
        find_family(name)
    assert "ecp5" in caught.value.hint


def test_simulation_has_behavioural_cells_and_a_device_its_own():
    mine = object()
    assert primitives_of(None) is BEHAVIOURAL
    assert primitives_of(SimpleNamespace(device="LFE5U-85F")) is BEHAVIOURAL
    assert primitives_of(SimpleNamespace(primitives=mine)) is mine


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("ulx3s-85f", "ulx3s-85f-dense", "ulx3s-45f")]


@pytest.mark.parametrize("name", ["mini", *LARGE])
def test_every_place_of_the_floor_plan_is_asked_for_by_a_cell(name, monkeypatch):
    """A role that is spelt differently in RTL and plan would leave its cell to the placer, silently."""
    from amaranth.hdl import Fragment
    from netlist import Target

    from onnxhw.rtl.top import LinkedCore

    config, asked = PRESETS[name], set()
    primitives = find_family("ecp5").primitives("LFE5U-85F", config)
    for kind in ("memory", "multiplier"):
        form = getattr(primitives, kind)

        def noted(cell, form=form):
            asked.add(cell.role)
            return form(cell)

        monkeypatch.setattr(primitives, kind, noted)
    with collection_paused():
        Fragment.get(LinkedCore(config, clock_hz=100_000_000), Target(primitives))
    assert {*primitives.plan.multipliers, *primitives.plan.memories} <= asked


def test_the_plan_has_a_role_for_every_site():
    config = PRESETS["ulx3s-85f"]
    found, sites = plan("LFE5U-85F", config), memory_sites("LFE5U-85F", config)
    assert sorted(site for place in found.memories.values() for site in place) == sorted(
        site for place in sites.values() for site in place
    )
    assert {role: len(found.memories[role]) for role in LINK} == LINK
    assert [found.memories[f"tables_{q}"] for q in range(config.lanes)] == [(site,) for site in sites["tables"]]


def test_no_family_is_imported_before_it_is_asked_for():
    """`check` refuses a part without loading Amaranth."""
    words = "import sys; from onnxhw.devices import find_family; find_family('ecp5'); print('amaranth' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "False"
