"""`manifest.json`: what an output directory holds and what it was made from. No times and no paths: equal inputs give
equal bytes."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1
"""Version of the manifest's form (`onnxhw.driver.json_records` reads it)."""


@dataclass
class Manifest:
    """Everything that identifies a build.

    `files` are SHA-256 sums by name; `tools` one line per tool; `resources` used and available per kind; `clocks`
    achieved and wanted MHz per clock; `shapes`, `limits`, `exact_softmax` and `persist` what ``--shape``, ``--limit``,
    ``--exact-softmax`` and ``--persist`` said when the model was read; `preprocess` what ``--scale`` to ``--layout``
    said (`Preprocess.record`), `choice` what ``--prefer`` said, and the rates of line and core that decided.
    """

    board: str = ""
    device: str = ""
    preset: str = ""
    config: str = ""
    """Fingerprint of the `HwConfig`."""
    model_sha256: str = ""
    design: str = ""
    """Key of the bitstream: hash of RTL, constraints, tools and options."""
    clock_hz: int = 0
    baud: int = 0
    """Speed of the link, 0 without a bitstream."""
    seed: int = 0
    fmax_mhz: float = 0.0
    timing_met: bool = False
    critical_path: str = ""
    """The path that decides over `fmax_mhz`, in words."""
    deterministic: bool = True
    tools: dict[str, str] = field(default_factory=dict)
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    clocks: dict[str, dict[str, float]] = field(default_factory=dict)
    shapes: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    exact_softmax: bool = False
    preprocess: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    link: str = ""
    """One of `board_tables.LINKS`, empty without a bitstream or a host."""
    boot: dict[str, Any] = field(default_factory=dict)
    """Of a program that is loaded from flash memory: `offset` and `bytes` of its image, `seconds` for reading it."""
    input: str = ""
    """One of `board.SENSORS`, empty if the inputs come from a host."""
    persist: list[str] = field(default_factory=list)

    def add_file(self, name: str, data: bytes) -> None:
        """Note a file's SHA-256."""
        self.files[name] = hashlib.sha256(data).hexdigest()

    def to_json(self) -> str:
        """The manifest's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2, sort_keys=True) + "\n"
