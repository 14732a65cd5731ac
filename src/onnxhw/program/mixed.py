"""`MixedProgram`: a model in parts, its hardware parts compiled for one configuration."""

from dataclasses import dataclass

from ..ir.parts import GoldenPart, HostPart, Value
from .model import DeviceProgram


@dataclass
class MixedProgram:
    """Parts in execution order; the host passes values between them by name."""

    model: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parts: list[HostPart | GoldenPart | DeviceProgram]

    @property
    def programs(self) -> list[DeviceProgram]:
        """The hardware parts."""
        return [part for part in self.parts if isinstance(part, DeviceProgram)]

    @property
    def whole(self) -> DeviceProgram | None:
        """The program that is the whole model, if there is no other part."""
        part = self.parts[0] if len(self.parts) == 1 else None
        return part if isinstance(part, DeviceProgram) else None

    @property
    def cycles(self) -> int:
        """Predicted, exact cycles of one inference: the sum over the hardware parts."""
        return sum(program.cycles for program in self.programs)

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the hardware executes."""
        return sum(program.macs for program in self.programs)

    @property
    def nominal(self) -> int:
        """Multiply-accumulates of the model's operations on the hardware."""
        return sum(program.nominal for program in self.programs)
