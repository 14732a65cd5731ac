"""`StatePair`: an output of a model that is an input of the next run, as its user names both; `states_of` makes states
of them, or says why it cannot."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import UsageError
from ..golden import host
from ..ir.graph import Array8, Graph, Port
from ..ir.parts import HardwarePart, ValueInfo
from ..ir.states import State
from ..ir.steps import SHAPE, apply
from ..partition import PartitionedModel
from ..presets import SDRAM

GRIDS = {"QuantizeLinear", "DequantizeLinear", "ToInt8", "ToUint8", *SHAPE}
"""Host steps that may stand between the tensors of a state: they treat every element alike, or move it."""
OPTION = "--persist"


@dataclass(frozen=True, eq=False)
class StatePair:
    """`initial`: what the first run finds, as the model's input takes it; None: real 0."""

    output: str
    input: str
    initial: npt.NDArray[Any] | None = None


def require_external(config: HwConfig, pairs: Sequence[StatePair]) -> None:
    """`UsageError` E2571 for states on a configuration without external memory."""
    if pairs and config.external is None:
        what = f"{config.name} has no external memory, in which states stay from run to run"
        raise UsageError("E2571", what, where=OPTION, hint=f"a preset with {SDRAM}, as {config.name}{SDRAM}")


def states_of(model: PartitionedModel, pairs: Sequence[StatePair]) -> tuple[State, ...]:
    """The states of a model whose hardware is one part, which reads and makes all of them.

    `UsageError` E2570: no such output or input, one named twice, or nothing left for the host; E2572, E2573, E2574:
    shape, element type or quantization of both differ; E2575: they are not on the hardware, in one part; E2576: the
    initial value is none of the input; E2577: the batch is fixed.
    """
    if not pairs:
        return ()
    _check_names(model, pairs)
    if model.batch is not None and model.batch.size > 1:
        what = f"its batch is fixed: {model.batch.size} samples of a call would share a state"
        raise UsageError("E2577", what, where=model.name, hint="export the model with batch 1")
    states = tuple(_state(model, pair) for pair in pairs)
    read = {state.read: state.input for state in states}
    for pair, state in zip(pairs, states, strict=True):
        if state.made in read:
            raise _refuse("E2575", pair, f"it is the state {read[state.made]!r} as it was found, not made by the run")
    return states


def _refuse(code: str, pair: StatePair, what: str, hint: str = "") -> UsageError:
    return UsageError(code, f"output {pair.output!r} cannot be the next run's input {pair.input!r}: {what}",
                      where=OPTION, hint=hint)  # fmt: skip


def _check_names(model: PartitionedModel, pairs: Sequence[StatePair]) -> None:
    outputs, inputs = ([value.name for value in values] for values in (model.outputs, model.inputs))
    for kind, names, known in (
        ("output", [pair.output for pair in pairs], outputs), ("input", [pair.input for pair in pairs], inputs)
    ):  # fmt: skip
        for name, count in Counter(names).items():
            if name not in known:
                hint = f"{kind}s: {', '.join(known) or 'none'}"
                raise UsageError("E2570", f"the model has no {kind} {name!r}", where=OPTION, hint=hint)
            if count > 1:
                raise UsageError("E2570", f"{kind} {name!r} is named twice", where=OPTION)
    if len(outputs) == len(pairs):
        what = "all outputs are states: nothing is left that a host receives"
        raise UsageError("E2570", what, where=OPTION, hint="give the model another output")


