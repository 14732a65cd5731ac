"""`InputPath`: from words that the host writes to lanes of activation memory."""

from typing import Any

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.input_port import REGION_STRIDE, REGIONS
from .input_port import InputPort
from .input_regions import InputRegions
from .ports import write_request
from .word_fifo import WordFifo

WORDS = 16
"""Words that wait for the port. `full` shows at half of them, for eight may be on their way then: the host hears of it
six cycles later at most, and as many cycles pass until it has sent the next one."""


class InputPath(wiring.Component):
    """The input port with its table of regions, behind a memory for words of the stream.

    Members
    -------
    w_data, w_en : a word of the stream; with `begins` the first one: what was begun before is given up.
    table_addr, table_data, table_en : write a word of the table.
    o : writes of lanes of a word.
    full : Out(1), no more words may be sent.
    busy : Out(1), a cycle late: something is left to be done with the words that are here.
    complete : Out(1), a cycle late: all inputs are in their places, or none was begun.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "w_data": In(32),
                "w_en": In(1),
                "begins": In(1),
                "table_addr": In(bits_for(REGIONS * REGION_STRIDE)),
                "table_data": In(32),
                "table_en": In(1),
                "o": Out(stream.Signature(write_request(config))),
                "full": Out(1),
                "busy": Out(1),
                "complete": Out(1, init=1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        port, table = InputPort(self.config), InputRegions(self.config)
        begun, entered = Signal(), Signal()
        data = Signal(32, reset_less=True)
        m.submodules.words = words = WordFifo(width=32, depth=WORDS)
        m.submodules.port = ResetInserter(begun)(port)
        m.submodules.regions = table
        wiring.connect(m, table.o, port.regions)
        wiring.connect(m, port.o, wiring.flipped(self.o))
        m.d.sync += [data.eq(self.w_data), entered.eq(self.w_en), begun.eq(self.w_en & self.begins)]
        m.d.comb += [
            table.w_addr.eq(self.table_addr),
            table.w_data.eq(self.table_data),
            table.w_en.eq(self.table_en),
            table.restart.eq(begun),
            words.w_data.eq(data),
            words.w_en.eq(entered),
            self.full.eq(words.half),
        ]
        # Words behind the last of all inputs are dropped.
        ended = port.idle & table.over
        m.d.comb += [
            port.i.payload.eq(words.r_data),
            port.i.valid.eq(words.r_rdy),
            words.r_en.eq(port.i.ready | ended),
        ]
        m.d.sync += [
            self.busy.eq(~(port.hungry | (ended & ~words.r_rdy)) | entered),
            self.complete.eq(ended),
        ]
        return m
