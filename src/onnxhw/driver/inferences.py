"""`Inferences`: the commands of a program's inferences, and what the answers to them mean."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import LinkError
from ..isa.instructions import UNITS
from ..isa.link import MAX_STEP, MAX_WORDS, RESULT_WORDS, Command
from ..isa.memory import COUNTERS, ENDED, RUNNING, WATCHDOG, Control, Space
from ..program.input_regions import input_stream
from ..program.model import DeviceProgram
from ..program.result import Result
from ..program.spans import Span, spans
from .link import Answer, Request

TOKENS = 1 << 24
Tensors = Mapping[str, npt.NDArray[np.int8]]


class Inferences:
    """Inferences of a program on a device with a clock of `clock_hz`; that of number n has the token ``token + n``.

    An inference is `start`, `load` and `fetch`: the run begins with the last word of input. The next one's `load` may
    stand before `fetch`, and the device then performs it as soon as the run allows; its `start` then stands behind.
    """

    def __init__(self, program: DeviceProgram, clock_hz: int, token: int) -> None:
        self.program, self.token = program, token
        self.wait = program.cycles / clock_hz
        """Seconds of a run."""
        wanted = [(port.tensor, span) for port in program.outputs for span in _spans(program, port.tensor)]
        self.outputs = [
            (name, span, list(reads(Command.READ, Space.ACT, span.address, span.count, span.step)))
            for name, span in wanted
        ]
        end = Request(Command.POLL, address=1, count=RESULT_WORDS, wait=self.wait)
        self.fetch = [end, *(request for _, _, requests in self.outputs for request in requests)]
        """Waits for the end of a run and reads its outputs."""

    def load(self, inputs: Tensors) -> list[Request]:
        """Write the inputs, as soon as the run in progress has done with its own."""
        data = input_stream(self.program, inputs).astype("<u4").tobytes()
        return list(pieces(Space.INPUT, 0, data, 1, self.wait))

    def start(self, number: int) -> Request:
        """Begin the run of that number as soon as its inputs are complete."""
        return Request(Command.RUN, address=(self.token + number) % TOKENS)

    def result(self, number: int, answers: Sequence[Answer]) -> Result:
        """From the answers to `fetch`; `LinkError` E9108, E9109, E9110, E9123 as of `Client`."""
        state = numbers(answers[0].payload)
        self._check(state, answers[0].address, (self.token + number) % TOKENS)
        rest = iter(answers[1:])
        shapes = {port.tensor: self.program.tensors[port.tensor].place.shape for port in self.program.outputs}
        flat = {name: np.empty(math.prod(shape) + 1, np.int8) for name, shape in shapes.items()}
        for name, span, requests in self.outputs:
            span.scatter(b"".join(next(rest).payload for _ in requests), flat[name])
        kept = {name: flat[name][:-1].reshape(shape) for name, shape in shapes.items()}
        outputs = {name: self.program.tensors[name].restore(values) for name, values in kept.items()}
        counters = {register.name.lower(): state[register] for register in COUNTERS}
        return Result(outputs, cycles=state[Control.CYCLES], counters=counters, latency=state[Control.LATENCY] or None)

    def _check(self, state: list[int], token: int, wanted: int) -> None:
        """Refuse a run that is not ours, has not ended as it should, or in another number of cycles."""
        program, status, cycles = self.program, state[Control.RUN], state[Control.CYCLES]
        if token != wanted:
            what = f"the device runs something else (token {token}, not {wanted})"
            raise LinkError("E9123", what, hint="the start button was pressed, or another program uses the device")
        if status & WATCHDOG:
            raise LinkError(
                "E9108",
                f"the watchdog stopped the run after {program.cycles} cycles; completed instructions "
                f"({', '.join(UNITS)}): {[state[unit.registers.done] for unit in UNITS]}",
                hint="load the program again; if it stays, the clock may be too fast for the board",
            )
        if not status & ENDED or status & RUNNING:
            raise LinkError("E9110", f"the run has not ended (status {status})", hint="program the board again")
        if cycles != program.cycles:
            raise LinkError(
                "E9109",
                f"the run took {cycles} cycles, the program says {program.cycles}",
                hint="the device holds another program, or its memory is damaged: load the program again",
            )


def _spans(program: DeviceProgram, name: str) -> tuple[Span, ...]:
    return spans(program.tensors[name].place, program.config.word, MAX_STEP)


def reads(command: Command, space: int, address: int, count: int, step: int = 1) -> Iterator[Request]:
    """READ or INFO of `count` words, `step` apart, in frames."""
    for at in range(0, count, MAX_WORDS):
        yield Request(command, space, address + at * step, min(MAX_WORDS, count - at), step=step)


def pieces(space: int, address: int, data: bytes, step: int, wait: float = 0.0) -> Iterator[Request]:
    """WRITE of words, `step` apart, in frames that may have to wait `wait` seconds."""
    for at in range(0, len(data), 4 * MAX_WORDS):
        piece = data[at : at + 4 * MAX_WORDS]
        yield Request(Command.WRITE, space, address + at // 4 * step, len(piece) // 4, piece, step, wait)


def numbers(payload: bytes) -> list[int]:
    """The words of a payload."""
    return [int(word) for word in np.frombuffer(payload, "<u4")]
