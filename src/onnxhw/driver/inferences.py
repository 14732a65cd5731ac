"""`Inferences`: the commands of a program's inferences, and what the answers to them mean."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import LinkError
from ..isa.instructions import UNITS
from ..isa.link import MAX_WORDS, MOVE_RESULT_WORDS, RESULT_WORDS, STREAM_RESULT_WORDS, Command
from ..isa.memory import COUNTERS, ENDED, MOVE_COUNTERS, RUNNING, WATCHDOG, Control, Space
from ..isa.units import Unit
from ..program.external_tensors import external_inputs, external_words
from ..program.input_regions import from_start, input_stream, latency
from ..program.model import DeviceProgram
from ..program.result import Result
from ..program.spans import output_spans
from .link import Answer, Request

TOKENS = 1 << 24
Tensors = Mapping[str, npt.NDArray[np.int8]]


class Inferences:
    """Inferences of a program on a device with a clock of `clock_hz`; that of number n has the token ``token + n``.

    An inference is `begin` and `fetch`, or behind another one `fetch_next`. With `early` the next one's `load` may
    stand before `fetch`: the device then performs it as soon as the run has done with its own inputs, and its `start`
    stands behind. Without, nothing proves that it has before its end: it ends first, and its outputs are read.
    """

    def __init__(self, program: DeviceProgram, clock_hz: int, token: int) -> None:
        self.program, self.token = program, token
        self.moves = bool(program.code.get(Unit.MOVE))
        self.at_once = from_start(program)
        """No input comes through the input port: a run begins when it is told to."""
        self.wait = max(program.cycles, latency(program) if self.moves else 0) / clock_hz
        """Seconds of a run."""
        self.external = external_inputs(program)
        self.early = program.input_free != (0, 0)
        names = [port.tensor for port in program.outputs]
        self.outputs = [
            (name, span, list(reads(Command.READ, space, span.address, span.count, span.step)))
            for name in names
            for space in [Space.EXTERNAL if program.tensors[name].external else Space.ACT]
            for span in output_spans(program, name)
        ]
        words = MOVE_RESULT_WORDS if self.moves else RESULT_WORDS
        end = Request(Command.POLL, address=1, count=words, wait=self.wait)
        self.fetch = [end, *(request for _, _, requests in self.outputs for request in requests)]
        """Waits for the end of a run and reads its counters and its outputs."""
        self.fetch_next = [end._replace(count=STREAM_RESULT_WORDS), *self.fetch[1:]]
        """The same without counters, for an inference behind another one."""
        self.settle = [end._replace(count=1)] * self.moves + [Request(Command.RESET)]
        """Forgets what another host has left. A run with moves goes on to its end, for if it is stopped no program is
        left."""

    def begin(self, number: int, inputs: Tensors) -> list[Request]:
        """The inputs of the run of that number, and the run."""
        start, load = self.start(number), self.load(inputs)
        return [*load, start] if self.at_once else [start, *load]

    def load(self, inputs: Tensors) -> list[Request]:
        """Write the inputs as soon as the run in progress has done with its own."""
        found: list[Request] = []
        for name in self.external:
            for first, words in external_words(self.program.tensors[name], inputs[name], self.program.config.word):
                found += pieces(Space.EXTERNAL_INPUT, first, words.astype("<u4").tobytes(), 1, self.wait)
        data = input_stream(self.program, inputs).astype("<u4").tobytes()
        return [*found, *pieces(Space.INPUT, 0, data, 1, self.wait)]

    def start(self, number: int) -> Request:
        """Begin the run of that number as soon as its inputs are complete."""
        return Request(Command.RUN, address=(self.token + number) % TOKENS, count=int(self.at_once))

    def result(self, number: int, answers: Sequence[Answer]) -> Result:
        """From the answers to `fetch`, or `fetch_next`: then without counters and latency. `LinkError` E9108, E9109,
        E9110, E9123 as of `Client`."""
        state = numbers(answers[0].payload)
        self._check(state, answers[0].address, (self.token + number) % TOKENS)
        rest = iter(answers[1:])
        tensors = self.program.tensors
        shapes = {name: tensors[name].place.shape for name, *_ in self.outputs}
        flat = {name: np.empty(math.prod(shape) + 1, np.int8) for name, shape in shapes.items()}
        for name, span, requests in self.outputs:
            span.scatter(b"".join(next(rest).payload for _ in requests), flat[name])
        kept = {name: flat[name][:-1].reshape(shape) for name, shape in shapes.items()}
        found = {name: tensors[name].restore(values) for name, values in kept.items()}
        outputs = {port.tensor: found[port.tensor] for port in self.program.outputs}
        cycles = state[Control.CYCLES]
        if len(state) == STREAM_RESULT_WORDS:
            return Result(outputs, cycles=cycles)
        told = (*COUNTERS, *MOVE_COUNTERS) if self.moves else COUNTERS
        counters = {register.name.lower(): state[register] for register in told}
        return Result(outputs, cycles=cycles, counters=counters, latency=state[Control.LATENCY] or None)

    def _check(self, state: list[int], token: int, wanted: int) -> None:
        """Refuse a run that is not ours, has not ended as it should, or in another number of cycles."""
        program, status, cycles = self.program, state[Control.RUN], state[Control.CYCLES]
        units = [unit for unit in (Unit if self.moves else UNITS) if unit.registers.done < len(state)]
        if token != wanted:
            what = f"the device runs something else (token {token}, not {wanted})"
            raise LinkError("E9123", what, hint="the start button was pressed, or another program uses the device")
        if status & WATCHDOG:
            done = f"({', '.join(units)}): {[state[unit.registers.done] for unit in units]}"
            raise LinkError(
                "E9108",
                f"the watchdog stopped the run after {program.cycles} cycles"
                + (f"; completed instructions {done}" if units else ""),
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
