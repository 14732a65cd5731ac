"""`FrameChecks`: what a frame is and whether it may be performed, found out in a few cycles before it is."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal

from ...isa.link import (
    HEADER_BYTES,
    MAX_WORDS,
    REGISTERS,
    VERSION,
    WITH_EXTERNAL,
    WRITABLE,
    Command,
    commit_words,
)
from ...isa.memory import Space
from .state import LinkState

READABLE = (Space.CONTROL, Space.ACT, REGISTERS)
"""Address spaces that READ reaches."""
HEADER_WORDS = HEADER_BYTES // 4
IMAGE_WORDS = 1
"""Payload of the COMMIT of an image: its CRC."""


class FrameChecks:
    """What is known of the frame at hand, a register for each fact. `external`: there is an external memory."""

    def __init__(self, external: bool = False) -> None:
        self.has_external = external
        self.command = {command: Signal(name=f"is_{command.name.lower()}") for command in Command}
        self.formed = Signal()
        self.readable = Signal()
        self.writable = Signal()
        self.act = Signal()
        self.external = Signal()
        """EXTERNAL: a COMMIT of the image, or a WRITE that may be to it."""
        self.apart = Signal()
        """External memory, and no part of what the device holds: inputs, or there is a program that has no image."""
        self.data = self.act | self.apart if external else self.act
        """A memory that holds no part of a program."""
        self.external_input = Signal()
        self.input = Signal()
        self.begins = Signal()
        """Words of input from the first on."""
        self.continues = Signal()
        """From the one on that is next."""
        self.registers = Signal()
        self.words = Signal(8)
        """How many it should have."""
        self.ours = Signal()
        """It belongs to the session."""
        self.distance = Signal(8)
        """Of its sequence number from the one that is due."""
        self.due = Signal()
        self.blocked = Signal()
        """It needs a memory that is the run's."""
        self.waits = Signal()
        """A POLL of the end of a run."""
        self.first_word = Signal(32, reset_less=True)
        """Of the payload, a cycle late: it is there long before the frame's end."""
        self.same_crc = Signal()

    def judge(self, m: Module, frame: Any, state: LinkState, load_crc: Any) -> None:
        """States CHECK to SETTLE of the FSM at hand, which end in its state DECIDE.

        `frame` is a `FrameCollector` whose `r_addr` is at the first word of the payload all the while.
        """
        kind, seq, where, of_session = (frame.head.word_select(i, 8) for i in range(4))
        space = where[:4]
        to_read, to_write = ((Space.EXTERNAL,), WITH_EXTERNAL) if self.has_external else ((), ())
        count, is_ = frame.rest[24:], self.command
        with m.State("CHECK"):
            follow = (kind[:4] == Command.WRITE) | (kind[:4] == Command.COMMIT)
            m.d.sync += [is_[command].eq(kind[:4] == command) for command in Command]
            m.d.sync += [
                self.readable.eq(_is_one_of(space, (*READABLE, *to_read))),
                self.writable.eq(_is_one_of(space, (*WRITABLE, *to_write)) & (count != 0)),
                self.act.eq(space == Space.ACT),
                self.input.eq(space == Space.INPUT),
                self.begins.eq(~frame.rest[:24].any()),
                self.continues.eq(frame.rest[:24] == state.following),
                self.registers.eq(space == REGISTERS),
                self.words.eq(HEADER_WORDS + 1 + Mux(follow, count, 0)),
                self.formed.eq((kind[4:] == VERSION) & (count <= MAX_WORDS)),
                self.ours.eq((of_session == state.session) & (of_session != 0)),
                self.distance.eq(seq - state.due),
            ]
            if self.has_external:
                mine = (space == Space.EXTERNAL) & state.loaded & ~state.image
                m.d.sync += [
                    self.external.eq(space == Space.EXTERNAL),
                    self.apart.eq((space == Space.EXTERNAL_INPUT) | mine),
                    self.external_input.eq(space == Space.EXTERNAL_INPUT),
                ]
            m.next = "JUDGE"

        with m.State("JUDGE"):
            payload = commit_words(self.has_external)
            if self.has_external:
                payload = Mux(self.external, IMAGE_WORDS, payload)
            known = [
                *(is_[command] for command in (Command.HELLO, Command.RUN, Command.RESET, Command.POLL)),
                is_[Command.READ] & self.readable,
                is_[Command.WRITE] & self.writable,
                is_[Command.COMMIT] & (count == payload),
            ]
            any_version = is_[Command.INFO] & ~kind[7] & (count <= MAX_WORDS)
            needs = [
                is_[Command.READ] & self.act,
                is_[Command.WRITE] & ~self.data & ~self.input,
                is_[Command.RUN],
                is_[Command.COMMIT],
            ]
            m.d.sync += [
                self.formed.eq(((self.formed & Cat(*known).any()) | any_version) & (self.words == frame.length)),
                self.due.eq(self.distance == 0),
                self.blocked.eq(state.running & Cat(*needs).any()),
                self.waits.eq(is_[Command.POLL] & frame.rest[0]),
            ]
            m.next = "COMPARE"

        with m.State("COMPARE"):
            m.d.sync += self.same_crc.eq(self.first_word == load_crc.crc)
            m.next = "SETTLE"
        with m.State("SETTLE"):  # the verdict is made of what is known now
            m.d.sync += state.decides.eq(1)
            m.next = "DECIDE"


def _is_one_of(number: Any, spaces: tuple[int, ...]) -> Any:
    return Cat(number == space for space in spaces).any()
