"""If, Loop and Scan, with values of every type: tensors, sequences, and optionals that may be empty."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference.op_run import OpRun

from ...onnxmodel.endless_loops import MAX_ITERATIONS
from .adapter import Array

STACKED = 4096
"""Values of a scan output that wait to be stacked: few enough to take little memory, many enough to cost no time."""


class IterationsError(ValueError):
    """A loop of more than `MAX_ITERATIONS`."""


class _Control(OpRun):
    op_domain = ""
    op_schema = None

    def need_context(self) -> bool:
        return True

    def _check_and_fix_outputs(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return outputs


class If(_Control):
    """The outputs of one branch."""

    def _run(
        self,
        cond: Array,
        context: Mapping[str, Any],
        then_branch: Any,
        else_branch: Any,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        branch = then_branch if bool(np.asarray(cond).reshape(-1)[0]) else else_branch
        return tuple(branch.run(None, dict(context), attributes=attributes))


class Loop(_Control):
    """Carried values, and the stacked scan outputs of every iteration."""

    def _run(
        self,
        trips: Array | None = None,
        cond: Array | None = None,
        *carried: Any,
        context: Mapping[str, Any],
        body: Any,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        names, count = body.input_names, len(body.input_names) - 2
        limit = None if trips is None else int(np.asarray(trips).reshape(-1)[0])
        going = cond is None or bool(np.asarray(cond).reshape(-1)[0])
        state = list(carried)
        scans = [_Stacked() for _ in body.output_names[1 + count :]]
        iteration = 0
        while going and (limit is None or iteration < limit):
            if iteration >= MAX_ITERATIONS:
                raise IterationsError(f"the loop has more than {MAX_ITERATIONS:,} iterations")
            feeds = dict(context)
            feeds.update(zip(names, [np.array(iteration, np.int64), np.array(going), *state], strict=True))
            going, *results = body.run(None, feeds, attributes=attributes)
            going, state = bool(np.asarray(going).reshape(-1)[0]), results[:count]
            for scan, value in zip(scans, results[count:], strict=True):
                scan.append(value)
            iteration += 1
        return (*state, *(scan.whole(body, 1 + count + i) for i, scan in enumerate(scans)))


class Scan(_Control):
    """State variables, and scan outputs along their axes (operator set 9 and later)."""

    def _run(
        self,
        *inputs: Any,
        context: Mapping[str, Any],
        body: Any,
        num_scan_inputs: int,
        scan_input_axes: Sequence[int] | None = None,
        scan_input_directions: Sequence[int] | None = None,
        scan_output_axes: Sequence[int] | None = None,
        scan_output_directions: Sequence[int] | None = None,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        count = len(inputs) - num_scan_inputs
        state, scanned = list(inputs[:count]), inputs[count:]
        axes = scan_input_axes or [0] * num_scan_inputs
        slices = [np.moveaxis(value, axis, 0) for value, axis in zip(scanned, axes, strict=True)]
        backward = scan_input_directions or [0] * num_scan_inputs
        slices = [value[::-1] if flag else value for value, flag in zip(slices, backward, strict=True)]
        if len({len(value) for value in slices}) != 1:
            raise ValueError(f"scan inputs have different lengths: {[len(value) for value in slices]}")
        state, collected = _scanned(body, state, slices, context, attributes)
        flips = scan_output_directions or [0] * len(collected)
        targets = scan_output_axes or [0] * len(collected)
        outputs = [
            _stack(values[::-1] if flip else values, body, count + i, axis)
            for i, (values, flip, axis) in enumerate(zip(collected, flips, targets, strict=True))
        ]
        return (*state, *outputs)


class BatchedScan(_Control):
    """Scan of operator set 8: every input has a leading batch axis, and lengths may differ between its elements."""

    def _run(
        self,
        lengths: Array | None,
        *inputs: Array,
        context: Mapping[str, Any],
        body: Any,
        num_scan_inputs: int,
        directions: Sequence[int] | None = None,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        count = len(inputs) - num_scan_inputs
        longest = inputs[count].shape[1]
        batches: list[list[Array]] = []
        for batch in range(inputs[0].shape[0]):
            length = longest if lengths is None else int(lengths[batch])
            scanned = [value[batch, :length] for value in inputs[count:]]
            scanned = [
                v[::-1] if flag else v for v, flag in zip(scanned, directions or [0] * num_scan_inputs, strict=True)
            ]
            state, collected = _scanned(body, [value[batch] for value in inputs[:count]], scanned, context, attributes)
            outputs = [_stack(values, body, count + i, 0) for i, values in enumerate(collected)]
            padding = [[(0, longest - length)] + [(0, 0)] * (output.ndim - 1) for output in outputs]
            batches.append([*state, *(np.pad(output, pad) for output, pad in zip(outputs, padding, strict=True))])
        return tuple(np.stack(values) for values in zip(*batches, strict=True))


def _scanned(
    body: Any, state: list[Any], slices: Sequence[Array], context: Mapping[str, Any], attributes: Any
) -> tuple[list[Any], list[list[Array]]]:
    """The body once for each element of the slices, which are of one length: the last state, and the other results."""
    count = len(state)
    collected: list[list[Array]] = [[] for _ in body.output_names[count:]]
    for elements in zip(*slices, strict=True):
        feeds = {**context, **dict(zip(body.input_names, [*state, *elements], strict=True))}
        results = body.run(None, feeds, attributes=attributes)
        state = results[:count]
        for values, value in zip(collected, results[count:], strict=True):
            values.append(value)
    return state, collected


class _Stacked:
    """Values along a new first axis, stacked a few at a time: an array for each of a million scalars takes 100 times
    their bytes."""

    def __init__(self) -> None:
        self.done: list[Array] = []
        self.last: list[Array] = []

    def append(self, value: Array) -> None:
        self.last.append(value)
        if len(self.last) == STACKED:
            self.done.append(np.stack(self.last))
            self.last = []

    def whole(self, body: Any, index: int) -> Array:
        """All of them, as `_stack`."""
        if not self.done:
            return _stack(self.last, body, index, 0)
        return np.concatenate([*self.done, *([np.stack(self.last)] if self.last else [])])


def _stack(values: list[Array], body: Any, index: int, axis: int) -> Array:
    """The values along a new axis; without any, an empty tensor of the declared type."""
    if values:
        return np.stack(values, axis)
    tensor = body.output_types[index].tensor_type
    if not tensor.elem_type:
        raise ValueError(f"scan output {body.output_names[index]!r} of no iteration has no declared type")
    shape = [dim.dim_value for dim in tensor.shape.dim]
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 0)
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def versions(opset: int) -> list[type[OpRun]]:
    """The implementations for a version of the default domain."""
    return [If, Loop, Scan if opset >= 9 else type("Scan", (BatchedScan,), {})]
