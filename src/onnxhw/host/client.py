"""`Client`: programs and tensors to a device and back, over any `Transport`."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import LinkError, UsageError
from ..isa.link import (
    CRC_BYTES,
    HEAD_WORDS,
    HEADER_BYTES,
    MAX_WORDS,
    REPLY,
    Command,
    Header,
    Info,
    Status,
    command_kind,
)
from ..isa.memory import COUNTERS, ENDED, RUNNING, UCODE_SPACES, WATCHDOG, Control, Space
from ..program.image import Words, memories, tensor_image, tensor_of, tensor_spans
from ..program.model import Program
from ..program.result import Result
from .framing import Frame, FrameReader
from .transport import Transport

ATTEMPTS = 8
"""How often a frame is sent before the link is given up."""


@dataclass
class Counters:
    """What the link has met so far."""

    frames: int = 0
    retries: int = 0
    timeouts: int = 0
    refused: int = 0
    """Frames that the device found damaged."""


class Client:
    """One device at the other end of `transport`; commands go one at a time and are repeated if unanswered.

    A repeated command is safe: the device performs a WRITE it has performed before only once. Every wait is
    bounded: a timeout is twice the frames' time on the line plus the transport's latency.

    Errors: `LinkError` E9103 no answer, E9104 the device refuses, E9105 another design, E9106 another protocol,
    E9107 another configuration, E9108 watchdog, E9109 wrong cycle count, E9110 the run does not end, E9111 a
    run is in progress. `UsageError` E2150, E2151 inputs that
    do not fit the program.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.counters = Counters()
        self._reader = FrameReader()
        self._seq = random.randrange(256)
        self._head: Info | None = None
        self._info: Info | None = None
        self._program: Program | None = None
        # Two delimiters end whatever a session before has left unfinished on the line.
        transport.write(b"\0\0")

    def close(self) -> None:
        """Release the transport."""
        self.transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- commands ------------------------------------------------------------------------------

    def info(self) -> Info:
        """What the device says it is (asked once)."""
        if self._info is None:
            head = self._read(Command.INFO, 0, 0, HEAD_WORDS).tolist()
            rest = self._read(Command.INFO, 0, HEAD_WORDS, Info.text_words(head))
            self._info = Info.from_words([*head, *rest.tolist()])
        return self._info

    def head(self) -> Info:
        """`info` without the configuration: one short frame, asked once."""
        if self._head is None:
            self._head = Info.from_words(self._read(Command.INFO, 0, 0, HEAD_WORDS).tolist())
        return self._head

    def write(self, space: int, address: int, words: npt.ArrayLike) -> None:
        """Write 32-bit words from host-word `address` of a space on."""
        data = np.asarray(words, np.uint32).reshape(-1)
        for at in range(0, len(data), MAX_WORDS):
            piece = data[at : at + MAX_WORDS]
            self._request(Command.WRITE, space, address + at, len(piece), piece.astype("<u4").tobytes())

    def read(self, space: int, address: int, count: int) -> Words:
        """Read `count` 32-bit words from host-word `address` of CONTROL or ACT on (a core reads no others)."""
        return self._read(Command.READ, space, address, count)

    def control(self, register: Control) -> int:
        """One control register."""
        return int(self.read(Space.CONTROL, register, 1)[0])

    def status(self) -> int:
        """Control.RUN: bits RUNNING, ENDED, WATCHDOG."""
        return self.control(Control.RUN)

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

    def load(self, program: Program) -> None:
        """Write a program into the device.

        The counts are zeroed first and written last, in one frame: a device that was left in the middle has
        an empty program, never half of one.
        """
        self.check(program.config)
        self._program = None
        self.write(Space.CONTROL, Control.RUN, [0])
        self.write(Space.CONTROL, Control.LOAD_COUNT, [0, 0, 0, 0])
        for space, image in memories(program):
            self.write(space, 0, image)
        counts = [len(program.code.get(unit, ())) for unit in UCODE_SPACES]
        self.write(Space.CONTROL, Control.LOAD_COUNT, [*counts, program.cycles])
        self._program = program

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
        for address, words in tensor_image(program, inputs):
            self.write(Space.ACT, address, words)
        self.write(Space.CONTROL, Control.RUN, [1])
        self._wait(program)
        cycles, *counts = self.read(Space.CONTROL, Control.CYCLES, 1 + len(COUNTERS)).tolist()
        if cycles != program.cycles:
            raise LinkError(
                "E9109",
                f"the run took {cycles} cycles, the program says {program.cycles}",
                hint="the device holds another program, or its memory is damaged: load the program again",
            )
        outputs = {}
        for port in program.outputs:
            pieces = [self.read(Space.ACT, *span) for span in tensor_spans(program, port.tensor)]
            outputs[port.tensor] = tensor_of(program, port.tensor, pieces)
        counters = {register.name.lower(): count for register, count in zip(COUNTERS, counts, strict=True)}
        return Result(outputs, cycles=cycles, counters=counters)

    def _wait(self, program: Program) -> None:
        deadline = self.transport.now() + 2 * program.cycles / self.head().clock_hz + self._patience(64)
        while True:
            status = self.status()
            if status & WATCHDOG:
                done = self.read(Space.CONTROL, Control.LOAD_DONE, 3).tolist()
                raise LinkError(
                    "E9108",
                    f"the watchdog stopped the run after {program.cycles} cycles; completed instructions "
                    f"(load, array, vector): {done}",
                    hint="load the program again; if it stays, the clock may be too fast for the board",
                )
            if status & ENDED and not status & RUNNING:
                return
            if self.transport.now() > deadline:
                raise LinkError("E9110", f"the run has not ended (status {status})", hint="program the board again")

    # -- frames --------------------------------------------------------------------------------

    def _read(self, command: Command, space: int, address: int, count: int) -> Words:
        pieces = [
            self._request(command, space, address + at, min(MAX_WORDS, count - at)) for at in range(0, count, MAX_WORDS)
        ]
        return np.frombuffer(b"".join(pieces), "<u4").astype(np.uint32)

    def _request(self, command: Command, space: int, address: int, count: int, payload: bytes = b"") -> bytes:
        """Send a command until it is answered; the answer's payload."""
        self._seq = (self._seq + 1) % 256
        header = Header(command_kind(command), self._seq, space, address, count)
        frame = Frame(header, payload).encode()
        asked = 0 if command is Command.WRITE else 4 * count
        self.counters.frames += 1
        for attempt in range(ATTEMPTS):
            if attempt:
                self.counters.retries += 1
            # The leading delimiter ends a frame before whose own was lost.
            self.transport.write(b"\0" + frame)
            answer = self._answer(header, self._patience(len(frame) + asked))
            if answer is None:
                continue
            if answer.header.space == Status.OK and len(answer.payload) == asked:
                return answer.payload
            if answer.header.space == Status.BUSY:
                what = f"a run is in progress: {Space(space).name} cannot be reached"
                raise LinkError("E9111", what, hint="wait until it has ended")
            if answer.header.space == Status.BAD_COMMAND:
                raise LinkError(
                    "E9104",
                    f"the device refuses {command.name} of {count} words at {address} of space {space}",
                    hint="driver and bitstream are of different releases",
                )
        raise LinkError(
            "E9103",
            f"no valid answer to {command.name} in {ATTEMPTS} attempts ({self.counters.timeouts} timeouts, "
            f"{self.counters.refused} damaged frames, {self._reader.damaged} damaged answers in this session)",
            hint=f"is an onnxhw bitstream on the board, and its line at {self.transport.baud} baud?",
        )

    def _answer(self, header: Header, patience: float) -> Frame | None:
        """The answer to `header`, or None: a timeout, or the device found the frame damaged."""
        deadline = self.transport.now() + patience
        while (left := deadline - self.transport.now()) > 0:
            for frame in self._reader.feed(self.transport.read(left)):
                got = frame.header
                if got.kind == REPLY and got.space == Status.BAD_FRAME:
                    self.counters.refused += 1
                    return None
                if (got.kind, got.seq, got.address) == (header.kind | REPLY, header.seq, header.address):
                    return frame
        self.counters.timeouts += 1
        return None

    def _patience(self, size: int) -> float:
        """Seconds for `size` payload bytes there and back, twice over, and the transport's latency."""
        return 2 * 10 * (size + 2 * (HEADER_BYTES + CRC_BYTES + 4)) / self.transport.baud + self.transport.latency


def _check_inputs(program: Program, inputs: Mapping[str, npt.NDArray[np.int8]]) -> None:
    wanted = {port.tensor for port in program.inputs}
    if set(inputs) != wanted:
        raise UsageError("E2151", f"the inputs must be {sorted(wanted)}, not {sorted(inputs)}")
    for name, values in inputs.items():
        shape = program.tensors[name].place.shape
        if values.shape != shape or values.dtype != np.int8:
            raise UsageError("E2151", f"input {name!r} must be int8 {shape}, not {values.dtype} {values.shape}")
