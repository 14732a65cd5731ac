"""`decide`: what is to be done with a frame, found out a cycle before it is done."""

from enum import Enum, auto
from typing import Any

from amaranth import Const, Module, Signal, Value

from ...isa.link import Command
from .checks import FrameChecks
from .state import LinkState


class FrameVerdict(Enum):
    """What a frame is, and so what is to be done with it."""

    BROKEN = auto()
    MALFORMED = auto()
    HELLO = auto()
    INFO = auto()
    FOREIGN = auto()
    """Not of the session."""
    MISSED = auto()
    """Behind one that was lost, or of long ago."""
    ACKNOWLEDGED = auto()
    """Performed before."""
    REPEATED = auto()
    """The same of a READ or POLL, whose words are told again."""
    MISPLACED = auto()
    """Words of input that are not the next ones."""
    BLOCKED = auto()
    NOT_LOADED = auto()
    BAD_LOAD = auto()
    PERFORMED = auto()


def decide(m: Module, frame: Any, checks: FrameChecks, state: LinkState) -> tuple[dict[FrameVerdict, Signal], Signal]:
    """A register for each verdict, of which one is set, and one that tells, as of the cycle before, that a run has to
    go on first.

    They are registers because state DECIDE drives others all over the link with them. All that they are made of but the
    run holds still from state SETTLE of the FSM on.
    """
    is_ = checks.command
    reads = is_[Command.READ] | is_[Command.POLL]
    to_input = is_[Command.WRITE] & checks.input
    intact = Signal(reset_less=True)  # a register here, for its bytes come in at the line's pins
    m.d.sync += intact.eq(frame.intact)
    of_session = (
        (FrameVerdict.BROKEN, ~intact),
        (FrameVerdict.MALFORMED, ~checks.formed),
        (FrameVerdict.HELLO, is_[Command.HELLO]),
        (FrameVerdict.INFO, is_[Command.INFO]),
        (FrameVerdict.FOREIGN, ~checks.ours),
        (FrameVerdict.MISSED, ~checks.due & ~checks.distance[-1]),
        (FrameVerdict.ACKNOWLEDGED, ~checks.due & ~reads),
        (FrameVerdict.REPEATED, ~checks.due),
    )
    of_due = (
        (FrameVerdict.MISPLACED, to_input & ~checks.begins & ~checks.continues),
        (FrameVerdict.BLOCKED, checks.blocked),
        (FrameVerdict.NOT_LOADED, (is_[Command.RUN] | to_input) & ~state.loaded),
        (FrameVerdict.BAD_LOAD, is_[Command.COMMIT] & ~checks.same_crc),
        (FrameVerdict.PERFORMED, Const(1)),
    )
    found = {verdict: Signal(name=f"is_{verdict.name.lower()}") for verdict in FrameVerdict}
    early = Signal()
    none: Value = Const(1)
    for verdict, fits in of_session:
        m.d.sync += found[verdict].eq(none & fits)
        none = none & ~fits
    inputs = checks.act | checks.input
    if checks.has_external:
        inputs = inputs | checks.external_input
    held = (is_[Command.WRITE] & inputs & ~state.input_free) | checks.waits
    m.d.sync += early.eq(none & state.running & held)
    for verdict, fits in of_due:
        m.d.sync += found[verdict].eq(none & fits)
        none = none & ~fits
    return found, early
