"""What a model is fed: arrays held against its inputs, and the inferences that they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch import Batch
from ..errors import OnnxhwError, UsageError
from ..golden import host
from ..ir.parts import Dim, HostPart, ValueInfo
from ..program.parts import Program


def inputs_of(program: Program) -> list[ValueInfo]:
    """The inputs that have no default value, as a run takes them."""
    return [of_all(value, program.batch) for value in program.inputs if not value.optional]


def open_sizes(program: Program, arrays: Mapping[str, Any]) -> dict[str, int]:
    """Sizes to place the model for anew: its open first dimensions, where they are not those that it is placed for
    (mostly 1) and samples may meet, or there are none."""
    batch = program.batch
    if batch is None or batch.size:
        return {}
    found = {}
    for value in inputs_of(program):
        array = arrays[value.name]
        if value.name not in batch.inputs or not isinstance(array, np.ndarray) or not value.shape:
            continue
        if len(value.shape) == array.ndim and value.shape[0] != len(array):
            found[value.name] = len(array)
    integer = any(not isinstance(part, HostPart) for part in program.parts)
    counts = set(found.values())
    if not batch.mixing and batch.inputs == found.keys() and len(counts) == 1 and integer and counts != {0}:
        return {}
    return {f"{name}:0": size for name, size in found.items()}


def of_none(program: Program, sizes: Mapping[str, int], wanted: Sequence[str]) -> list[Any] | None:
    """The results of no samples, where samples are proved independent: no rows. None where that is not all."""
    batch = program.batch
    if batch is None or batch.mixing or {*sizes.values()} != {0} or len(sizes) != len(batch.inputs):
        return None
    known = {value.name: value for value in program.outputs}
    if not batch.outputs.issuperset(wanted):
        return None
    return [np.zeros((0, *(known[name].shape or ())[1:]), known[name].dtype) for name in wanted]


def sample_inputs(program: Program, arrays: Mapping[str, Any]) -> list[ValueInfo]:
    """The inputs of one sample, where the arrays have the batch that the file fixes; `UsageError` E2503."""
    batch = program.batch
    if batch is not None and batch.size:
        for value in inputs_of(program):
            array = arrays[value.name]
            if value.shape is not None and not matches(value.shape, np.shape(array)):
                raise wrong_shape(value, array, f"its batch is fixed: {batch.size}")
    return [value for value in program.inputs if not value.optional]


def typed(value: ValueInfo, given: Any) -> Any:
    """An array of the input's type (`golden.host.typed`); what is no tensor is left alone. `UsageError` E2503."""
    return host.typed(value.name, given, value.dtype, "E2503") if value.dtype else given


def samples(inputs: Sequence[ValueInfo], arrays: Mapping[str, Any], batch: Batch | None) -> list[dict[str, Any]]:
    """The inferences that the arrays hold: one, or one per entry of the first dimension where the model has batch 1."""
    counts: set[int] = set()
    whole: set[str] = set()
    for value in inputs:
        array = arrays[value.name]
        if value.shape is None or not isinstance(array, np.ndarray):
            whole.add(value.name)
            continue
        fits = matches(value.shape, array.shape)
        counts_samples = value.shape[:1] == (1,) and (batch is None or value.name in batch.inputs)
        batched = counts_samples and array.ndim > 0 and matches(value.shape[1:], array.shape[1:])
        if not fits and not (batched and len(array)):
            raise wrong_shape(value, array, "a first dimension of 1 may be larger: one inference each")
        if fits and not counts_samples:
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


def check_variables(inputs: Sequence[ValueInfo], arrays: Mapping[str, Any]) -> None:
    """`UsageError` E2503 if a dimension variable of the inputs would have two values; those of tensors in sequences,
    optionals and maps are the same variables.

    Where tensors of one sequence differ, the variable has no value there: onnx's own test suite has such sequences.
    """
    known: dict[str, tuple[int, str]] = {}
    for value in inputs:
        for variable, sizes in _sizes(value, arrays).items():
            if value.elements is not None and len(sizes) > 1:
                continue
            first, owner = known.setdefault(variable, (min(sizes), value.name))
            if sizes != {first}:
                size = max(sizes - {first})
                what = f"input {value.name!r} has {variable} = {size}, input {owner!r} has {variable} = {first}"
                raise UsageError("E2503", what)


