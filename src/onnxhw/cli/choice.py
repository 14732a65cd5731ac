"""What a user has chosen between line, core and host: ``--patches``, ``--prefer``, and the rates that decide else."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from ..cost import Prefer
from ..program.traffic import Rates


@dataclass(frozen=True)
class Choice:
    """As `onnxhw.compiler.compile` takes them; `rates` None: there is no line."""

    patches: bool | None = None
    prefer: Prefer = "hardware"
    rates: Rates | None = None

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        return {"patches": self.patches, "prefer": self.prefer, "rates": asdict(self.rates) if self.rates else None}

    @classmethod
    def recorded(cls, manifest: Mapping[str, Any]) -> "Choice":
        """What a manifest has noted; all on the hardware where it has not, or not so."""
        noted = manifest.get("choice")
        noted = noted if isinstance(noted, dict) else {}
        rates, patches = noted.get("rates"), noted.get("patches")
        prefer = next((known for known in get_args(Prefer) if known == noted.get("prefer")), None)
        if not isinstance(rates, dict) or prefer is None or not isinstance(patches, bool | None):
            return cls()
        baud, clock_hz = rates.get("baud"), rates.get("clock_hz")
        if type(baud) is not int or type(clock_hz) is not int or min(baud, clock_hz) < 1:
            return cls()
        return cls(patches, prefer, Rates(baud, clock_hz))


BY_DEFAULT = Choice()
"""Nothing was chosen."""
