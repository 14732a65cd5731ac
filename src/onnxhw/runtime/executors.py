"""`Executors`: the parts of a program, each on what runs it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from .. import engines, golden
from ..closeable import Closeable
from ..driver.artifact import interface_graph
from ..driver.device import Device
from ..hostops.evaluator import parsed
from ..hostops.value_checks import SIZES
from ..ir.graph import Array8
from ..ir.parts import GoldenPart, HostPart
from ..program.model import DeviceProgram
from ..program.parts import Program
from ..program.result import Result

Watch = Callable[[DeviceProgram | GoldenPart, Mapping[str, Array8], Result], None]
"""Told of an inference of a part in integers: the part, its int8 inputs by tensor name, and the result."""


class Executors(Closeable):
    """The parts of a program, each on what runs it.

    Parameters
    ----------
    target : an open device, which loads a program when another is there; or the name of an engine, of which every
        hardware part has one of its own.
    progress : told of each stage of an engine's preparation.

    Attributes, of the last `run`: `cycles` of the hardware over all its inferences; `counters` of one inference, cycles
    and latency (0: not measured) among them, for each hardware part in turn; `host_seconds` of the parts on
    the host, by the clock.
    """

    def __init__(
        self, program: Program, target: Device | str, *, progress: Callable[[str], None] | None = None
    ) -> None:
        self.cycles, self.counters, self.host_seconds = 0, list[dict[str, int]](), 0.0
        self._target, self._stack = target, ExitStack()
        self._clear: list[Callable[[], None]] = []
        try:
            self._parts = [
                self._hardware(part, progress) if isinstance(part, DeviceProgram) else self._host(part)
                for part in program.parts
            ]
        except BaseException:
            self._stack.close()
            raise

    def run(
        self, samples: Sequence[Mapping[str, Any]], watch: Watch | None = None, trace: bool = False
    ) -> list[dict[str, Any]]:
        """The values of each sample: its inputs by name, and what every part gives.

        Part by part: a device loads each program once for all samples, and transfers overlap with runs. With `trace`
        the results that `watch` is told have every tensor of the tensor table; a device has none of them.
        """
        self.cycles, self.counters, self.host_seconds = 0, [], 0.0
        values = [dict(sample) for sample in samples]
        for part in self._parts:
            for known, given in zip(values, part(values, watch, trace), strict=True):
                known.update(given)
        return values

    def clear_state(self) -> None:
        """Begin again with the initial values of all states."""
        for clear in self._clear:
            clear()

    def close(self) -> None:
        """Release the engines; a device stays open."""
        self._stack.close()

    def _host(self, part: HostPart | GoldenPart) -> "_Part":
        if isinstance(part, GoldenPart):
            runs = golden.StatefulRuns(part.graph, part.states)
            self._clear.append(runs.clear)
            return self._timed(golden_runner(part, runs))
        evaluated = host_runner(part)
        return self._timed(lambda values, watch: evaluated(values))

    def _timed(self, compute: Callable[[Mapping[str, Any], Watch | None], dict[str, Any]]) -> "_Part":
        """A part of the host, whose time is added up."""

        def run(samples: Sequence[Mapping[str, Any]], watch: Watch | None, trace: bool) -> list[dict[str, Any]]:
            start = time.perf_counter()
            found = [compute(values, watch) for values in samples]
            self.host_seconds += time.perf_counter() - start
            return found

        return run

    def _hardware(self, program: DeviceProgram, progress: Callable[[str], None] | None) -> "_Part":
        ports = interface_graph(program)
        names = dict.fromkeys(port.name for port in program.inputs)
        execute = self._on_target(program, progress)

        def run(samples: Sequence[Mapping[str, Any]], watch: Watch | None, trace: bool) -> list[dict[str, Any]]:
            batch = [golden.host.prepare(ports, {name: values[name] for name in names}) for values in samples]
            first: Result | None = None
            found = []
            for tensors, result in zip(batch, execute(batch, trace), strict=True):
                self.cycles += result.cycles
                first = first or result
                if watch is not None:
                    watch(program, tensors, result)
                found.append(golden.host.finish(ports, result.outputs))
            if first:
                self.counters.append({"cycles": first.cycles, "latency": first.latency or 0, **first.counters})
            return found

        return run

    def _on_target(
        self, program: DeviceProgram, progress: Callable[[str], None] | None
    ) -> Callable[[list[dict[str, Array8]], bool], Iterable[Result]]:
        """What gives the results of inferences in order."""
        if isinstance(self._target, Device):
            device = self._target
            if program.states:
                self._clear.append(lambda: device.clear_state(program))
            return lambda batch, trace: device.run_batch(batch, program)
        engines.require_able(self._target, program)
        engine = self._stack.enter_context(engines.open(self._target, program.config, progress=progress))
        engine.load(program)
        self._clear.append(engine.clear_state)
        return lambda batch, trace: (engine.run(program, tensors, trace) for tensors in batch)


_Part = Callable[[Sequence[Mapping[str, Any]], Watch | None, bool], list[dict[str, Any]]]
"""What a part gives for each of several samples, from the values known so far."""


def host_runner(part: HostPart) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from the values known so far to those that nodes on the host give.

    Among them, as `SIZES`, are the sizes of dimension variables: a variable has one value in the whole model.
    """
    evaluated = parsed(part.model)

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        sizes = dict(values.get(SIZES, ()))
        return {**evaluated({name: values[name] for name in part.inputs}, sizes), SIZES: sizes}

    return run


def golden_runner(
    part: GoldenPart, runs: golden.StatefulRuns
) -> Callable[[Mapping[str, Any], Watch | None], dict[str, Any]]:
    """The same for an integer graph, on the golden model: host steps to int8, its operations, host steps back.

    `watch`, if it is there, is told what the operations are given, and what they give.
    """
    ports = part.interface

    def run(values: Mapping[str, Any], watch: Watch | None) -> dict[str, Any]:
        inputs = golden.host.prepare(ports, {name: values[name] for name in part.inputs})
        tensors = runs.run(inputs)
        if watch is not None:
            watch(part, inputs, Result({port.tensor: tensors[port.tensor] for port in ports.outputs}))
        return golden.host.finish(ports, tensors)

    return run
