"""What a session runs: models and compiled programs; and on what: engines and devices."""

import os
from pathlib import Path
from typing import Any

import onnx

from .. import engines
from ..driver.address import BARE_PORT, FORMS
from ..driver.artifact import check_manifest, manifest
from ..driver.device import Device
from ..errors import UsageError
from ..files import sha256
from ..onnxmodel.read import read_model
from ..program.parts import Program
from .loading import load

DEVICES = engines.NAMES
"""What runs hardware parts without a device: integers in numpy, instruction by instruction, or the RTL in one of two
simulators."""


def compiled(model: Any) -> Path | None:
    """The program file, if the model is one that ``compile`` has written, or an output directory."""
    if not isinstance(model, str | os.PathLike):
        return None
    path = Path(model)
    if not os.fspath(model):
        return None  # it is no path, though Path makes the current folder of it
    if path.is_dir():
        return path / "program.ohw"
    return path if path.suffix == ".ohw" else None


def read_compiled(path: Path) -> tuple[Program, dict[str, Any]]:
    """A program file, proved, and the manifest beside it, empty without one.

    Errors: those of `onnxhw.runtime.loading.load`, and `UsageError` E2552 and E2588 for the manifest.
    """
    program = load(path)
    return program, check_manifest(path.parent, (part.config for part in program.programs))


def saved_model(folder: Path) -> onnx.ModelProto | None:
    """The copy of the model in an output directory, None if it is not there or not the one that was compiled."""
    model = folder / "model.onnx"
    if not model.is_file() or manifest(folder).get("model_sha256") != sha256(model):
        return None
    return read_model(model)


def is_address(text: str) -> bool:
    """Whether a text means a device (`onnxhw.driver.address`) rather than one of `DEVICES`."""
    return text == "auto" or ":" in text or BARE_PORT.fullmatch(text) is not None


def is_target(device: object) -> bool:
    """Whether it is an open device, one of `DEVICES` or the form of an address."""
    return isinstance(device, Device) or (isinstance(device, str) and (device in DEVICES or is_address(device)))


def unknown(device: object) -> UsageError:
    """The error for what is neither."""
    return UsageError("E2500", f"no device named {device!r}", hint=f"devices: {', '.join(DEVICES)}; {FORMS}")
