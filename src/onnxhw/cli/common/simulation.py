"""What ``simulate`` simulates, the run, and the comparison."""

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engines import WITHOUT_MEMORY
from ...errors import MismatchError, OnnxhwError, UsageError
from ...files import sha256
from ...ir.graph import Array8, Graph
from ...ir.parts import GoldenPart
from ...ir.states import interface
from ...partition import PartitionedModel, read
from ...program.input_regions import latency
from ...program.model import DeviceProgram
from ...program.parts import Program
from ...program.result import Result, first_difference, values_of
from ...runtime.loading import load
from ...runtime.session import InferenceSession
from .artifacts import MANIFEST, MODEL, PROGRAM, read_directory
from .inputs import Inputs
from .outdir import write_atomically
from .output import Output
from .pipeline import compile_model, default_out, target_without_memory
from .pipeline import target as choose
from .placement_options import BY_DEFAULT, PlacementOptions
from .read_options import TRUSTED, ReadOptions

Reference = Callable[[Mapping[str, Array8]], Mapping[str, Array8]]
"""Every tensor of a run, from its inputs."""


@dataclass(frozen=True)
class Subject:
    """A program with what it is compared with: the golden model of the hardware parts in `model`, or the emulator if
    that is None. `folder` takes the outputs; `directory` is true if it is an output directory."""

    program: Program
    model: PartitionedModel | None
    folder: Path
    directory: bool = False

    @property
    def reference(self) -> str:
        """What it is compared with."""
        return "golden model" if self.model else "emulator"

    def on(self, engine: str) -> Program:
        """What runs on an engine; `UsageError` E2909 if that is "golden" and there is a program only."""
        if engine != "golden":
            return self.program
        if self.model is None:
            raise UsageError("E2909", "the golden model needs the ONNX model, and only its program is here",
                             where=str(self.folder), hint="simulate the model, or --engine emulator")  # fmt: skip
        return self.model.on_host([state for program in self.program.programs for state in program.states])

    def graph(self, program: DeviceProgram) -> Graph | None:
        """The integer graph of a hardware part, if it is known."""
        parts = zip(self.program.programs, self.model.hardware, strict=True) if self.model else ()
        return next((part.graph for made, part in parts if made is program), None)

    def references(self) -> list[Reference]:
        """Of each hardware part in turn what gives every tensor as it must be, run after run."""
        return [reference(self.graph(program), program) for program in self.program.programs]


@dataclass
class SimulatedOutputs:
    """What a run gave: per inference the outputs by name, and the int8 tensors of those that integer parts give.

    `part_cycles`: of the last inference, part by part; `cycles` their sum, None without a clock. `mismatch`: the first
    difference, behind which nothing ran.
    """

    outputs: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[dict[str, Array8]] = field(default_factory=list)
    cycles: int | None = None
    part_cycles: list[int] = field(default_factory=list)
    compared: int = 0
    mismatch: dict[str, Any] | None = None

    def top1(self, inputs: Inputs) -> dict[str, int] | None:
        """Right classes of how many, if the inputs have labels and the model one output of numbers."""
        if inputs.labels is None or self.mismatch or not self.outputs or len(self.outputs[0]) != 1:
            return None
        scores = np.concatenate([np.ravel(value) for one in self.outputs for value in one.values()])
        if scores.dtype.kind not in "fiu" or scores.size % len(inputs.labels):
            return None
        classes = scores.reshape(len(inputs.labels), -1).argmax(1)
        return {"right": int((classes == inputs.labels).sum()), "of": len(inputs.labels)}


