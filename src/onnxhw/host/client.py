"""`Client`: programs and tensors to a device and back, over any `Transport`."""

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..closing import Closing
from ..config import HwConfig
from ..errors import LinkError, UsageError
from ..isa.link import HEAD_WORDS, LOADED, MAX_STEP, MAX_WORDS, REGISTERS, Command, Info, load_record
from ..isa.memory import COUNTERS, ENDED, RUNNING, UCODE_SPACES, WATCHDOG, Control, Space
from ..program.image import Words, memories
from ..program.model import Program
from ..program.result import Result
from ..program.spans import Span, spans
from .framing import crc32c
from .link import Counters, Link, Progress, Request
from .snapshot import SNAPSHOT_WORDS, Snapshot
from .transport import Transport

RESULT_WORDS = Control.BUSY_VECTOR + 1
"""Control registers that describe a run."""


class Client(Closing):
    """One device at the other end of `transport`.

    Commands are performed once and in order, whatever the line does to them, or an error is raised; every wait is
    bounded (`Link`).

    Errors: those of `Link`, and `LinkError` E9105 another design, E9106 another protocol, E9107 another
    configuration, E9108 watchdog, E9109 wrong cycle count, E9110 the run does not end, E9123 the run was not ours.
    `UsageError` E2150, E2151 inputs that do not fit the program.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.link = Link(transport)
        self._head: Info | None = None
        self._info: Info | None = None
        self._program: Program | None = None
        self._token = random.randrange(1 << 24)

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

        Any but ACT belongs to the program: the device then holds none that could run until one is loaded.
        """
        self.link.perform(list(_writes(space, address, np.asarray(words))))

    def read(self, space: int, address: int, count: int) -> Words:
        """Read `count` 32-bit words from host-word `address` of CONTROL or ACT on (a core reads no others)."""
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
        return Snapshot.of(answer.address, _numbers(answer.payload))

    def reset(self) -> None:
        """Stop a run and forget the program."""
        self._program = None
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

    def load(self, program: Program, progress: Progress | None = None) -> None:
        """Write a program into the device.

        The device first forgets the one it has, and runs none until the last command has told it the CRC of
        what it has received: it never runs half of one.
        """
        self.check(program.config)
        self._program = None
        writes = list(_program_writes(program))
        last = Request(Command.COMMIT, count=5, payload=_bytes([_program_crc(writes), *_counts(program)]))
        self.link.perform([Request(Command.RESET, address=1), *writes, last], progress)
        self._program = program

    def holds(self, program: Program) -> bool:
        """Whether this program is loaded already, completely, by whatever session; `run` then needs no `load`."""
        self.check(program.config)
        flags, crc = self.read(REGISTERS, 0, 2).tolist()
        counts = self.read(Space.CONTROL, Control.LOAD_COUNT, 4).tolist()
        same = crc == _program_crc(list(_program_writes(program))) and counts == _counts(program)
        return bool(flags & LOADED) and same

    def run(self, inputs: Mapping[str, npt.NDArray[np.int8]], program: Program | None = None) -> Result:
        """One inference of the loaded program: int8 inputs by tensor name (`Port.tensor`).

        `program` names one that is on the device already (baked, or loaded by an earlier session), without
        loading it.
        """
        if program is not None:
            self.check(program.config)
            self._program = program
        program = self._program
        if program is None:
            raise UsageError("E2150", "no program is loaded", hint="call load(program) first")
        _check_inputs(program, inputs)
        self._token = (self._token + 1) % (1 << 24)
        writes = [
            each
            for name, values in inputs.items()
            for kept in (program.tensors[name].store(values),)
            for span in _spans(program, name)
            for each in _pieces(Space.ACT, span.address, span.gather(kept), span.step)
        ]
        state = self._ended(program, [*writes, Request(Command.RUN, address=self._token)])
        cycles = state[Control.CYCLES]
        if cycles != program.cycles:
            raise LinkError(
                "E9109",
                f"the run took {cycles} cycles, the program says {program.cycles}",
                hint="the device holds another program, or its memory is damaged: load the program again",
            )
        outputs = self._outputs(program)
        counters = {register.name.lower(): state[register] for register in COUNTERS}
        return Result(outputs, cycles=cycles, counters=counters)

    def _ended(self, program: Program, commands: list[Request]) -> list[int]:
        """Start a run by the last of `commands` and wait for its end; the control registers then."""
        poll = Request(Command.POLL, count=RESULT_WORDS)
        clock_hz = self.head().clock_hz
        *_, answer = self.link.perform([*commands, poll])
        wait = 2 * program.cycles / clock_hz + self.transport.latency
        deadline = self.transport.now() + wait
        while True:
            state = _numbers(answer.payload)
            status = state[Control.RUN]
            if answer.address != self._token:
                what = f"the device runs something else (token {answer.address}, not {self._token})"
                raise LinkError("E9123", what, hint="the start button was pressed, or another program uses the device")
            if status & WATCHDOG:
                raise LinkError(
                    "E9108",
                    f"the watchdog stopped the run after {program.cycles} cycles; completed instructions "
                    f"(load, array, vector): {state[Control.LOAD_DONE : Control.LOAD_DONE + 3]}",
                    hint="load the program again; if it stays, the clock may be too fast for the board",
                )
            if status & ENDED and not status & RUNNING:
                return state
            if self.transport.now() > deadline:
                raise LinkError("E9110", f"the run has not ended (status {status})", hint="program the board again")
            # Not before it can have ended, so that the line is free and the host at rest.
            self.link.idle(max(0, program.cycles - state[Control.CYCLES]) / clock_hz)
            (answer,) = self.link.perform([poll])

    def _outputs(self, program: Program) -> dict[str, npt.NDArray[np.int8]]:
        """The output tensors, read as one batch."""
        wanted = [(port.tensor, span) for port in program.outputs for span in _spans(program, port.tensor)]
        requests = [list(_reads(Command.READ, Space.ACT, span.address, span.count, span.step)) for _, span in wanted]
        answers = iter(self.link.perform([each for piece in requests for each in piece]))
        shapes = {port.tensor: program.tensors[port.tensor].place.shape for port in program.outputs}
        flat = {name: np.empty(math.prod(shape) + 1, np.int8) for name, shape in shapes.items()}
        for (name, span), piece in zip(wanted, requests, strict=True):
            span.scatter(b"".join(next(answers).payload for _ in piece), flat[name])
        kept = {name: flat[name][:-1].reshape(shape) for name, shape in shapes.items()}
        return {name: program.tensors[name].restore(values) for name, values in kept.items()}

    def _words(self, command: Command, space: int, address: int, count: int) -> Words:
        answers = self.link.perform(list(_reads(command, space, address, count)))
        return np.frombuffer(b"".join(answer.payload for answer in answers), "<u4").astype(np.uint32)