def _state(model: PartitionedModel, pair: StatePair) -> State:
    made = next(value for value in model.outputs if value.name == pair.output)
    read = next(value for value in model.inputs if value.name == pair.input)
    if made.shape != read.shape:
        raise _refuse("E2572", pair, f"their shapes differ: {_shape(made)} and {_shape(read)}")
    if made.dtype != read.dtype:
        raise _refuse("E2573", pair, f"their element types differ: {made.dtype} and {read.dtype}")
    graph, output, port = _ports(model, pair)
    one, other = graph.tensors[output.tensor], graph.tensors[port.tensor]
    if (one.scale, one.zero_point) != (other.scale, other.zero_point):
        what = f"scale {one.scale:g} and zero point {one.zero_point}, scale {other.scale:g} and {other.zero_point}"
        hint = "quantize both alike: an integer is kept as it is"
        raise _refuse("E2574", pair, f"their quantizations differ: {what}", hint)
    steps = [step["op"] for step in (*output.steps, *port.steps)]
    if others := [name for name in steps if name not in GRIDS]:
        raise _refuse("E2575", pair, f"the host computes {others[0]} between them")
    if one.shape != other.shape or not _is_kept(graph, output, port):
        what = "the integers of both mean different numbers, or stand in another order"
        raise _refuse("E2574", pair, what, "quantize both alike, in the same layout")
    return State(pair.output, pair.input, one.name, other.name, _initial(graph, port, pair))


def _shape(value: ValueInfo) -> str:
    return "?" if value.shape is None else str(list(value.shape))


def _ports(model: PartitionedModel, pair: StatePair) -> tuple[Graph, Port, Port]:
    """The hardware part and its ports of both."""
    hint = f"onnxhw check MODEL without {OPTION} shows where nodes run; --prefer hardware keeps more of them there"
    if not model.hardware:
        raise _refuse("E2575", pair, "nothing of the model runs on the hardware", hint)
    if len(model.hardware) > 1:
        what = f"the hardware has {len(model.hardware)} parts, and each that is loaded ends what others have kept"
        raise _refuse("E2575", pair, what, hint)
    (part,) = model.hardware
    others = [each for each in model.parts if not isinstance(each, HardwarePart)]
    if any(pair.input in each.inputs or pair.output in {*each.inputs, *each.outputs} for each in others):
        raise _refuse("E2575", pair, "the host computes a part of what is between them", hint)
    outputs = [port for port in part.graph.outputs if port.name == pair.output]
    inputs = [port for port in part.graph.inputs if port.name == pair.input]
    if not outputs or not inputs:
        missing = f"output {pair.output!r}" if not outputs else f"input {pair.input!r}"
        raise _refuse("E2575", pair, f"{missing} does not pass by the hardware", hint)
    if len(inputs) > 1:
        raise _refuse("E2574", pair, "the input is quantized in two ways")
    return part.graph, outputs[0], inputs[0]


def _is_kept(graph: Graph, output: Port, port: Port) -> bool:
    """Whether the host's steps from one tensor to the other leave every integer as and where it is. As they treat all
    elements alike, or move them, every integer somewhere and numbers that tell places apart are enough."""
    shape = graph.tensors[output.tensor].shape
    return all(np.array_equal(apply(port.steps, apply(output.steps, values)).reshape(shape), values)
               for values in _patterns(shape))  # fmt: skip


def _patterns(shape: tuple[int, ...]) -> Iterator[Array8]:
    places = np.arange(prod(shape))
    for start in range(0, 256, len(places)):
        yield ((places + start) % 256 - 128).astype(np.int8).reshape(shape)
    while places.any():
        yield (places % 256 - 128).astype(np.int8).reshape(shape)
        places //= 256


def _initial(graph: Graph, port: Port, pair: StatePair) -> Array8:
    """The first value of a state, in integers."""
    tensor, given, dtype = graph.tensors[port.tensor], pair.initial, np.dtype(port.dtype)
    if given is None:
        return np.full(tensor.shape, tensor.zero_point, np.int8)
    if given.shape != port.shape:
        what = f"its initial value must have shape {list(port.shape)}, not {list(given.shape)}"
        raise _refuse("E2576", pair, what)
    if given.dtype.kind == dtype.kind == "f":
        given = given.astype(dtype)
    alone = Graph(graph.name, {tensor.name: tensor}, [], [port], [])
    try:
        return host.prepare(alone, {port.name: given})[port.tensor]
    except UsageError as error:
        raise _refuse("E2576", pair, f"its initial value: {error.what}", error.hint) from error
