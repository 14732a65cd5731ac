"""Words of input on their way from a frame to the core."""

from typing import Any

from amaranth import Module, Signal

from ...isa.memory import Control, Space
from .state import LinkState


def begin(m: Module, state: LinkState, host: Any) -> Signal:
    """What happens in the last cycle of state PLACE (see `stream`), outside the FSM: the run that waits for the inputs
    begins if they are all there. Returns a register: one word is left."""
    one_left = Signal()
    m.d.sync += [one_left.eq(state.left == 1), state.placed.eq(0)]
    with m.If(state.placed & state.input_over):
        m.d.sync += [state.restarts.eq(1), state.complete.eq(~state.armed), state.armed.eq(0)]
        m.d.sync += [state.first.eq(1), host.host_space.eq(Space.CONTROL), host.host_addr.eq(Control.RUN)]
        m.d.sync += host.host_we.eq(state.armed)
    return one_left


def stream(m: Module, state: LinkState, host: Any, one_left: Signal) -> None:
    """Words of input, one per cycle while the core takes them; each is there two cycles after its address. Then
    wait until they are in their places, and begin the run that waits for them if they are all.

    States STREAM and PLACE of the FSM at hand, which end in its state HEAD. `host` has the ports to the core. What the
    core tells decides late in a cycle whether a word is read, so `one_left` follows here.
    """
    with m.State("STREAM"), m.If(~host.host_waiting):
        m.d.comb += state.read.eq(1)
        m.d.sync += [state.index.eq(state.index + 1), state.left.eq(state.left - 1), one_left.eq(state.left == 2)]
        with m.If(one_left):
            m.next = "PLACE"
    with m.State("PLACE"):
        waits = host.input_busy | (host.input_over & state.armed & host.running)
        m.d.sync += state.placed.eq((state.phase >= 6) & ~waits & ~state.placed)
        with m.If(state.placed):
            m.next = "HEAD"
        with m.Elif(state.phase != 7):
            m.d.sync += state.phase.eq(state.phase + 1)