def open_subject(
    target: Path,
    board: str,
    preset: str | None,
    output: Output,
    reading: ReadOptions = TRUSTED,
    choice: PlacementOptions = BY_DEFAULT,
    engine: str = "",
) -> Subject:
    """A model (compiled for the board with that choice, to be run on that engine), an output directory or a program
    file."""
    if target.name == PROGRAM and (target.parent / MANIFEST).exists():
        target = target.parent
    if target.is_dir():
        return _from_directory(target, output, reading.untrusted)
    if target.suffix == ".ohw":
        return Subject(load(target), None, target.parent)
    less = engine in WITHOUT_MEMORY
    chosen = target_without_memory(board, preset, f"engine {engine}", output) if less else choose(board, preset)
    model, program = compile_model(target, chosen.config, output, reading, replace(choice, rates=chosen.rates()))
    return Subject(program, model, default_out(target, chosen.config))


def _from_directory(path: Path, output: Output, untrusted: bool) -> Subject:
    """The program of a directory, compared with the model beside it if that is the one it was made from.

    The model is read with the shapes and limits with which it was compiled.
    """
    found = read_directory(path)
    model = found.path / MODEL
    if not model.is_file() or found.manifest.get("model_sha256") != sha256(model):
        output.message(f"{model} is not there, or not the program's: comparing with the emulator")
        return Subject(found.program, None, found.path, True)
    reading = ReadOptions.recorded(found.manifest, untrusted)
    with output.stage(f"read {model.name}"):
        placed = read(
            reading.source(model), limits=reading.allowed, shapes=reading.sizes, exact_softmax=reading.exact_softmax
        )
    config = found.program.config
    if not _is_of(found.program, placed) and config:  # the scheduler has moved or divided something
        placed, _ = compile_model(model, config, output, reading, PlacementOptions.recorded(found.manifest))
    return Subject(found.program, placed if _is_of(found.program, placed) else None, found.path, True)


def _is_of(program: Program, model: PartitionedModel) -> bool:
    """Whether a program's hardware parts are those of the model."""
    states = [state for part in program.programs for state in part.states]
    graphs = [interface(part.graph, states) for part in model.hardware]
    return [_ports(part) for part in program.programs] == [_ports(graph) for graph in graphs]


def _ports(part: Graph | DeviceProgram) -> list[tuple[str, str]]:
    return [(port.name, port.tensor) for port in [*part.inputs, *part.outputs]]


def run(subject: Subject, engine: str, inputs: Inputs, trace: bool, output: Output) -> SimulatedOutputs:
    """Run every inference, each hardware part compared with its reference; stops after the first that differs."""
    found = SimulatedOutputs()
    names, references = {value.name for value in subject.program.outputs}, subject.references()

    def watch(part: DeviceProgram | GoldenPart, tensors: Mapping[str, Array8], result: Result) -> None:
        ports = part.graph.outputs if isinstance(part, GoldenPart) else part.outputs
        found.tensors[-1].update({p.tensor: result.outputs[p.tensor] for p in ports if p.name in names})
        if isinstance(part, GoldenPart):
            found.compared += len(result.outputs) if engine == "golden" else 0
            return
        shown = {**result.tensors, **result.outputs}
        found.compared += len(shown)
        if found.mismatch is None:
            number = next(index for index, each in enumerate(subject.program.programs) if each is part)
            place = {"inference": len(found.outputs), "part": number}
            different = _mismatch(part, references[number](tensors), result, shown)
            found.mismatch = different and place | different
            again = engine == "cxxrtl" and not part.states  # whose values of then are gone
            if found.mismatch and again and (waves := keep_waves(subject.folder, part, tensors, output)):
                found.mismatch["waveform"] = str(waves)

    with InferenceSession(subject.on(engine), device=engine) as session:
        with output.stage(f"prepare {engine}"):
            session.prepare(output.message)
        with output.stage(f"{engine}, {inputs.count} inferences"):
            for index in range(inputs.count):
                found.tensors.append({})
                found.outputs += session.infer([inputs.one(index)], watch=watch, trace=trace)
                if found.mismatch:
                    break
        if engine != "golden":
            found.part_cycles = [part["latency"] for part in session.counters]
            found.cycles = sum(found.part_cycles)
    return found


