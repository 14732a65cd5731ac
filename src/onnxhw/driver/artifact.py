"""What the host needs of a compiled model: its program, the build it came with, its ports and their preprocessing."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..board import boards, find
from ..config import HwConfig
from ..errors import UsageError, short
from ..files import read_json, reason, sha256
from ..ir.graph import Graph, Tensor
from ..preprocess import Preprocess
from ..program import container
from ..program.model import DeviceProgram
from ..program.result import Result
from ..program_verifier import verify_program
from .json_records import wrong_manifest


def read(path: Path) -> tuple[DeviceProgram, str | None]:
    """The proved program of a file or an output directory, and the key of the bitstream beside it, if it has one.

    `UsageError` E2510 for a model that the hardware does not run as a whole, E2460, and those of `container.load`,
    `check_manifest` and `design_of`.
    """
    file = path / "program.ohw" if path.is_dir() else path
    program = verify_program(container.load(file).only(str(file)), str(file))
    return program, design_of(check_manifest(path, [program.config]), path) if path.is_dir() else None


def design_of(record: Mapping[str, Any], folder: Path) -> str | None:
    """The key of the bitstream in an output directory of that manifest, None without one.

    `UsageError` E2589 if it takes its inputs from a sensor: such a device has no link, and one with a link no sensor.
    """
    if record.get("input"):
        what = f"its bitstream takes the inputs from {record['input']}, and has no link by which a host could run it"
        hint = "compile the model into another directory for a device with a link; `onnxhw simulate` needs no device"
        raise UsageError("E2589", what, where=str(folder), hint=hint)
    return record.get("design") or None


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


def baud_of(target: Path) -> int | None:
    """The speed of the serial line for which an output directory, or the program.ohw in it, has a bitstream, else None:
    a USB link has none.

    `UsageError` E2552.
    """
    folder = target if target.is_dir() else target.parent
    if folder != target and target.name != "program.ohw":
        return None
    record = manifest(folder)
    return None if record.get("link") == "usb" else record.get("baud") or None


def check_manifest(folder: Path, configs: Iterable[HwConfig]) -> dict[str, Any]:
    """The manifest of the output directory in which a program lies whose hardware parts have these configurations.

    `UsageError` E2552, and E2588 if it contradicts the program: another file, preset or configuration, or a board that
    has another device.
    """
    record, path = manifest(folder), folder / "manifest.json"

    def refuse(what: str) -> UsageError:
        return UsageError("E2588", f"{what}: it is another program's", where=str(path), hint="compile the model again")

    file = folder / "program.ohw"
    if (wanted := record.get("files", {}).get(file.name)) is not None and file.is_file() and sha256(file) != wanted:
        raise refuse("its hash of program.ohw is not that file's")
    for config in configs:
        for name, value in (("preset", config.name), ("config", config.fingerprint)):
            if record.get(name, value) not in (value, ""):
                raise refuse(f"{name} is {short(record[name])}, the program's is {short(value)}")
    board, device = record.get("board", ""), record.get("device", "")
    if board and device and board in boards() and find(board).device != device:
        raise refuse(f"board {short(board)} has no device {short(device)}")
    return record


def preprocess_of(target: Path) -> Preprocess:
    """What was declared when an output directory, or the program.ohw in it, was compiled; of others: nothing.

    `UsageError` E2552.
    """
    folder = target if target.is_dir() else target.parent
    if folder == target or target.name == "program.ohw":
        return Preprocess.from_record(manifest(folder).get("preprocess", {}))
    return Preprocess()


def build_id(design: str) -> int:
    """The 64 bits by which a device names the build that `manifest.json` calls `design`; `UsageError` E2552."""
    if not re.fullmatch("[0-9a-f]{16,}", design):
        hint = "compile the model again"
        raise UsageError("E2552", f"design must be a hash, not {short(design)}", where="manifest.json", hint=hint)
    return int(design[:16], 16)


def interface_graph(program: DeviceProgram) -> Graph:
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
