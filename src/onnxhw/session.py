"""`InferenceSession`: run a model on hardware and host together.

    session = InferenceSession("model.onnx", device="emulator")
    (scores,) = session.run(None, {"x": array})
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from . import engines, golden
from .board import find
from .compiler import compile_mixed
from .config import HwConfig, preset
from .errors import UsageError
from .frontend import MixedModel, Source, read, read_model, refuse
from .frontend.hostrun import evaluate
from .ir.graph import Array8, Graph
from .ir.parts import HostPart, Part, Value
from .program.mixed import MixedProgram
from .program.model import Program

Execute = Callable[[dict[str, Array8]], dict[str, Array8]]
DEVICES = ("golden", "emulator", "cxxrtl")
"""What runs the hardware parts: integers in numpy, instruction by instruction, or the RTL."""


class InferenceSession:
    """A model ready to run; the calls are those of onnxruntime's class of this name.

    Parameters
    ----------
    model : path, bytes or ModelProto.
    device : one of `DEVICES`.
    config, board : hardware that the parts are compiled for; default: the preset of board "ulx3s". "golden" needs none.
    shapes : values of dynamic dimensions by name.

    `UsageError` E2500: no such device; else the errors of `frontend.read` and, but for "golden", `compile_mixed`.
    """

    def __init__(
        self,
        model: Source,
        device: str = "golden",
        *,
        config: HwConfig | None = None,
        board: str = "ulx3s",
        shapes: Mapping[str, int] | None = None,
    ) -> None:
        if device not in DEVICES:
            raise UsageError("E2500", f"no device named {device!r}", hint=f"devices: {', '.join(DEVICES)}")
        self.device, self.shapes = device, shapes
        self.config = config or preset(find(board).preset)
        self._source = model
        self._opened: set[str] | None = None
        self._others: dict[tuple[tuple[str, int], ...], InferenceSession] = {}
        self._stack = ExitStack()
        self.mixed: MixedModel
        self.program: MixedProgram | None = None
        if device == "golden":
            self.mixed = read(model, shapes=shapes)
        else:
            self.mixed, self.program = compile_mixed(model, self.config, shapes=shapes)
        self.cycles = 0
        """Cycles of the hardware in the last `run`, over all its inferences; 0 on "golden"."""
        self._runners: list[Callable[[dict[str, Any]], dict[str, Any]]] = []

    def get_inputs(self) -> list[Value]:
        """The inputs that have no default value."""
        return [value for value in self.mixed.inputs if not value.optional]

    def get_overridable_initializers(self) -> list[Value]:
        """The inputs that have one."""
        return [value for value in self.mixed.inputs if value.optional]

    def get_outputs(self) -> list[Value]:
        """The outputs."""
        return list(self.mixed.outputs)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs asked for (all if None), in order, from the inputs by name.

        Where the model has batch 1, inputs of N samples give outputs of N. A feed that names an initializer replaces
        its value. `UsageError` E2501: no such output; E2502: inputs missing or unknown; E2503: a wrong shape or type;
        `UnsupportedError` E4401: the model has a node that nothing can run.
        """
        names = [value.name for value in self.mixed.outputs]
        wanted = names if output_names is None else list(output_names)
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError("E2501", f"the model has no output {unknown[0]!r}", hint=f"outputs: {', '.join(names)}")
        self._check_names(feeds)
        refuse(self.mixed)
        given = {value.name for value in self.mixed.inputs if value.optional} & set(feeds)
        if given:
            return self._overridden(given, feeds).run(wanted, {k: v for k, v in feeds.items() if k not in given})
        arrays = {value.name: typed(value, feeds[value.name]) for value in self.get_inputs()}
        if sizes := self._open_sizes(arrays):
            placed = self._placed_for(sizes)
            found = placed.run(wanted, feeds)
            self.cycles = placed.cycles
            return found
        self.cycles = 0
        if not self._runners:
            self._runners = [self._runner(index, part) for index, part in enumerate(self.mixed.parts)]
        samples = [self._once(sample) for sample in _samples(self.get_inputs(), arrays)]
        if len(samples) == 1:
            return [samples[0][name] for name in wanted]
        return [np.concatenate([np.atleast_1d(sample[name]) for sample in samples]) for name in wanted]

    def close(self) -> None:
        """Release the engines."""
        self._stack.close()
        self._runners, self._others = [], {}

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_sizes(self, arrays: Mapping[str, Any]) -> dict[str, int]:
        """Sizes to place the model for anew: its open first dimensions, where they are not 1 and samples may meet.

        On the hardware samples are independent, so a model that is all hardware runs once per sample instead.
        """
        if not self.mixed.host:
            return {}
        found = {}
        for value in self.get_inputs():
            array = arrays[value.name]
            if not isinstance(array, np.ndarray) or not array.ndim or value.shape is None or len(array) in (0, 1):
                continue
            if value.name in self._open() and len(value.shape) == array.ndim and value.shape[0] == 1:
                found[f"{value.name}:0"] = len(array)
        return found

    def _placed_for(self, sizes: Mapping[str, int]) -> "InferenceSession":
        """This model placed for other sizes; made once."""
        key = tuple(sorted(sizes.items()))
        if key not in self._others:
            shapes = {**(self.shapes or {}), **sizes}
            session = InferenceSession(self._source, self.device, config=self.config, shapes=shapes)
            self._others[key] = self._stack.enter_context(session)
        return self._others[key]

    def _open(self) -> set[str]:
        """Inputs whose first dimension the model leaves open."""
        if self._opened is None:
            source = self._source
            model = read_model(source.SerializeToString() if isinstance(source, onnx.ModelProto) else source)
            dims = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
            self._opened = {name for name, dim in dims.items() if len(dim) and not dim[0].HasField("dim_value")}
        return self._opened

    def _check_names(self, feeds: Mapping[str, Any]) -> None:
        needed, known = [v.name for v in self.get_inputs()], {v.name for v in self.mixed.inputs}
        for name in feeds:
            if name not in known:
                raise UsageError("E2502", f"the model has no input {name!r}", hint=f"inputs: {', '.join(needed)}")
        for name in needed:
            if name not in feeds:
                raise UsageError("E2502", f"input {name!r} is missing", hint=f"inputs: {', '.join(needed)}")

    def _once(self, values: dict[str, Any]) -> dict[str, Any]:
        for runner in self._runners:
            values |= runner(values)
        return values

    def _runner(self, index: int, part: Part) -> Callable[[dict[str, Any]], dict[str, Any]]:
        if isinstance(part, HostPart):
            return host_runner(part)
        graph = part.graph
        if self.program is None:
            return hardware_runner(graph, lambda tensors: golden.run(graph, tensors))
        program = self.program.parts[index]
        assert isinstance(program, Program)
        engine = self._stack.enter_context(engines.open(self.device, self.config, graph=graph))
        engine.load(program)

        def execute(tensors: dict[str, Array8]) -> dict[str, Array8]:
            result = engine.run(program, tensors)
            self.cycles += result.cycles
            outputs: dict[str, Array8] = result.outputs
            return outputs

        return hardware_runner(graph, execute)

    def _overridden(self, names: set[str], feeds: Mapping[str, Any]) -> "InferenceSession":
        """A session of the model with other values for some initializers."""
        source = self._source
        model = read_model(source.SerializeToString() if isinstance(source, onnx.ModelProto) else source)
        for tensor in model.graph.initializer:
            if tensor.name in names:
                value = next(value for value in self.mixed.inputs if value.name == tensor.name)
                tensor.CopyFrom(numpy_helper.from_array(typed(value, feeds[tensor.name]), tensor.name))
        return InferenceSession(model, self.device, config=self.config, shapes=self.shapes)


