"""`Program`: what a model becomes: parts in turn, those for the hardware scheduled for one configuration."""

from dataclasses import dataclass

from ..batch import Batch
from ..config import HwConfig
from ..errors import UsageError
from ..ir.graph import Port
from ..ir.parts import GoldenPart, HostPart, ValueInfo
from .input_regions import latency
from .model import DeviceProgram

ProgramPart = HostPart | GoldenPart | DeviceProgram


@dataclass
class Program:
    """A compiled model: parts in execution order; the host passes values between them by name.

    `batch`: None where the model does not say that it takes several samples. Inputs, outputs and parts are those of one
    inference.
    """

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    parts: list[ProgramPart]
    batch: Batch | None = None

    @classmethod
    def of(cls, program: DeviceProgram) -> "Program":
        """A model that is one hardware part as a whole."""
        return cls(program.model, _values(program.inputs), _values(program.outputs), [program])

    @property
    def programs(self) -> list[DeviceProgram]:
        """The hardware parts."""
        return [part for part in self.parts if isinstance(part, DeviceProgram)]

    @property
    def config(self) -> HwConfig | None:
        """The configuration of the hardware parts, None if there are none."""
        return next((program.config for program in self.programs), None)

    @property
    def cycles(self) -> int:
        """Predicted, exact cycles of the runs of one inference: the sum over the hardware parts."""
        return sum(program.cycles for program in self.programs)

    @property
    def latency(self) -> int:
        """Predicted, exact cycles from the acceptance of the last input to the end, summed over the hardware parts."""
        return sum(latency(program) for program in self.programs)

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the hardware executes."""
        return sum(program.macs for program in self.programs)

    @property
    def nominal(self) -> int:
        """Multiply-accumulates of the model's operations on the hardware."""
        return sum(program.nominal for program in self.programs)

    @property
    def utilization(self) -> float:
        """Executed multiply-accumulates / (cycles x those of the array per cycle); 0 without hardware parts."""
        peak = self.cycles * self.config.macs_per_cycle if self.config else 0
        return self.macs / peak if peak else 0.0

    def only(self, where: str = "") -> DeviceProgram:
        """The one part of a model that the hardware runs as a whole; `UsageError` E2510 for any other."""
        part = self.parts[0] if len(self.parts) == 1 else None
        if isinstance(part, DeviceProgram):
            return part
        raise UsageError(
            "E2510",
            f"holds a model in {len(self.parts)} parts, {len(self.parts) - len(self.programs)} of them for the host",
            where=where,
            hint="onnxhw run, simulate and InferenceSession take such a program; a device alone needs one all hardware",
        )


def reads(part: ProgramPart) -> tuple[str, ...]:
    """The names of the values that a part reads, once each."""
    return _names(part.inputs) if isinstance(part, DeviceProgram) else part.inputs


def gives(part: ProgramPart) -> tuple[str, ...]:
    """The names of the values that a part gives, once each."""
    return _names(part.outputs) if isinstance(part, DeviceProgram) else part.outputs


def _names(ports: list[Port]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port.name for port in ports))


def _values(ports: list[Port]) -> tuple[ValueInfo, ...]:
    return tuple(dict.fromkeys(ValueInfo(port.name, port.shape, port.dtype) for port in ports))