def _mismatch(
    program: DeviceProgram, wanted: Mapping[str, Array8], result: Result, shown: dict[str, Array8]
) -> dict[str, Any] | None:
    """Where a hardware part differs from its reference, or its cycles (of the run, or from the last input on) from
    those predicted; None if in nothing."""
    if values := difference(program, shown, wanted):
        return values
    if result.cycles != program.cycles:
        return {"cycles": result.cycles, "predicted_cycles": program.cycles}
    if result.cycles and result.latency != latency(program):
        return {"cycles": result.latency or 0, "predicted_cycles": latency(program)}
    return None


def keep_waves(folder: Path, program: DeviceProgram, tensors: Mapping[str, Array8], output: Output) -> Path | None:
    """Run what differed once more in CXXRTL and keep its waveform beside the outputs; its path."""
    from ...engines.cxxrtl.engine import CxxrtlEngine

    path = folder / "mismatch.vcd"
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = CxxrtlEngine(program.config, output.message)
    with output.stage("waveform"), engine, suppress(MismatchError):  # a run that does not end has a waveform, too
        engine.run(program, tensors, waves=path)
    return path if path.exists() else None


def reference(graph: Graph | None, program: DeviceProgram) -> Reference:
    """The golden model of a hardware part, or without its graph the emulator; run after run, with states."""
    from ...emu.emulator import Emulator
    from ...golden import StatefulRuns

    if graph is not None:
        return StatefulRuns(graph, program.states).run
    emulator = Emulator(program)
    return lambda tensors: emulator.run(tensors, trace=True).tensors


def difference(
    program: DeviceProgram, got: Mapping[str, Array8], wanted: Mapping[str, Array8]
) -> dict[str, Any] | None:
    """The first element that differs, in the order of the tensor table, or None if all are equal. A part of a tensor is
    compared with that part of what is wanted."""
    for name, entry in program.tensors.items():
        if name not in got or (expected := values_of(entry, wanted)) is None:
            continue
        found = first_difference(np.asarray(expected).reshape(got[name].shape), got[name])
        if found:
            return {
                "tensor": name, "layer": entry.op, "element": list(found.element),
                "got": int(found.got), "expected": int(found.expected), "different": found.different, "of": found.of,
            }  # fmt: skip
    return None


def mismatch_error(reference: str, found: dict[str, Any], engine: str, model: str) -> OnnxhwError:
    """E8002 for cycles, E8001 for values, with the first difference."""
    where = f"{model}, inference {found['inference']}"
    if "cycles" in found:
        what = f"{found['cycles']:,} cycles, predicted {found['predicted_cycles']:,}"
        return MismatchError("E8002", what, where=where, hint="this is a bug of ours: please report it with the model")
    waves = f" {found['waveform']} has its waveform;" if "waveform" in found else ""
    at = ", ".join(str(i) for i in found["element"])
    what = (
        f"{engine} and {reference} differ first in tensor {found['tensor']!r} (layer {found['layer']!r}) at "
        f"[{at}]: {found['got']}, not {found['expected']}; {found['different']} of {found['of']} elements differ"
    )
    hint = f"this is a bug of ours: please report it with the model;{waves} --trace compares every tensor"
    return MismatchError("E8001", what, where=where, hint=hint)


def save_outputs(path: Path, found: SimulatedOutputs) -> None:
    """Write an .npz: each model output by name, and as ``int8/NAME`` the tensors of those that integer parts give; all
    inferences along the first dimension."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for before, results in (("", found.outputs), ("int8/", found.tensors)):
        for name in results[0] if results else ():
            arrays[before + name] = _stacked([np.asarray(one[name]) for one in results])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
    write_atomically(path, buffer.getvalue())


def _stacked(values: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One array of all inferences, along a first dimension of 1 if there is one."""
    rows = values[0].shape[:1] == (1,) and len({value.shape for value in values}) == 1
    return values[0] if len(values) == 1 else np.concatenate(values) if rows else np.stack(values)
