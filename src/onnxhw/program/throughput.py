"""How many inferences a device makes in a second, one behind the other, and what bounds that.

While a run goes on, the next inputs travel and the outputs of the run before (docs/link.md, "Transfers during runs").
So an inference takes at least the longest of::

    line     the bytes of the busier direction; over USB, whose directions share it, all of them
    core     the run, its start sequence included
    inputs   from the run's begin until it has done with its inputs, and what the device's input memory could not hold
             of the next ones meanwhile
    outputs  the run, and what the device cannot keep of its outputs while the next one goes on

Not counted: what the host computes, and an adapter's latency. Programs that take turns are loaded for a whole batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..isa.link import ANSWER_WORDS, FIFO_BYTES
from ..isa.timeline import timeline
from ..isa.units import Unit
from .input_regions import latency
from .model import DeviceProgram
from .traffic import Rates, Traffic, traffic_of

KEPT_BYTES = 4 * ANSWER_WORDS
"""Of answers that the host lets be under way."""


@dataclass(frozen=True)
class Throughput:
    """Milliseconds of an inference among many: what the module's docstring lists, and `period` from one result to the
    next, at the least; `programs` take turns."""

    line: float
    core: float
    inputs: float
    outputs: float
    period: float
    programs: int = 1

    @property
    def bound(self) -> str:
        """What bounds it, "link" or "core": of both together the one that takes longer."""
        return "link" if self.line >= self.core else "core"

    def record(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "per_second": round(1e3 / self.period, 3),
            "bound": self.bound,
            "line_ms": round(self.line, 4),
            "core_ms": round(self.core, 4),
            "inputs_ms": round(self.inputs, 4),
            "outputs_ms": round(self.outputs, 4),
            "programs": self.programs,
        }


def throughput(cycles: int, free: int, moved: Traffic, rates: Rates) -> Throughput:
    """Of a run of so many cycles, which has done with its inputs after `free` of them, with this traffic."""
    core = rates.core_ms(cycles)
    times = (
        rates.both_ms(moved.sent, moved.streamed),
        core,
        rates.core_ms(free) + rates.line_ms(max(0, moved.sent - FIFO_BYTES)),
        core + rates.line_ms(max(0, moved.streamed - KEPT_BYTES)),
    )
    return Throughput(*times, max(times))


def throughput_of(programs: Sequence[DeviceProgram], rates: Rates) -> Throughput:
    """Of programs that run one after the other, each for all inferences of a batch."""
    return _summed([throughput(_run(each), _free(each), traffic_of(each), rates) for each in programs])


def about_throughput(parts: Sequence[tuple[int, Traffic]], rates: Rates) -> Throughput:
    """The same where only the cycles of runs are known: as if their inputs were free at once."""
    return _summed([throughput(cycles, 0, moved, rates) for cycles, moved in parts])


def throughput_sentence(record: dict[str, Any]) -> str:
    """A record of `Throughput`, for people."""
    bounds = {
        "line_ms": "on the line", "core_ms": "in the core",
        "inputs_ms": "until the core has done with its inputs and the next ones are there",
        "outputs_ms": "in the core and until its outputs are read",
    }  # fmt: skip
    longest = max(bounds, key=lambda name: record[name])
    turns = f"; loading the {record['programs']} programs in turn, once per batch, comes on top"
    return (
        f"many inferences, one behind the other: at most {record['per_second']:,.1f} per second, bound by the "
        f"{record['bound']}: {record[longest]:,.3f} ms {bounds[longest]}{turns if record['programs'] > 1 else ''}"
    )


def _summed(parts: Sequence[Throughput]) -> Throughput:
    """Of parts that take turns: the sum of each."""
    return Throughput(*(sum(getattr(part, field.name) for part in parts) for field in fields(Throughput)))


def _run(program: DeviceProgram) -> int:
    """Cycles of a run with what is before its cycle 0."""
    return max(program.cycles, latency(program)) if program.in_segments else program.cycles


def _free(program: DeviceProgram) -> int:
    """Cycles after which a run has done with its inputs."""
    if program.input_free == (0, 0):
        return _run(program)
    spans = timeline(program.config, program.code).spans
    counts = zip((Unit.ARRAY, Unit.VECTOR), program.input_free, strict=True)
    return max(spans[unit][count - 1].done for unit, count in counts if count) + _run(program) - program.cycles