def host_runner(part: HostPart) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from the values known so far to those that a host part gives."""
    model = onnx.ModelProto.FromString(part.model)
    return lambda values: evaluate(model, {name: values[name] for name in part.inputs})


def hardware_runner(graph: Graph, execute: Execute) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The same for a hardware part: host steps to int8, the accelerator, host steps back."""
    names = {port.name for port in graph.inputs}

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        tensors = golden.host.prepare(graph, {name: values[name] for name in names})
        return golden.host.finish(graph, execute(tensors))

    return run


def typed(value: Value, given: Any) -> Any:
    """An array of the input's type; what is no tensor is left alone. `UsageError` E2503."""
    if not value.dtype:
        return given
    array, wanted = np.asarray(given), np.dtype(value.dtype)
    if array.dtype == wanted or (wanted.kind == "O" and array.dtype.kind in "OUS"):
        return array.astype(wanted)
    if wanted.kind == "f" and array.dtype.kind == "f":
        return array.astype(wanted)
    raise UsageError(
        "E2503", f"input {value.name!r} must be {wanted}, not {array.dtype}", hint=f"array.astype(numpy.{wanted})"
    )


def _samples(inputs: Sequence[Value], arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The inferences that the arrays hold: one, or one per entry of the first dimension where the model has batch 1."""
    counts: set[int] = set()
    whole: set[str] = set()
    for value in inputs:
        array = arrays[value.name]
        if value.shape is None or not isinstance(array, np.ndarray):
            whole.add(value.name)
            continue
        fits = _matches(value.shape, array.shape)
        batched = value.shape[:1] == (1,) and array.ndim > 0 and _matches(value.shape[1:], array.shape[1:])
        if not fits and not (batched and len(array)):
            raise UsageError(
                "E2503",
                f"input {value.name!r} must have shape {list(value.shape)}, not {list(array.shape)}",
                hint="a first dimension of 1 may be larger: one inference each",
            )
        if fits and value.shape[:1] != (1,):
            whole.add(value.name)  # no dimension that counts inferences: the same in all of them
        else:
            counts.add(1 if fits else len(array))
    if counts <= {1}:
        return [dict(arrays)]
    if len(counts) > 1:
        raise UsageError("E2503", f"the inputs hold {' and '.join(map(str, sorted(counts)))} samples")
    return [
        {name: array if name in whole else array[i : i + 1] for name, array in arrays.items()}
        for i in range(counts.pop())
    ]


def _matches(wanted: Sequence[int | str | None], shape: tuple[int, ...]) -> bool:
    """Has the shape the wanted rank, and the wanted size wherever that is a number?"""
    return len(wanted) == len(shape) and all(
        not isinstance(want, int) or want == size for want, size in zip(wanted, shape, strict=True)
    )
