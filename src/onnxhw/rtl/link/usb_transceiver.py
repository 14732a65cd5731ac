"""`Transceiver`: a full-speed transceiver in logic, of luna-usb's parts. It imports luna: import it when needed."""

from typing import Any

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib.cdc import FFSynchronizer
from luna.gateware.interface.gateware_phy.phy import GatewarePHY
from luna.gateware.interface.gateware_phy.receiver import (
    RxBitstuffRemover,
    RxClockDataRecovery,
    RxNRZIDecoder,
    RxPacketDetect,
    RxShifter,
)
from luna.gateware.interface.gateware_phy.transmitter import TxPipeline


class Transceiver(GatewarePHY):
    """luna's `GatewarePHY`, but for two things.

    * From domain "usb_io" to "usb" it crosses with flip-flops: the edges of "usb" are edges of "usb_io", so a FIFO for
      clocks that do not know of each other only takes time. luna's answers begin up to 15 bits after the host's packet,
      and a host need not wait for more than 16, hubs and cables included (USB 2.0, 7.1.19.1). Here it is 12.
    * The state of the line is synchronized before domain "usb" looks at it, too.

    `io` has the pins: ``d_p`` and ``d_n`` with ``i``, ``o``, ``oe``, and ``pullup`` with ``o``.
    """

    def __init__(self, *, io: Any) -> None:
        self.io = io
        super().__init__(io=io)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        io = self.io
        m.submodules.line_state = FFSynchronizer(Cat(io.d_n.i, io.d_p.i), self.line_state, o_domain="usb")
        m.submodules.transmitter = transmitter = TxPipeline()
        # A bit of the transmitter, which changes with "usb", is there after its synchronizer's three flip-flops.
        beat, was, phase = Signal(), Signal(), Signal(2)
        m.d.usb += beat.eq(~beat)
        m.d.usb_io += [was.eq(beat), phase.eq(Mux(beat != was, 1, phase + 1))]
        drive = transmitter.o_oe & (self.op_mode == self.OP_MODE_NORMAL)
        m.d.comb += [
            self.vbus_valid.eq(1),
            io.pullup.o.eq(self.term_select),
            transmitter.i_bit_strobe.eq(phase == 3),
            transmitter.i_data_payload.eq(self.tx_data),
            transmitter.i_oe.eq(self.tx_valid),
            self.tx_ready.eq(transmitter.o_data_strobe),
            io.d_p.o.eq(transmitter.o_usbp),
            io.d_n.o.eq(transmitter.o_usbn),
            io.d_p.oe.eq(drive),
            io.d_n.oe.eq(drive),
        ]
        # What the device sends itself it does not hear.
        self._receive(m, io.d_p.i & ~transmitter.o_oe, io.d_n.i & ~transmitter.o_oe)
        return m

    def _receive(self, m: Module, dp: Any, dn: Any) -> None:
        """Bits, packets and bytes in domain "usb_io"; bytes and the packet's begin and end in domain "usb"."""
        m.submodules.recovery = recovery = RxClockDataRecovery(dp, dn)
        m.submodules.nrzi = nrzi = RxNRZIDecoder()
        m.submodules.detect = detect = RxPacketDetect()
        m.submodules.bitstuff = bitstuff = ResetInserter({"usb_io": ~detect.o_pkt_active})(RxBitstuffRemover())
        m.submodules.shifter = shifter = RxShifter(width=8)
        active = Signal()
        m.d.usb_io += active.eq(detect.o_pkt_active)
        m.d.comb += [
            nrzi.i_valid.eq(recovery.line_state_valid),
            nrzi.i_dj.eq(recovery.line_state_dj),
            nrzi.i_dk.eq(recovery.line_state_dk),
            nrzi.i_se0.eq(recovery.line_state_se0),
            detect.i_valid.eq(nrzi.o_valid),
            detect.i_se0.eq(nrzi.o_se0),
            detect.i_data.eq(nrzi.o_data),
            bitstuff.i_valid.eq(nrzi.o_valid),
            bitstuff.i_data.eq(nrzi.o_data),
            shifter.reset.eq(detect.o_pkt_end),
            shifter.i_data.eq(bitstuff.o_data),
            shifter.i_valid.eq(~bitstuff.o_stall & active),
        ]

        # Each event inverts a bit; bytes are 32 cycles of "usb_io" apart, the last one before the packet's end.
        byte, events = Signal(8), Cat(shifter.o_put, detect.o_pkt_start, detect.o_pkt_end)
        marks, seen, before = Signal(3), Signal(3), Signal(3)
        m.d.usb_io += marks.eq(marks ^ events)
        with m.If(shifter.o_put):
            m.d.usb_io += byte.eq(shifter.o_data[::-1])
        m.d.usb += [seen.eq(marks), before.eq(seen)]
        put, start, end = seen ^ before
        in_packet = Signal()
        with m.If(start):
            m.d.usb += in_packet.eq(1)
        with m.Elif(end):
            m.d.usb += in_packet.eq(0)
        m.d.usb += self.rx_complete.eq(end)
        m.d.comb += [
            self.rx_data.eq(byte),
            self.rx_valid.eq(put & in_packet),
            self.rx_active.eq(in_packet),
            self.rx_error.eq(bitstuff.o_error),
        ]