def _sizes(value: ValueInfo, arrays: Mapping[str, Any]) -> dict[str, set[int]]:
    """The sizes that each variable has in an input."""
    found: dict[str, set[int]] = {}
    for _, dims, sizes in _tensors([value], arrays):
        for variable, size in zip(dims, sizes, strict=False) if len(dims) == len(sizes) else ():
            if isinstance(variable, str) and variable:
                found.setdefault(variable, set()).add(size)
    return found


def check_elements(inputs: Sequence[ValueInfo], arrays: Mapping[str, Any]) -> None:
    """`UsageError` E2503 for a tensor in a sequence, an optional or a map whose shape is not the declared one."""
    for value, dims, sizes in _tensors([value for value in inputs if value.elements is not None], arrays):
        if not matches(dims, sizes):
            what = f"a tensor in input {value.name!r} must have shape {list(dims)}, not {list(sizes)}"
            raise UsageError("E2503", what)


def wrong_shape(value: ValueInfo, array: Any, hint: str) -> UsageError:
    """E2503 for an array of another shape than its input's."""
    wanted = list(value.shape or ())
    return UsageError("E2503", f"input {value.name!r} must have shape {wanted}, not {list(np.shape(array))}", hint=hint)


def not_taken(sizes: Mapping[str, int], error: OnnxhwError) -> UsageError:
    """E2503 for first dimensions, by ``input:0``, that the model's nodes do not take; `error` says why."""
    rows = ((name.rpartition(":")[0], size) for name, size in sizes.items())
    asked = ", ".join(f"{size} row{'s' * (size != 1)} of {name!r}" for name, size in rows)
    return UsageError("E2503", f"the model does not take {asked}: {error.what.splitlines()[0]}")


def _tensors(
    inputs: Sequence[ValueInfo], arrays: Mapping[str, Any]
) -> Iterator[tuple[ValueInfo, tuple[Dim, ...], tuple[int, ...]]]:
    """Declared and given shape of every tensor of known rank in the inputs, in sequences, optionals and maps too."""
    for value in inputs:
        dims = value.shape if value.elements is None else value.elements
        if dims is not None:
            yield from ((value, dims, one.shape) for one in _arrays(arrays[value.name]))


def _arrays(given: Any) -> Iterator[npt.NDArray[Any]]:
    """The arrays in what an input is given, however deep."""
    if isinstance(given, np.ndarray):
        yield given
    elif isinstance(given, list | tuple | dict):
        for one in given.values() if isinstance(given, dict) else given:
            yield from _arrays(one)


def matches(wanted: Sequence[int | str | None], shape: tuple[int, ...]) -> bool:
    """Has the shape the wanted rank, and the wanted size wherever that is a number?"""
    return len(wanted) == len(shape) and all(
        not isinstance(want, int) or want == size for want, size in zip(wanted, shape, strict=True)
    )


def of_all(value: ValueInfo, batch: Batch | None) -> ValueInfo:
    """The input or output of all samples, from that of one."""
    if batch is None or not batch.size or not value.shape or value.name not in batch.inputs | batch.outputs:
        return value
    first, *others = value.shape
    return replace(value, shape=(first * batch.size if isinstance(first, int) else first, *others))


def sizes_of_every_run(value: ValueInfo, batch: Batch | None, variable: str | None) -> list[Dim]:
    """The dimensions of an input or output of a placed model; `variable`: what the model calls its samples.

    Of an open batch, the first dimension is open where samples may be any number: `variable` where each has one row.
    """
    first, *others = of_all(value, batch).shape or (None,)
    if not value.shape or batch is None or batch.size or batch.mixing:
        return [first, *others] if value.shape else []
    if value.name not in batch.inputs | batch.outputs:
        return [first, *others]
    return [variable if first == 1 else None, *others]


def joined(results: list[Any], name: str, batch: Batch | None) -> Any:
    """An output of all samples, from that of each; one that is the same for all of them is there once."""
    if len(results) == 1 or (batch is not None and not batch.mixing and name not in batch.outputs):
        return results[0]
    return np.concatenate([np.atleast_1d(result) for result in results])
