"""What a session runs: models and compiled programs alike; and on what: engines and devices."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnx

from . import engines, golden
from .config import HwConfig
from .errors import UsageError
from .files import sha256
from .frontend import Batch, MixedModel, read, read_model
from .frontend.hostrun import parsed
from .frontend.hosttypes import SIZES
from .frontend.reading.limits import Limits
from .host.address import BARE_PORT, FORMS
from .host.artifact import check_manifest, manifest, skeleton
from .host.device import Device
from .ir.graph import Array8, Graph
from .ir.parts import GoldenPart, HardwarePart, HostPart, Value
from .loading import load_any
from .program.mixed import MixedProgram
from .program.model import Program
from .program.result import Result

DEVICES = ("golden", "emulator", "cxxrtl")
"""What runs hardware parts without a device: integers in numpy, instruction by instruction, or the RTL."""
Runs = Callable[[list[dict[str, Array8]]], list[Result]]
"""Inferences in order, on tensors by name."""
Samples = Sequence[Mapping[str, Any]]
"""The values known so far, by name, of each sample."""


def compiled(model: Any) -> Path | None:
    """The program file, if the model is one that ``compile`` has written, or an output directory."""
    if not isinstance(model, str | os.PathLike):
        return None
    path = Path(model)
    if path.is_dir():
        return path / "program.ohw"
    return path if path.suffix == ".ohw" else None


def read_compiled(path: Path) -> tuple[MixedModel, MixedProgram, str | None]:
    """A program file as model and parts, and the key of the bitstream beside it, if it has one.

    What the batch means is asked of the copy of the model beside it; without one, samples are taken as independent.
    Inputs are those without a default value, which are constants now. Errors: those of
    `onnxhw.loading.load_any`, and `UsageError` E2552 and E2588 for the manifest.
    """
    found = load_any(path)
    program = found if isinstance(found, MixedProgram) else _whole(found)
    parts = tuple(HardwarePart(skeleton(p)) if isinstance(p, Program) else p for p in program.parts)
    inputs = tuple(value for value in program.inputs if not value.optional)
    mixed = MixedModel(program.model, inputs, program.outputs, parts, (), batch=_batch(path.parent))
    return mixed, program, check_manifest(path.parent, (part.config for part in program.programs)).get("design") or None


def model_beside(folder: Path) -> onnx.ModelProto | None:
    """The copy of the model in an output directory, None if it is not there or not the one that was compiled."""
    source = _copy_of_model(folder)
    return None if source is None else read_model(source)


def _copy_of_model(folder: Path) -> Path | None:
    model = folder / "model.onnx"
    if not model.is_file() or manifest(folder).get("model_sha256") != sha256(model):
        return None
    return model


def _batch(folder: Path) -> Batch | None:
    """The batch of the model from which an output directory was made."""
    model = _copy_of_model(folder)
    if model is None:
        return None
    sizes = (size.rpartition("=") for size in manifest(folder).get("shapes", []))
    limits = Limits.from_flags(manifest(folder).get("limits", []))
    return read(model, limits=limits, shapes={name: int(size) for name, _, size in sizes}).batch


def _whole(program: Program) -> MixedProgram:
    """A program that is the whole model, as parts: one."""
    inputs, outputs = (
        tuple(dict.fromkeys(Value(port.name, port.shape, port.dtype) for port in ports))
        for ports in (program.inputs, program.outputs)
    )
    return MixedProgram(program.model, inputs, outputs, [program])


def is_address(text: str) -> bool:
    """Whether a text means a device (`onnxhw.host.address`) rather than one of `DEVICES`."""
    return text == "auto" or ":" in text or BARE_PORT.fullmatch(text) is not None


def is_target(device: object) -> bool:
    """Whether it is an open device, one of `DEVICES` or the form of an address."""
    return isinstance(device, Device) or (isinstance(device, str) and (device in DEVICES or is_address(device)))


def unknown(device: object) -> UsageError:
    """The error for what is neither."""
    return UsageError("E2500", f"no device named {device!r}", hint=f"devices: {', '.join(DEVICES)}; {FORMS}")


def runner(target: Device | str, config: HwConfig, program: Program, graph: Graph, stack: ExitStack) -> Runs:
    """What runs a hardware part: on a device, which loads the program when another is there, or on an engine."""
    if isinstance(target, Device):
        device = target
        return lambda batch: device.run_batch(batch, program)
    engine = stack.enter_context(engines.open(target, config, graph=graph))
    engine.load(program)
    return lambda batch: [engine.run(program, tensors) for tensors in batch]


def host_runner(part: HostPart | GoldenPart) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from the values known so far to those that a part on the host gives.

    Among them, as `SIZES`, are the sizes of dimension variables: a variable has one value in the whole model.
    """
    if isinstance(part, GoldenPart):
        golden_run = golden_runner(part.graph)
        return lambda values: golden_run([values])[0]
    evaluated = parsed(part.model)

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        sizes = dict(values.get(SIZES, ()))
        return {**evaluated({name: values[name] for name in part.inputs}, sizes), SIZES: sizes}

    return run


def golden_runner(graph: Graph) -> Callable[[Samples], list[dict[str, Any]]]:
    """`hardware_runner` on the golden model."""
    return hardware_runner(graph, lambda batch: [golden.run(graph, tensors) for tensors in batch])


def hardware_runner(
    graph: Graph, execute: Callable[[list[dict[str, Array8]]], list[dict[str, Array8]]]
) -> Callable[[Samples], list[dict[str, Any]]]:
    """The same for a hardware part and all samples: host steps to int8, the accelerator, host steps back."""
    names = {port.name for port in graph.inputs}

    def run(samples: Samples) -> list[dict[str, Any]]:
        batch = [golden.host.prepare(graph, {name: values[name] for name in names}) for values in samples]
        return [golden.host.finish(graph, tensors) for tensors in execute(batch)]

    return run
