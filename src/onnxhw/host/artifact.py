"""What the host needs of a compiled model: its program, the build it came with, its ports and their preprocessing."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..files import read_json, reason
from ..ir.graph import Graph, Tensor
from ..preprocess import Preprocess
from ..program import container
from ..program.model import DeviceProgram
from ..program.result import Result
from ..proof import prove
from .records import wrong_manifest


def read(path: Path) -> tuple[DeviceProgram, str | None]:
    """The proved program of a file or an output directory, and the key of the bitstream beside it, if it has one.

    `UsageError` E2510 for a model that the hardware does not run as a whole, E2460, and those of `container.load`.
    """
    file = path / "program.ohw" if path.is_dir() else path
    program = container.load(file).only(str(file))
    return prove(program, str(file)), design_of(path) if path.is_dir() else None


def manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an output directory, empty without one; `UsageError` E2552."""
    path = folder / "manifest.json"
    try:
        record: dict[str, Any] = read_json(path)
        if why := wrong_manifest(record):
            raise ValueError(why)
        return record
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        hint = "compile the model again"
        raise UsageError("E2552", f"cannot be read: {reason(error)}", where=str(path), hint=hint) from error


def design_of(folder: Path) -> str | None:
    """The key of the bitstream in an output directory, None without one; `UsageError` E2552."""
    design = manifest(folder).get("design") or ""
    if not isinstance(design, str):
        what, hint = f"design must be a string, not {design!r}", "compile the model again"
        raise UsageError("E2552", what, where=str(folder / "manifest.json"), hint=hint)
    return design or None


def baud_of(target: Path) -> int | None:
    """The speed of the line for which an output directory, or the program.ohw in it, has a bitstream, else None.

    `UsageError` E2552.
    """
    folder = target if target.is_dir() else target.parent
    baud = manifest(folder).get("baud") or None if folder == target or target.name == "program.ohw" else None
    if baud is not None and (type(baud) is not int or not 300 <= baud <= 12_000_000):
        what, hint = f"baud must be 300..12,000,000, not {baud!r:.60}", "compile the model again"
        raise UsageError("E2552", what, where=str(folder / "manifest.json"), hint=hint)
    return baud


def noted(folder: Path, name: str, form: str) -> list[str]:
    """The texts that the manifest has under `name`, each of a form (regular expression); `UsageError` E2552."""
    found = manifest(folder).get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) and re.fullmatch(form, each) for each in found):
        what, hint = f"{name} cannot be {found!r}", "compile the model again"
        raise UsageError("E2552", what, where=str(folder / "manifest.json"), hint=hint)
    return found


def preprocess_of(target: Path) -> Preprocess:
    """What was declared when an output directory, or the program.ohw in it, was compiled; of others: nothing.

    `UsageError` E2552.
    """
    folder = target if target.is_dir() else target.parent
    if folder == target or target.name == "program.ohw":
        record = manifest(folder).get("preprocess", {})
        try:
            return Preprocess.from_record(record)
        except ValueError as error:
            what, hint = f"cannot be read: {error}", "compile the model again"
            raise UsageError("E2552", what, where=str(folder / "manifest.json"), hint=hint) from error
    return Preprocess()


def build_id(design: str) -> int:
    """The 64 bits by which a device names the build that `manifest.json` calls `design`; `UsageError` E2552."""
    if not re.fullmatch("[0-9a-f]{16,}", design):
        hint = "compile the model again"
        raise UsageError("E2552", f"design must be a hash, not {design!r}", where="manifest.json", hint=hint)
    return int(design[:16], 16)


def skeleton(program: DeviceProgram) -> Graph:
    """The program's tensors and ports as a graph without operations: what preparing inputs needs."""
    tensors = {e.name: Tensor(e.name, e.shape, e.scale, e.zero_point) for e in program.tensors.values()}
    return Graph(program.model, tensors, [], list(program.inputs), list(program.outputs))


def samples(tensors: Mapping[str, npt.NDArray[np.int8]]) -> list[dict[str, npt.NDArray[np.int8]]]:
    """Batches ``[N, C, H, W]`` as N inferences; `UsageError` E2553 if they have different N."""
    sizes = {len(values) for values in tensors.values()}
    if len(sizes) > 1:
        counts = ", ".join(f"{name} {len(values)}" for name, values in tensors.items())
        raise UsageError("E2553", f"the inputs hold different numbers of inferences: {counts}")
    return [{name: values[i : i + 1] for name, values in tensors.items()} for i in range(max(sizes, default=0))]


def stacked(results: list[Result]) -> dict[str, npt.NDArray[np.int8]]:
    """The output tensors of several inferences, ``[N, C, H, W]``."""
    return {name: np.concatenate([result.outputs[name] for result in results]) for name in results[0].outputs}
