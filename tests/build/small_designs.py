"""A small design with every kind of cell, for the tests of the bitstream flow, and one that is too large."""

from amaranth import Cat, Elaboratable, Module, Signal

from onnxhw.board import find
from onnxhw.devices.ecp5.pll import PllClocked
from onnxhw.rtl.cells import BlockRam, Multiplier

BOARD = find("ulx3s-12f")
MHZ = 1_000_000


class Small(Elaboratable):
    """Memories and multipliers in a row behind a counter; one LED shows the parity.

    `image` is what the memory "ram" starts with; the memory ``rom`` in the hierarchy has no name.
    """

    def __init__(self, image=()):
        self.image = image

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = BlockRam(width=32, depth=2048, granularity=8, name="ram", init=self.image)
        m.submodules.rom = rom = BlockRam(width=40, depth=600, init=tuple(7919 * i for i in range(600)))
        m.submodules.dsp = dsp = Multiplier(18, 18)
        m.submodules.fabric = fabric = Multiplier(8, 8, style="fabric")
        count, parity = Signal(24), Signal()
        m.d.sync += [count.eq(count + 1), parity.eq(fabric.p.xor() ^ dsp.p.xor() ^ rom.r_data.xor())]
        m.d.comb += [
            ram.w_addr.eq(count), ram.w_data.eq(Cat(fabric.p, fabric.p)), ram.w_en.eq(count[:4]),
            ram.r_addr.eq(count[3:]), rom.r_addr.eq(count[2:]),
            dsp.a.eq(ram.r_data), dsp.b.eq(rom.r_data), fabric.a.eq(dsp.p[10:]), fabric.b.eq(dsp.p[20:]),
            platform.request("led", 0).o.eq(parity),
        ]  # fmt: skip
        return m


class Wide(Elaboratable):
    """More block RAMs than any ULX3S has: `count` of them in a row."""

    def __init__(self, count):
        self.count = count

    def elaborate(self, platform):
        m = Module()
        address = Signal(9)
        m.d.sync += address.eq(address + 1)
        last = address
        for index in range(self.count):
            m.submodules[f"ram_{index}"] = ram = BlockRam(width=32, depth=512)
            m.d.comb += [ram.w_addr.eq(address), ram.w_data.eq(last), ram.w_en.eq(1), ram.r_addr.eq(last)]
            last = ram.r_data
        m.d.comb += platform.request("led", 0).o.eq(last.xor())
        return m


def clocked(mhz=100, image=()):
    """The small design at a clock from the PLL of `BOARD`."""
    resource, hz = BOARD.clock_resource, round(mhz * MHZ)
    return PllClocked(Small(image), resource=resource, input_hz=BOARD.clock_hz, output_hz=hz)
