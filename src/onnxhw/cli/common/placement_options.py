"""What a user has chosen between line, core and host: ``--prefer``, and the rates that decide else."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...compiler.cost import Prefer
from ...program.traffic import Rates


@dataclass(frozen=True)
class PlacementOptions:
    """As `onnxhw.compiler.compile` takes them; `rates` None: there is no line."""

    prefer: Prefer = "hardware"
    rates: Rates | None = None

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        return {"prefer": self.prefer, "rates": asdict(self.rates) if self.rates else None}

    @classmethod
    def recorded(cls, manifest: Mapping[str, Any]) -> "PlacementOptions":
        """What a manifest has noted (`onnxhw.driver.artifact.manifest` has checked it); the default if nothing."""
        noted = manifest.get("choice")
        if not noted:
            return cls()
        rates = noted["rates"]
        return cls(noted["prefer"], Rates(rates["baud"], rates["clock_hz"]) if rates else None)


BY_DEFAULT = PlacementOptions()
"""Nothing was chosen."""
