"""`Client`: programs and tensors to a device and back, over any `Transport`."""

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..closeable import Closeable
from ..config import HwConfig
from ..emu.emulator import check_inputs
from ..errors import LinkError, UsageError
from ..isa.link import (
    COMMIT_WORDS,
    HEAD_WORDS,
    IMAGE,
    LOADED,
    REGISTERS,
    Command,
    Info,
    Register,
)
from ..isa.memory import Control, Space
from ..program.external_tensors import external_span, external_tensor
from ..program.host_words import Words
from ..program.model import DeviceProgram
from ..program.result import Result
from ..program.traffic import core_bytes, load_bytes
from .inferences import TOKENS, Inferences, Tensors, numbers, reads
from .link import Counters, Link, Progress, Request
from .load_requests import (
    image_writes,
    load_crc,
    load_requests,
    program_writes,
    run_counts,
    state_writes,
    word_writes,
)
from .snapshot import SNAPSHOT_WORDS, Snapshot
from .transport import Transport

AT_ONCE = 256
"""Commands of a batch that are handed to the link together, at least."""


UNKNOWN = -1
"""No session's number."""


class Client(Closeable):
    """One device at the other end of `transport`.

    Commands are performed once and in order, whatever the line does to them, or an error is raised; every wait is
    bounded (`Link`).

    Errors: those of `Link`, and `LinkError` E9105 another design, E9106 another protocol, E9107 another
    configuration, E9108 watchdog, E9109 wrong cycle count, E9110 the run has not ended, E9123 the run was not ours.
    `UsageError` E2150, E2151 inputs that do not fit the program.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.link = Link(transport)
        self._head: Info | None = None
        self._info: Info | None = None
        self._program: DeviceProgram | None = None
        self._token = random.randrange(TOKENS)
        self._proved: tuple[DeviceProgram, int] | None = None
        """The program that the device is known to hold, in the session of that number in `counters`."""
        self._settled = 0
        """The session, by its number in `counters`, in which the device holds no inputs that a run has not taken."""
        self._states: tuple[DeviceProgram, int] | None = None
        """The program whose states we have begun or loaded, and the session, by its number in `counters`, in which they
        are those that our last run has left; `UNKNOWN` while one is under way, and behind one that has failed."""

    @property
    def counters(self) -> Counters:
        """What the link has met so far."""
        return self.link.counters

    def close(self) -> None:
        """Release the transport."""
        self.transport.close()

    # -- commands ------------------------------------------------------------------------------

    def info(self) -> Info:
        """What the device says it is (asked once)."""
        if self._info is None:
            head = self._words(Command.INFO, 0, 0, HEAD_WORDS).tolist()
            rest = self._words(Command.INFO, 0, HEAD_WORDS, Info.text_words(head))
            self._info = Info.from_words([*head, *rest.tolist()])
        return self._info

    def head(self) -> Info:
        """`info` without the configuration: one short frame, asked once."""
        if self._head is None:
            self._head = Info.from_words(self._words(Command.INFO, 0, 0, HEAD_WORDS).tolist())
        return self._head

    def write(self, space: int, address: int, words: npt.ArrayLike) -> None:
        """Write 32-bit words from host-word `address` of a memory on.

        Any but ACT belongs to the program: the device then holds none that could run until one is loaded. EXTERNAL
        does so if there is an image that a program has brought.
        """
        self.link.perform(list(word_writes(space, address, np.asarray(words))))

    def read(self, space: int, address: int, count: int) -> Words:
        """Read `count` 32-bit words from host-word `address` of CONTROL, ACT or EXTERNAL on (a core reads no
        others)."""
        return self._words(Command.READ, space, address, count)

    def control(self, register: Control) -> int:
        """One control register."""
        return int(self.read(Space.CONTROL, register, 1)[0])

    def status(self) -> int:
        """Control.RUN: bits RUNNING, ENDED, WATCHDOG."""
        return self.control(Control.RUN)

    def snapshot(self) -> Snapshot:
        """What the device is doing: run state, counters and last instructions; also during a run."""
        (answer,) = self.link.perform([Request(Command.POLL, count=SNAPSHOT_WORDS)])
        return Snapshot.of(answer.address, numbers(answer.payload))

    def reset(self) -> None:
        """Stop a run and forget the program."""
        self._program = self._proved = self._states = None
        self.link.perform([Request(Command.RESET, address=1)])

    # -- programs ------------------------------------------------------------------------------

    def check(self, config: HwConfig) -> None:
        """Refuse with `LinkError` E9107 a device of another configuration."""
        if self.head().fingerprint != config.fingerprint:
            info = self.info()
            there = f"{info.config.name!r} ({info.fingerprint})" if info.config else info.fingerprint
            raise LinkError(
                "E9107",
                f"the bitstream on the board is for configuration {there}, the program needs "
                f"{config.name!r} ({config.fingerprint})",
                hint=f"program the board with a bitstream of {config.name!r}, or compile for what is on the board",
            )

    def load(self, program: DeviceProgram, progress: Progress | None = None) -> None:
        """Write a program into the device.

        The device first forgets the one it has, and runs none until the last command has told it the CRC of
        what it has received: it never runs half of one. An image of external memory that is there already, complete,
        is not sent again. `to_load` says beforehand how many bytes are sent. States have their initial values.
        """
        self.check(program.config)
        self._program = self._proved = self._states = None
        image = program.external.size > 0 and not self._has_image(program)
        self.link.perform(load_requests(program, image=image), progress)
        self._program, self._settled = program, self.counters.sessions
        self._proved = program, self.counters.sessions
        self._states = program, self.counters.sessions

    def to_load(self, program: DeviceProgram) -> int:
        """Bytes that `load` would send, at their least (`program.traffic`): without an image that is there."""
        self.check(program.config)
        return core_bytes(program) if self._has_image(program) else load_bytes(program)

    def holds(self, program: DeviceProgram) -> bool:
        """Whether this program is loaded already, completely, by whatever session; `run` then needs no `load`."""
        self.check(program.config)
        flags, crc = self.read(REGISTERS, 0, 2).tolist()
        counts = self.read(Space.CONTROL, Control.LOAD_COUNT, COMMIT_WORDS - 1).tolist()
        if program.config.external is not None:
            counts.append(self.control(Control.MOVE_COUNT))
        same = counts == run_counts(program) and crc == load_crc(list(program_writes(program)))
        found = bool(flags & LOADED) and same and (self._has_image(program) or not program.external.size)
        if found:
            self._proved = program, self.counters.sessions
        return found

    def _has_image(self, program: DeviceProgram) -> bool:
        """Whether the device holds the image of external memory that the program has, completely."""
        if not program.external.size:
            return False
        flags, _, crc = self.read(REGISTERS, 0, Register.IMAGE_CRC + 1).tolist()
        return bool(flags & IMAGE) and crc == load_crc(list(image_writes(program)))

    def _require_held(self, program: DeviceProgram) -> None:
        """Refuse to write inputs into external memory where another program has its image, with E9121."""
        known, session = self._proved or (None, 0)
        if known is program and self.link.met and session == self.counters.sessions:
            return
        if not self.holds(program):
            raise LinkError("E9121", "the device does not hold this program", hint="call load(program) first")

    def clear_state(self, program: DeviceProgram | None = None) -> None:
        """Begin again with the initial values of the states of the loaded program, behind the end of a run in progress;
        `program` as of `run`.

        `UsageError` E2150: none is loaded; `LinkError` E9121: the device does not hold it.
        """
        program = self._chosen(program)
        self._states = program, UNKNOWN
        if not self.holds(program):
            raise LinkError("E9121", "the device does not hold this program", hint="call load(program) first")
        end = Inferences(program, self.head().clock_hz, 0).settle
        self.link.perform([*end, *state_writes(program)])
        self._states, self._settled = (program, self.counters.sessions), self.counters.sessions

    def states(self, program: DeviceProgram | None = None) -> dict[str, npt.NDArray[np.int8]]:
        """What the next run of the loaded program will find, as integers by the name of the model's input; `program` as
        of `run`."""
        program, found = self._chosen(program), dict[str, npt.NDArray[np.int8]]()
        for state in program.states:
            entry, word = program.tensors[state.read], program.config.word
            words = self.read(Space.EXTERNAL, *external_span(entry, word))
            found[state.input] = external_tensor(entry, words, word)
        return found

    def _chosen(self, program: DeviceProgram | None) -> DeviceProgram:
        if program is not None:
            self.check(program.config)
            self._program = program
        if self._program is None:
            raise UsageError("E2150", "no program is loaded", hint="call load(program) first")
        return self._program

    def _begin_states(self, program: DeviceProgram) -> None:
        """States that somebody else has left begin anew; ours are refused with E9124 if a run has failed, or somebody
        else may have run the program meanwhile."""
        known, session = self._states or (None, UNKNOWN)
        if known is not program:
            self.clear_state(program)
        elif session != self.counters.sessions:
            what = "a run has failed, or the line was lost: nobody knows how many runs the states have seen"
            raise LinkError("E9124", what, hint="clear_state() begins anew; behind the watchdog load(program) does")
        self._states = program, UNKNOWN

    def run(self, inputs: Tensors, program: DeviceProgram | None = None) -> Result:
        """One inference of the loaded program: int8 inputs by tensor name (`Port.tensor`).

        `program` names one that is on the device already (baked, or loaded by an earlier session), without
        loading it.
        """
        return self.run_all([inputs], program)[0]

    def run_all(
        self, batch: Sequence[Tensors], program: DeviceProgram | None = None, progress: Progress | None = None
    ) -> list[Result]:
        """Inferences one after the other, in order; while one is computed the next one's inputs travel.

        The device waits by itself where an inference has to wait for another, so that the time of all is that of the
        slower of line and core; where inputs share memory with outputs, only as many bytes travel during a run as the
        device's input memory holds. `progress` is told how many results are here, of how many. The first result alone
        has counters and the latency: those of the others would be the same, and cost the line as many bytes.

        Inputs that an earlier host or a batch that failed has left in the device are forgotten first, and a run of that
        host is stopped; with moves it ends first, because stopping it would cost the program.

        States go from inference to inference, and from batch to batch. The first one of a session begins with their
        initial values, unless it has loaded the program; behind a batch that failed the next is refused with E9124.
        """
        program = self._chosen(program)
        for inputs in batch:
            check_inputs(program, inputs, "E2151")
        run = Inferences(program, self.head().clock_hz, self._token + 1)
        if batch and (run.external or program.states):
            self._require_held(program)
        if batch and program.states:
            self._begin_states(program)
        self._token = (self._token + len(batch)) % TOKENS
        settled, self._settled = self.link.met and self._settled == self.counters.sessions, 0
        results: list[Result] = []
        commands: list[Request] = [] if settled else run.settle
        asked: list[int] = []
        for number in range(len(batch)):
            if run.early and number:
                commands.append(run.start(number))
            else:  # the next inputs may lie where outputs do
                commands += run.begin(number, batch[number])
            if run.early and number + 1 < len(batch):
                commands += run.load(batch[number + 1])
            asked.append(len(commands))
            commands += run.fetch_next if number else run.fetch
            if len(commands) >= AT_ONCE or number + 1 == len(batch):
                answers = self.link.perform(commands)
                for at in asked:
                    results.append(run.result(len(results), answers[at : at + len(run.fetch)]))
                    if progress:
                        progress(len(results), len(batch))
                commands, asked = [], []
        if batch:
            self._settled = self.counters.sessions
        if batch and program.states:
            self._states = program, self.counters.sessions
        return results

    def _words(self, command: Command, space: int, address: int, count: int) -> Words:
        answers = self.link.perform(list(reads(command, space, address, count)))
        return np.frombuffer(b"".join(answer.payload for answer in answers), "<u4").astype(np.uint32)
