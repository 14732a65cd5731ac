"""What ``simulate`` simulates, the run, and the comparison."""

import io
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import MismatchError, OnnxhwError
from ..files import sha256
from ..ir.graph import Array8, Graph, Tensor
from ..loading import load_any
from ..program.mixed import MixedProgram
from ..program.model import DeviceProgram
from .artifacts import MANIFEST, MODEL, PROGRAM, read_any
from .choice import BY_DEFAULT, Choice
from .inputs import Inputs
from .outdir import write_atomically
from .output import Output
from .reading import TRUSTED, Reading

if TYPE_CHECKING:
    from ..frontend.partitioned import PartitionedModel
    from .mixed import MixedSubject


@dataclass(frozen=True)
class Subject:
    """A program with what it is compared with.

    `reference`: "golden model", or "emulator" where only a program is known. `graph` then has the program's tensors
    and no operations. `folder` takes the outputs; `directory` is true if it is an output directory.
    """

    program: DeviceProgram
    graph: Graph
    reference: str
    folder: Path
    directory: bool
    model: Path | None


@dataclass
class Found:
    """What a run gave: per inference the outputs, one cycle count for all, the first difference."""

    outputs: list[dict[str, Array8]]
    cycles: int | None
    compared: int = 0
    mismatch: dict[str, Any] | None = None
    labels: list[int] = field(default_factory=list)

    def stacked(self) -> dict[str, Array8]:
        """The output tensors of all inferences, ``[N, C, H, W]``."""
        return {name: np.concatenate([one[name] for one in self.outputs]) for name in self.outputs[0]}

    def top1(self, subject: Subject, inputs: Inputs) -> dict[str, int] | None:
        """Right classes of how many, if the inputs have labels and the model one output."""
        if inputs.labels is None or len(subject.graph.outputs) != 1 or not self.outputs:
            return None
        from ..golden import host

        (scores,) = host.finish(subject.graph, self.stacked()).values()
        classes = np.asarray(scores).reshape(len(inputs.labels), -1).argmax(1)
        return {"right": int((classes == inputs.labels).sum()), "of": len(inputs.labels)}


def open_subject(
    target: Path,
    board: str,
    preset: str | None,
    output: Output,
    reading: Reading = TRUSTED,
    choice: Choice = BY_DEFAULT,
) -> "Subject | MixedSubject":
    """A model (compiled for the board with that choice), an output directory or a program file."""
    from .pipeline import compile_mixed, default_out
    from .pipeline import target as choose

    if target.is_dir():
        return _from_directory(target, output, reading.untrusted)
    if target.suffix == ".ohw":
        if target.name == PROGRAM and (target.parent / MANIFEST).exists():
            return _from_directory(target.parent, output, reading.untrusted)
        program = load_any(target)
        if isinstance(program, MixedProgram):
            return _in_parts(program, None, target.parent, False)
        return Subject(program, skeleton(program), "emulator", target.parent, False, None)
    chosen = choose(board, preset)
    config = chosen.config
    mixed, parts = compile_mixed(target, config, output, reading, replace(choice, rates=chosen.rates()))
    folder = default_out(target, config)
    if parts.whole is None:
        return _in_parts(parts, mixed, folder, False)
    return Subject(parts.whole, mixed.hardware[0].graph, "golden model", folder, False, target)


def _in_parts(program: MixedProgram, model: "PartitionedModel | None", folder: Path, directory: bool) -> "MixedSubject":
    from .mixed import subject

    return subject(program, model, folder, directory)


def _from_directory(path: Path, output: Output, untrusted: bool) -> "Subject | MixedSubject":
    """The program of a directory, compared with the model beside it if that is the one it was made from.

    The model is read with the shapes and limits with which it was compiled.
    """
    found = read_any(path)
    model = found.path / MODEL
    wanted = found.manifest.get("model_sha256")
    known = model.is_file() and wanted == sha256(model)
    if not known:
        output.message(f"{model} is not there, or not the program's: comparing with the emulator")
    program, reading = found.program, Reading.recorded(found.manifest, untrusted)
    if isinstance(program, MixedProgram):
        from .pipeline import compile_mixed

        choice = Choice.recorded(found.manifest)
        mixed = compile_mixed(model, program.programs[0].config, output, reading, choice)[0] if known else None
        return _in_parts(program, mixed, found.path, True)
    if not known:
        return Subject(program, skeleton(program), "emulator", found.path, True, None)
    from .pipeline import load_model

    return Subject(program, load_model(model, output, reading), "golden model", found.path, True, model)


def skeleton(program: DeviceProgram) -> Graph:
    """The program's tensors and ports as a graph without operations: enough to prepare inputs and finish outputs."""
    tensors = {e.name: Tensor(e.name, e.shape, e.scale, e.zero_point) for e in program.tensors.values()}
    return Graph(program.model, tensors, [], list(program.inputs), list(program.outputs))


