"""The batch of a model: whether its samples are independent, and a model of one sample for a fixed batch.

The accelerator runs one sample at a time, which is right for N of them only if no sample's result depends on another.
That is proved, never assumed:

    kinds     every node that an output needs keeps samples apart, by a rule of its operator
              (`batch_dependence`, `batching_rules`)
    shapes    every value has at batch 1 and at batch N the same shape, but for a first dimension of k and N * k

Where the proof fails, the model is placed at the batch that it is fed, and what cannot run so is the host's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace

import onnx
from onnx import numpy_helper

from ..batch import Batch
from ..errors import OnnxhwError
from ..onnxfile.limits import DEFAULT
from .batch_dependence import SampleDependenceError, at_one, constants_of, kinds
from .batching_rules import ROWS, SIZE, Kind
from .nodes import Node
from .shapes import Shape, specialise

TWO = 2
"""The batch with which an open one is proved: shapes that are affine in N are known from two."""
OTHERS = (2, 3, 12)
"""Sizes at which something is looked at that is wrong at 1; the last has many divisors."""
UNBOUNDED = replace(DEFAULT, tensor_elements=1 << 62, total_elements=1 << 62)
"""For shapes alone: nothing of that size is allocated."""


def open_batch(model: onnx.ModelProto, shapes: Mapping[str, int]) -> frozenset[str]:
    """The inputs whose first dimension is open, and not given a size by `shapes` (see `specialise`)."""
    inputs = {value.name: _dims(value) for value in _inputs(model)}
    given = set(shapes)
    for name in shapes:
        of, _, axis = name.rpartition(":")
        if of in inputs and axis.isdecimal() and int(axis) < len(inputs[of]):
            given.add(inputs[of][int(axis)].dim_param)
    given.discard("")
    return frozenset(
        name
        for name, dims in inputs.items()
        if dims and not dims[0].HasField("dim_value") and dims[0].dim_param not in given and f"{name}:0" not in given
    )


def prove_open(
    model: onnx.ModelProto, one: Mapping[str, Shape], shapes: Mapping[str, int], inputs: frozenset[str]
) -> Batch:
    """The batch of a model that leaves it open: proved or not.

    Parameters
    ----------
    model : as read, not specialised.
    one : static shapes at batch 1.
    shapes : sizes of other dimensions.
    inputs : `open_batch`.
    """
    try:
        at_two, many = specialise(
            without_declarations(model), shapes={**shapes, **{f"{name}:0": TWO for name in inputs}}, limits=UNBOUNDED
        )
        outputs = _proved(at_two, one, many, inputs, TWO)
    except SampleDependenceError as mixing:
        return Batch(0, inputs, mixing=str(mixing))
    except OnnxhwError as error:
        return Batch(0, inputs, mixing=f"at batch {TWO} {error.what.splitlines()[0]}")
    return Batch(0, inputs, outputs)


def at_sizes(
    model: onnx.ModelProto, shapes: Mapping[str, int], inputs: frozenset[str]
) -> list[Mapping[str, Shape]]:
    """The static shapes of values at other sizes of an open batch than 1: of those of `OTHERS` that the model takes.

    Parameters as of `prove_open`.
    """
    found: list[Mapping[str, Shape]] = []
    for size in OTHERS:
        with suppress(OnnxhwError):
            sizes = {**shapes, **{f"{name}:0": size for name in inputs}}
            found.append(specialise(without_declarations(model), shapes=sizes, limits=UNBOUNDED)[1])
    return found


@dataclass(frozen=True)
class OneSample:
    """A model of one sample, specialised, with its static shapes, and the batch that it was made of."""

    model: onnx.ModelProto
    shapes: dict[str, Shape]
    batch: Batch


def one_sample(model: onnx.ModelProto, many: Mapping[str, Shape]) -> OneSample | str:
    """The model of one sample of a specialised model whose batch is fixed and more than 1; or why there is none.

    "" if there is nothing to say: no input has such a first dimension. Inputs of rank 2 and more are tried first, then
    vectors beside them, then the first input alone.
    """
    reason = ""
    for inputs, size in _candidates(model, many):
        try:
            reduced, one = specialise(_reduced(model, many, inputs, size), limits=UNBOUNDED)
            outputs = _proved(model, one, many, inputs, size)
        except SampleDependenceError as mixing:
            reason = reason or str(mixing)
        except OnnxhwError as error:
            reason = reason or f"at batch 1 {error.what.splitlines()[0]}"
        else:
            return OneSample(reduced, one, Batch(size, inputs, outputs))
    return reason


def _proved(
    model: onnx.ModelProto, one: Mapping[str, Shape], many: Mapping[str, Shape], inputs: frozenset[str], size: int
) -> frozenset[str]:
    """The outputs with rows for each sample; `SampleDependenceError` if that is not proved."""
    found = kinds(model, many, inputs, size)
    for name, kind in found.items():
        if kind != SIZE and name in one and name in many and one[name] != at_one(many[name], kind, size):
            raise SampleDependenceError(
                name, f"its shape is {list(one[name])} at batch 1, {list(many[name])} at batch {size}"
            )
        if kind == ROWS and (name not in one or name not in many):
            raise SampleDependenceError(name, "its shape is not known")
    return frozenset(value.name for value in model.graph.output if found[value.name] == ROWS)


def _candidates(model: onnx.ModelProto, many: Mapping[str, Shape]) -> Iterator[tuple[frozenset[str], int]]:
    """Sets of inputs that may have a row per sample, with the number of samples; each once."""
    names = [value.name for value in _inputs(model) if value.name in many]
    tried = set()
    for size in dict.fromkeys(many[name][0] for name in names if len(many[name]) > 1 and many[name][0] > 1):
        same = [name for name in names if many[name][:1] == (size,)]
        matrices = [name for name in same if len(many[name]) > 1]
        for inputs in (frozenset(matrices), frozenset(same), frozenset(matrices[:1])):
            if inputs not in tried:
                tried.add(inputs)
                yield inputs, size


def _reduced(model: onnx.ModelProto, many: Mapping[str, Shape], inputs: frozenset[str], size: int) -> onnx.ModelProto:
    """The model with one row in these inputs, and constants that have the batch in a shape made to fit."""
    found = kinds(model, many, inputs, size)
    reduced = without_declarations(model)
    for value in reduced.graph.input:
        if value.name in inputs:
            _dims(value)[0].dim_value = 1
    constants = constants_of(model)
    for number, node in enumerate(reduced.graph.node):
        at = SHAPED.get(Node.of(node).key)
        if at is None or at >= len(node.input) or node.input[at] not in constants or found.get(node.output[0]) != ROWS:
            continue
        wanted, given = many[node.output[0]], constants[node.input[at]]
        if given.ndim == 1 and given.size and given[0] == wanted[0]:
            name = _fresh(f"{node.input[at]}.one{number}", found)
            values = given.copy()
            values[0] = wanted[0] // size
            reduced.graph.initializer.append(numpy_helper.from_array(values, name))
            node.input[at] = name
    return reduced


SHAPED = {("", "Reshape"): 1, ("", "Expand"): 1, ("", "Resize"): 3}
"""Operands that say a result's shape."""


def _fresh(wanted: str, taken: Mapping[str, Kind]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


def without_declarations(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without declared shapes but those of inputs: exporters leave the batch of their example in the others."""
    copy = deepcopy(model)
    del copy.graph.value_info[:]
    for value in copy.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs without a default that are tensors."""
    default = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input
            if value.name not in default and value.type.HasField("tensor_type")]  # fmt: skip


def _dims(value: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    dims: Sequence[onnx.TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
    return dims
