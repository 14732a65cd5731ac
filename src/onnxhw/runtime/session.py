"""`InferenceSession`: run a model on hardware and host together.

    with InferenceSession("model.onnx", device="auto") as session:
        (scores,) = session.run(None, {"x": array})
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..board import find
from ..closeable import Closeable
from ..compiler import place_and_schedule
from ..compiler.cost import Prefer
from ..compiler.states import StatePair, states_of
from ..config import HwConfig
from ..driver.artifact import baud_of, design_of, preprocess_of
from ..driver.device import Device
from ..engines import WITHOUT_MEMORY
from ..errors import InvalidModelError, UsageError
from ..ir.parts import ValueInfo
from ..onnxfile.limits import LimitError
from ..onnxmodel.prepared import Source
from ..onnxmodel.read import read_model
from ..ort_api import (
    MissingInputError,
    ModelMetadata,
    NodeArg,
    SessionMethods,
    SessionOptions,
    check_run_options,
    chosen_providers,
    own,
    sizes_of,
)
from ..partition import PartitionedModel, read, refuse
from ..preprocess import Input, Preprocess, open_samples
from ..presets import SDRAM
from ..program.parts import Program
from ..program.traffic import Rates
from ..report.profile import LayerRow, profile
from .description import ModelDescription
from .executor_names import DEVICES, compiled, is_target, read_compiled, unknown
from .executors import Executors, Watch
from .inputs import (
    check_elements,
    check_variables,
    inputs_of,
    joined,
    not_taken,
    of_none,
    open_sizes,
    sample_inputs,
    samples,
    typed,
)


class InferenceSession(SessionMethods, Closeable):
    """A model ready to run; parameters and calls are those of onnxruntime's class of this name, and a few more.

    Parameters
    ----------
    path_or_bytes : path, bytes or ModelProto; or a program: what ``compile`` or ``synth`` have written (a directory or
        a program.ohw), or what `onnxhw.compiler.compile` gives.
    sess_options, providers, provider_options : as onnxruntime takes them. Sizes of dimensions in the options are used,
        what only tunes onnxruntime changes nothing, other providers than `onnxhw.get_available_providers()` give a
        warning. `onnxhw.ort_api` has the details.
    device : one of `DEVICES` ("golden": integers in numpy, "emulator": instruction by instruction, "cxxrtl" and
        "cocotb": the RTL), the address of a device as `Device.open` takes it, or an open `Device`, which stays open.
    config, board : hardware that the parts are compiled for; default: that of a connected device, else the preset of
        board "ulx3s", on an engine without external memory without that. "golden" needs none, a compiled program has
        its own.
    shapes : values of dynamic dimensions by name.
    prefer : "speed", the default: parts that the host runs quicker than line and core of a device are left to it
        (`compiler.cost.slower`; on an engine there is no line); "hardware": all that the hardware can run stays there.
    exact_softmax : a Softmax before operations of the hardware runs on the host, in float32, not on the hardware.
    persist : outputs that are inputs of the next inference, with their first values: neither fed nor given. They go on
        from `run` to `run`, in the order of the samples, until `clear_state`; a compiled program has its own.
    preprocess : what `feeds` makes of images and arrays; a compiled program has its own.
    enable_fallback, disabled_optimizers, read_config_from_model : onnxruntime's; they change nothing.

    Any number of threads may share a session: calls go one at a time, `close` too. On a device several hardware parts
    are programs that are loaded in turn: each once for all samples of a `run`.

    `UsageError` E2500: no such device; E2590, E2591: `sess_options` or providers that cannot be meant; E2506: "golden"
    and a compiled program; E2504: `config`, `shapes`, `prefer`, `exact_softmax`, `persist` or `preprocess` with one;
    else the errors of `partition.read`, `onnxhw.compiler.compile` (but for "golden"), `Device.open` and `Device.load`.
    """

    def __init__(
        self,
        path_or_bytes: Source | Program,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        device: str | Device = "golden",
        config: HwConfig | None = None,
        board: str = "ulx3s",
        shapes: Mapping[str, int] | None = None,
        exact_softmax: bool = False,
        persist: Sequence[StatePair] = (),
        preprocess: Preprocess | None = None,
        prefer: Prefer | None = None,
        enable_fallback: Any = None,
        disabled_optimizers: Any = None,
        read_config_from_model: Any = None,
    ) -> None:
        if not is_target(device):
            raise unknown(device)
        chosen_providers(providers, provider_options)
        self._options = SessionOptions() if sess_options is None else sess_options
        self._source, self._exact, self._prefer = path_or_bytes, exact_softmax, prefer
        self._persist = tuple(persist)
        self.preprocess = preprocess or Preprocess()
        """What `feeds` does."""
        self._lock, self._closed = threading.RLock(), False
        self._description = ModelDescription(path_or_bytes)
        sizes = sizes_of(sess_options, self._description.declared_inputs)
        self.shapes = {**sizes, **(shapes or {})} if sizes else shapes
        """Sizes of dimensions that were given."""
        self._others: dict[tuple[tuple[str, int], ...], InferenceSession] = {}
        self._stack = ExitStack()
        self.model: PartitionedModel | None = None
        """Where each node runs and why; None for a compiled program."""
        self.program: Program
        """What runs: on "golden" all of it is the host's."""
        try:
            self._prepare(device, config, board)
        except BaseException:
            self._stack.close()
            raise
        self.cycles = 0
        """Cycles of the hardware in the last `run`, over all its inferences; 0 on "golden"."""
        self.counters: list[dict[str, int]] = []
        """What the hardware has counted, of each hardware part in turn: cycles, and stalls by cause, of one inference
        (they do not depend on data); as of the last `run`, empty on "golden"."""
        self.host_seconds = 0.0
        """What the host's parts took in the last `run`, by the clock."""
        self._executors: Executors | None = None

    def _prepare(self, device: str | Device, config: HwConfig | None, board: str) -> None:
        """Read or compile the model, and open the device."""
        file, design = compiled(self._source), None
        likely: int | None = None
        options = (
            config, self.shapes, self._exact, self._persist, self._prefer is not None, self.preprocess != Preprocess()
        )  # fmt: skip
        made = isinstance(self._source, Program)
        if (file or made) and any(options):
            what = "a compiled program has its configuration, sizes and preprocessing already"
            raise UsageError("E2504", what, where=str(file or ""), hint="give the .onnx file")
        if isinstance(self._source, Program):
            self.program = self._source
        elif file:
            self.program, record = read_compiled(file)
            design = None if device in DEVICES else design_of(record, file.parent)
            self.preprocess, likely = preprocess_of(file), baud_of(file)
        if (file or made) and device == "golden" and self.program.programs:
            raise UsageError("E2506", "the golden model is a graph's, not a program's", hint="give the .onnx file")
        if file or made:  # values that had a default are constants now
            given = tuple(value for value in self.program.inputs if not value.optional)
            self.program, config = replace(self.program, inputs=given), self.program.config
        chosen = find(board)
        name = chosen.preset.removesuffix(SDRAM) if device in WITHOUT_MEMORY else chosen.preset
        simulated = config or chosen.configuration(name)
        self.target: Device | str = device
        """The device, or one of `DEVICES`."""
        if isinstance(device, str) and device not in DEVICES:
            self.target = self._stack.enter_context(Device.open(device, config=simulated, likely_baud=likely))
        there = self.target.info.config if isinstance(self.target, Device) else None
        self.config = config or there or simulated
        self.device = self.target.address if isinstance(self.target, Device) else self.target
        if not (file or made):
            self.model, self.program = self._placed(device == "golden")
        if isinstance(self.target, Device) and self.program.programs:
            self.target.load(self.program.programs[0], design=design)

    def _placed(self, golden: bool) -> tuple[PartitionedModel, Program]:
        """The model with its program: for the golden model as `partition` places it, else compiled."""
        assert not isinstance(self._source, Program)
        if golden:
            model = read(self._source, shapes=self.shapes, exact_softmax=self._exact)
            return model, model.on_host(states_of(model, self._persist))
        head = self.target.head if isinstance(self.target, Device) else None
        placed = place_and_schedule(
            self._source, self.config, shapes=self.shapes, prefer=self._prefer or "speed",
            rates=Rates(head.baud, head.clock_hz) if head else None, exact_softmax=self._exact, persist=self._persist,
        )  # fmt: skip
        return placed.model, placed.made

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have no default value."""
        return [self._described(value) for value in self.program.inputs if not value.optional]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have one."""
        return [self._described(value) for value in self.program.inputs if value.optional]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [self._described(value) for value in self.program.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself; of a compiled program what the copy of the model beside it says."""
        return self._description.metadata(self.program.name)

    def _described(self, value: ValueInfo) -> NodeArg:
        return self._description.of_value(value, self.program, self.shapes, anew=self.model is not None)

    def feeds(self, source: str | Path, start: int = 0, stop: int | None = None) -> dict[str, Any]:
        """Samples `start` to `stop` of an .npy or .npz file, an image or a folder of them, as `run` takes them.

        `UsageError` E2600 to E2608 as of `onnxhw.preprocess.open_samples`, E2502: there are no such samples.
        """
        inputs = [Input.of(value.name, value.shape, value.dtype) for value in inputs_of(self.program)]
        found = list(open_samples(Path(source), inputs, self.preprocess).feeds(start, stop))
        if start < 0 or not found:
            raise UsageError("E2502", f"there is no sample {start}", where=str(source))
        return {value.name: np.concatenate([one[value.name] for one in found]) for value in inputs}

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """The outputs asked for (all if None or empty), in order, from the inputs by name.

        Where the model has batch 1, inputs of N samples give outputs of N: one inference each. Where its batch is open,
        N samples give what the model means at a batch of N: one inference each if that is proved to be the same. A feed
        that names an initializer replaces its value. An array has the element type of its input, as in onnxruntime;
        lists of Python's numbers are rounded to it. `run_options` change nothing.

        `UsageError` E2501: no such output; E2502: inputs missing or unknown; E2503: wrong shape or type; E2507: closed;
        E2590, E2591: `run_options` that cannot be meant;
        `UnsupportedError` E4401: the model has a node that nothing can run.
        """
        check_run_options(run_options)
        with self._lock:
            self._refuse_closed()
            return self._run(output_names, input_feed)

    def clear_state(self) -> None:
        """Begin again with the first values of what stays from inference to inference (`persist`). `UsageError` E2507:
        closed; on a device errors as of `Device.clear_state`."""
        with self._lock:
            self._refuse_closed()
            self.prepare()
            assert self._executors is not None
            self._executors.clear_state()

    def profile(self) -> list[LayerRow]:
        """Where the cycles of one inference go, layer by layer of the hardware parts in turn.

        The figures are the schedule's, which is exact; a device's count of cycles is compared with it in every run.
        `UsageError` E2505 on "golden", which has no schedule.
        """
        if self.device == "golden":
            raise UsageError("E2505", "the golden model has no cycles", hint="device='emulator' has")
        return [row for program in self.program.programs for row in profile(program).layers]

    def _run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        names = [value.name for value in self.program.outputs]
        wanted = list(output_names or names)  # none means all, as in onnxruntime
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError("E2501", f"the model has no output {unknown[0]!r}", hint=f"outputs: {', '.join(names)}")
        self._check_names(feeds)
        if self.model is not None:
            refuse(self.model)
        given = {value.name for value in self.program.inputs if value.optional} & set(feeds)
        if given:
            self._refuse_other("values of initializers")
            with self._overridden(given, feeds) as other:
                found = other.run(wanted, {k: v for k, v in feeds.items() if k not in given})
                self._note(other)
            return found
        arrays = {value.name: typed(value, feeds[value.name]) for value in inputs_of(self.program)}
        check_variables(inputs_of(self.program), arrays)
        if sizes := open_sizes(self.program, arrays):
            if (empty := of_none(self.program, sizes, wanted)) is not None:
                self.cycles, self.counters, self.host_seconds = 0, [], 0.0
                return empty
            self._refuse_other("a batch whose samples may meet")
            placed = self._placed_for(sizes)
            found = placed.run(wanted, feeds)
            self._note(placed)
            return found
        inferences = samples(sample_inputs(self.program, arrays), arrays, self.program.batch)
        if len(inferences) == 1:
            check_elements(inputs_of(self.program), arrays)
        results = self._infer(inferences)
        return [own(joined([sample[name] for sample in results], name, self.program.batch)) for name in wanted]

    def infer(
        self, inferences: Sequence[Mapping[str, Any]], *, watch: Watch | None = None, trace: bool = False
    ) -> list[dict[str, Any]]:
        """All outputs by name of each inference, from its inputs by name.

        As `run`, below the batch: inputs and outputs are those of `program`, of one sample each, of their types.
        `watch` is told of every result of a hardware part; with `trace` these have every tensor, on an engine.

        `UsageError` E2203 and E2204 for inputs that are not the program's, E2507: closed.
        """
        with self._lock:
            self._refuse_closed()
            names = [value.name for value in self.program.outputs]
            return [{name: own(values[name]) for name in names} for values in self._infer(inferences, watch, trace)]

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """What the first `run` would do before it starts: build engines, load programs; `progress` is told of it."""
        with self._lock:
            self._refuse_closed()
            if self._executors is None:
                self._executors = self._stack.enter_context(Executors(self.program, self.target, progress=progress))

    def _infer(
        self, inferences: Sequence[Mapping[str, Any]], watch: Watch | None = None, trace: bool = False
    ) -> list[dict[str, Any]]:
        self.prepare()
        assert self._executors is not None
        try:
            return self._executors.run(inferences, watch, trace)
        finally:
            self._note(self._executors)

    def _note(self, ran: "Executors | InferenceSession") -> None:
        self.cycles, self.counters, self.host_seconds = ran.cycles, ran.counters, ran.host_seconds

    def _refuse_closed(self) -> None:
        if self._closed:
            raise UsageError("E2507", "the session is closed", where=self.device, hint="make another")

    def close(self) -> None:
        """Release the engines, and the device unless it was open before."""
        with self._lock:  # an engine must not go while a thread runs it
            self._stack.close()
            self._executors, self._others, self._closed = None, {}, True

    def _placed_for(self, sizes: Mapping[str, int]) -> "InferenceSession":
        """This model placed for other sizes; made once. `UsageError` E2506: it is a compiled program."""
        if self.model is None and self.program.batch is not None:
            count, why = max(sizes.values()), self.program.batch.mixing or "its inputs are of different sizes"
            what = f"{count} samples are not {count} inferences of this program: {why}"
            raise UsageError("E2506", what, hint="give the .onnx file: it is placed anew for the batch")
        key = tuple(sorted(sizes.items()))
        if key not in self._others:
            shapes = {**(self.shapes or {}), **sizes}
            assert not isinstance(self._source, Program)
            try:
                session = self._like(self._source, shapes)
            except LimitError:
                raise
            except InvalidModelError as error:
                raise not_taken(sizes, error) from error
            self._others[key] = self._stack.enter_context(session)
        return self._others[key]

    def _refuse_other(self, what: str) -> None:
        """`UsageError` E2578 for what another model would run, with states of its own."""
        if self._persist or any(program.states for program in self.program.programs):
            what = f"{what}: the model would be placed anew, without what the runs before have left"
            raise UsageError("E2578", what, where=self.device, hint="one sample after the other, without them")

    def _check_names(self, feeds: Mapping[str, Any]) -> None:
        needed, known = [v.name for v in inputs_of(self.program)], {v.name for v in self.program.inputs}
        for name in feeds:
            if name not in known:
                raise UsageError("E2502", f"the model has no input {name!r}", hint=f"inputs: {', '.join(needed)}")
        for name in needed:
            if name not in feeds:
                raise MissingInputError("E2502", f"input {name!r} is missing", hint=f"inputs: {', '.join(needed)}")

    def _overridden(self, names: set[str], feeds: Mapping[str, Any]) -> "InferenceSession":
        """A session of the model with other values for some initializers."""
        source = self._source
        assert not isinstance(source, Program)
        model = read_model(source.SerializeToString() if isinstance(source, onnx.ModelProto) else source)
        for tensor in model.graph.initializer:
            if tensor.name in names:
                value = next(value for value in self.program.inputs if value.name == tensor.name)
                tensor.CopyFrom(numpy_helper.from_array(typed(value, feeds[tensor.name]), tensor.name))
        return self._like(model, self.shapes)

    def _like(self, model: Source, shapes: Mapping[str, int] | None) -> "InferenceSession":
        """A session on the same device, with the same options."""
        return InferenceSession(
            model, device=self.target, config=self.config, shapes=shapes,
            exact_softmax=self._exact, prefer=self._prefer,
        )  # fmt: skip