def run(subject: Subject, engine: str, inputs: Inputs, trace: bool, output: Output) -> Found:
    """Run every input and compare it; stops at the first difference."""
    if engine == "golden":
        from .. import golden

        graph = subject.graph
        if subject.reference != "golden model":
            raise no_golden(subject.folder)
        with output.stage(f"golden model, {inputs.count} inferences"):
            tensors = golden.run(graph, inputs.tensors)
        names = [port.tensor for port in graph.outputs]
        return Found([{n: tensors[n][i : i + 1] for n in names} for i in range(inputs.count)], None, inputs.count)
    from .engine import runner

    found = Found([], None)
    with runner(engine, subject.program, output) as execute, output.stage(f"{engine}, {inputs.count} inferences"):
        for index in range(inputs.count):
            one = inputs.one(index)
            result = execute(one, trace)
            wanted = reference(subject, one)
            found.outputs.append(result.outputs)
            found.cycles = result.cycles
            got = {**result.tensors, **result.outputs}
            found.compared += len(got)
            found.mismatch = difference(subject.program, got, wanted, index)
            predicted = subject.program.cycles
            if found.mismatch is None and result.cycles != predicted:
                found.mismatch = {"inference": index, "cycles": result.cycles, "predicted_cycles": predicted}
            if found.mismatch:
                if engine == "cxxrtl" and (waves := keep_waves(subject, one, output)):
                    found.mismatch["waveform"] = str(waves)
                break
    return found


def keep_waves(subject: Subject, inputs: dict[str, Array8], output: Output) -> Path | None:
    """Run the inference that differed once more in CXXRTL and keep its waveform beside the outputs; its path."""
    from ..engines.cxxrtl.engine import CxxrtlEngine

    path = subject.folder / "mismatch.vcd"
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = CxxrtlEngine(subject.program.config, output.message)
    with output.stage("waveform"), engine, suppress(MismatchError):  # a run that does not end has a waveform, too
        engine.run(subject.program, inputs, waves=path)
    return path if path.exists() else None


def reference(subject: Subject, inputs: dict[str, Array8]) -> dict[str, Array8]:
    """Every tensor as it must be."""
    if subject.reference == "golden model":
        from .. import golden

        return golden.run(subject.graph, inputs)
    from .. import emu

    return emu.run(subject.program, inputs, trace=True).tensors


def difference(
    program: DeviceProgram, got: dict[str, Array8], wanted: dict[str, Array8], inference: int
) -> dict[str, Any] | None:
    """The first element that differs, in the order of the tensor table, or None if all are equal."""
    for name in program.tensors:
        if name not in got or name not in wanted:
            continue
        expected = np.asarray(wanted[name]).reshape(got[name].shape)
        if not np.array_equal(got[name], expected):
            where = np.argwhere(got[name] != expected)
            at = tuple(int(i) for i in where[0])
            return {
                "inference": inference, "tensor": name, "layer": program.tensors[name].op, "element": list(at),
                "got": int(got[name][at]), "expected": int(expected[at]), "different": len(where), "of": expected.size,
            }  # fmt: skip
    return None


def mismatch_error(reference: str, found: dict[str, Any], engine: str, record: dict[str, Any]) -> OnnxhwError:
    """E8002 for cycles, E8001 for values, with the first difference."""
    if "cycles" in found:
        what = f"{found['cycles']:,} cycles, predicted {found['predicted_cycles']:,}"
        return MismatchError("E8002", what, where=f"{record['model']}, inference {found['inference']}",
                             hint="this is a bug of ours: please report it with the model")  # fmt: skip
    waves = f" {found['waveform']} has its waveform;" if "waveform" in found else ""
    at = ", ".join(str(i) for i in found["element"])
    what = (
        f"{engine} and {reference} differ first in tensor {found['tensor']!r} (layer {found['layer']!r}) at "
        f"[{at}]: {found['got']}, not {found['expected']}; {found['different']} of {found['of']} elements differ"
    )
    where = f"{record['model']}, inference {found['inference']}"
    hint = f"this is a bug of ours: please report it with the model;{waves} --trace compares every tensor"
    return MismatchError("E8001", what, where=where, hint=hint)


def save_outputs(path: Path, subject: Subject, found: Found) -> None:
    """Write an .npz: each model output by name, and each int8 output tensor as ``int8/NAME``."""
    from ..golden import host

    tensors = found.stacked()
    arrays: dict[str, npt.NDArray[Any]] = dict(host.finish(subject.graph, tensors))
    arrays |= {f"int8/{name}": values for name, values in tensors.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
    write_atomically(path, buffer.getvalue())


def no_golden(folder: Path) -> OnnxhwError:
    """E2909: there is a program only."""
    from ..errors import UsageError

    return UsageError("E2909", "the golden model needs the ONNX model, and only its program is here",
                      where=str(folder), hint="simulate the model, or --engine emulator")  # fmt: skip
