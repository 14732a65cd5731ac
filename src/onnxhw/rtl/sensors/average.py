"""`BoxAverage`: pixels of a frame to averages of boxes, as `onnxhw.isa.camera` defines them."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.camera import CHANNELS, FRAME_HEIGHT, FRAME_WIDTH, LEAST_BOX, MOST_BOX, SUM_BITS
from ..cells import BlockRam

COLUMN, ROW = range(FRAME_WIDTH // LEAST_BOX + 1), range(FRAME_HEIGHT // LEAST_BOX + 1)
BOX = range(MOST_BOX + 1)
QUOTIENT = 8
"""Bits of an average, and cycles of its division."""
Geometry = data.StructLayout({
    "width": COLUMN, "height": ROW, "left": range(FRAME_WIDTH), "top": range(FRAME_HEIGHT), "box": BOX,
    "divisor": range(2 * MOST_BOX**2 + 1),
})  # fmt: skip
"""A `Crop`: `width` and `height` of the image in boxes; `divisor` is twice the pixels of a box."""
Pixel = data.StructLayout({"blue": 5, "green": 6, "red": 5})
Averages = data.StructLayout({"channels": data.ArrayLayout(8, CHANNELS), "last": 1})
"""Red, green and blue of a pixel of the image; `last` of the image."""


class BoxAverage(wiring.Component):
    """Averages of the crop's boxes, each `QUOTIENT` + 3 cycles after its last pixel.

    Boxes must be complete more than that apart. A frame that breaks off gives fewer, or later ones of wrong pixels.

    Members
    -------
    geometry : the crop; constant.
    begin : In(1), one cycle, two or more before the first pixel of a frame that is to be averaged; what was begun is
        given up.
    pixel, valid : a pixel of the frame; `end_of_line`: one cycle, behind the last one of a row and two or more before
        the next one's first.
    o : the averages, row by row; not taken in time, they are lost.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "geometry": In(Geometry),
                "begin": In(1),
                "pixel": In(Pixel),
                "valid": In(1),
                "end_of_line": In(1),
                "o": Out(stream.Signature(Averages)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        crop, column, row = self.geometry, Signal(COLUMN), Signal(ROW)
        before, above, box_x, box_y = Signal(range(FRAME_WIDTH)), Signal(range(FRAME_HEIGHT)), Signal(BOX), Signal(BOX)
        first, last_row, inside = Signal(), Signal(), Signal()
        m.d.sync += [first.eq(box_y == 0), last_row.eq(box_y + 1 == crop.box)]
        m.d.sync += inside.eq((above == 0) & (row < crop.height))

        # Sums of the box's pixels of this row; with the last one the sums of the rows above are added.
        sums = Signal(data.ArrayLayout(SUM_BITS, CHANNELS))
        ended, last = Signal(), Signal()
        m.d.sync += ended.eq(0)
        with m.If(self.valid & inside & (before != 0)):
            m.d.sync += before.eq(before - 1)
        with m.Elif(self.valid & inside & (column < crop.width)):
            for total, colour in zip(sums, self._colours(), strict=True):
                m.d.sync += total.eq(Mux(box_x == 0, 0, total) + colour)
            m.d.sync += box_x.eq(box_x + 1)
            with m.If(box_x + 1 == crop.box):
                m.d.sync += [box_x.eq(0), ended.eq(1), last.eq(column + 1 == crop.width)]

        # A word has the sums of the boxes of a column; its address is right since the box began.
        m.submodules.sums = memory = BlockRam(width=CHANNELS * SUM_BITS, depth=len(COLUMN) - 1)
        m.d.comb += [memory.r_addr.eq(column), memory.w_addr.eq(column)]
        rows_above = data.View(sums.shape(), memory.r_data)
        totals = [(total + Mux(first, 0, so_far))[:SUM_BITS] for total, so_far in zip(sums, rows_above, strict=True)]
        m.d.comb += [memory.w_data.eq(Cat(totals)), memory.w_en.eq(ended)]
        with m.If(ended):
            m.d.sync += column.eq(column + 1)
        self._divide(m, totals, ended & last_row, last & (row + 1 == crop.height))

        with m.If(self.end_of_line):
            m.d.sync += [column.eq(0), box_x.eq(0), before.eq(crop.left)]
            with m.If(above != 0):
                m.d.sync += above.eq(above - 1)
            with m.Elif(row < crop.height):
                m.d.sync += box_y.eq(box_y + 1)
                with m.If(last_row):
                    m.d.sync += [box_y.eq(0), row.eq(row + 1)]
        with m.If(self.begin):
            m.d.sync += [column.eq(0), box_x.eq(0), before.eq(crop.left), above.eq(crop.top), box_y.eq(0), row.eq(0)]
            m.d.sync += ended.eq(0)
        return m

    def _colours(self) -> list[Value]:
        """`isa.camera.expanded`."""
        return [Cat(part[-(8 - len(part)) :], part) for part in (self.pixel.red, self.pixel.green, self.pixel.blue)]

    def _divide(self, m: Module, totals: list[Value], begin: Value, last: Value) -> None:
        """``(2 * total + n) // (2 * n)`` bit by bit, of all channels."""
        twice, left = self.geometry.divisor, Signal(range(QUOTIENT + 1))
        out = self.o.payload
        rests = [Signal(SUM_BITS + 2, name=f"rest_{at}", reset_less=True) for at in range(len(totals))]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), self.o.valid.eq(left == 1)]
        for rest, total, quotient in zip(rests, totals, out.channels, strict=True):
            less = Signal(SUM_BITS + 3, name=f"{rest.name}_less")
            m.d.comb += less.eq(rest - (twice << (QUOTIENT - 1)))
            with m.If(left != 0):
                m.d.sync += [rest.eq(Mux(less[-1], rest, less) << 1), quotient.eq(Cat(~less[-1], quotient))]
            with m.If(begin):
                m.d.sync += rest.eq(2 * total + (twice >> 1))
        with m.If(begin):
            m.d.sync += [left.eq(QUOTIENT), out.last.eq(last), self.o.valid.eq(0)]
        with m.If(self.begin):
            m.d.sync += [left.eq(0), self.o.valid.eq(0)]