def _spans(program: Program, name: str) -> tuple[Span, ...]:
    return spans(program.tensors[name].place, program.config.word, MAX_STEP)


def _reads(command: Command, space: int, address: int, count: int, step: int = 1) -> Iterator[Request]:
    for at in range(0, count, MAX_WORDS):
        yield Request(command, space, address + at * step, min(MAX_WORDS, count - at), step=step)


def _writes(space: int, address: int, words: npt.NDArray[Any]) -> Iterator[Request]:
    return _pieces(space, address, words.reshape(-1).astype("<u4").tobytes(), 1)


def _pieces(space: int, address: int, data: bytes, step: int) -> Iterator[Request]:
    for at in range(0, len(data), 4 * MAX_WORDS):
        piece = data[at : at + 4 * MAX_WORDS]
        yield Request(Command.WRITE, space, address + at // 4 * step, len(piece) // 4, piece, step)


def _program_writes(program: Program) -> Iterator[Request]:
    for space, image in memories(program):
        yield from _writes(space, 0, image)


def _program_crc(writes: list[Request]) -> int:
    return crc32c(b"".join(load_record(each.space, each.address, each.payload) for each in writes))


def _counts(program: Program) -> list[int]:
    """Contents of Control.LOAD_COUNT .. BUDGET."""
    return [*(len(program.code.get(unit, ())) for unit in UCODE_SPACES), program.cycles]


def _bytes(words: list[int]) -> bytes:
    return np.array(words, "<u4").tobytes()


def _numbers(payload: bytes) -> list[int]:
    return [int(word) for word in np.frombuffer(payload, "<u4")]


def _check_inputs(program: Program, inputs: Mapping[str, npt.NDArray[np.int8]]) -> None:
    wanted = {port.tensor for port in program.inputs}
    if set(inputs) != wanted:
        raise UsageError("E2151", f"the inputs must be {sorted(wanted)}, not {sorted(inputs)}")
    for name, values in inputs.items():
        shape = program.tensors[name].shape
        if values.shape != shape or values.dtype != np.int8:
            raise UsageError("E2151", f"input {name!r} must be int8 {shape}, not {values.dtype} {values.shape}")
