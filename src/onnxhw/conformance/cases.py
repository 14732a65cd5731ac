"""The cases of onnx's backend test suite: models, inputs, expected outputs."""

import re
import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from ..errors import UsageError
from .quantized import array_of, quantizable, quantized

SUITE = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
"""The suite's kinds of cases, in the order of the table."""

CONSTANTS, QUANTIZED = DERIVED = ("constants", "quantized")
"""Kinds made of the node cases: see `_constant_operands` and `quantized`."""
KINDS = (*SUITE, *DERIVED)

READERS: dict[str | None, tuple[Any, Any]] = {
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}
"""What a value of the suite is stored as, and how it is read, if it is no tensor."""
Data = list[tuple[list[Any], list[Any]]]
"""Pairs of inputs and expected outputs."""


@dataclass(frozen=True)
class SuiteCase:
    """One test of the suite: its model, and pairs of inputs and expected outputs."""

    name: str
    kind: str
    rtol: float
    atol: float
    source: Any


@cache
def all_cases() -> tuple[SuiteCase, ...]:
    """All cases, by kind and name."""
    from onnx.backend.test.loader import load_model_tests

    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # the suite's own numpy overflows on purpose
        warnings.simplefilter("ignore")
        for kind in SUITE:
            for source in load_model_tests(kind=kind):
                found.append(SuiteCase(source.name, kind, source.rtol, source.atol, source))
                if kind == "node" and _has_operands(source):
                    found.append(SuiteCase(f"{source.name}_constants", CONSTANTS, source.rtol, source.atol, source))
                if kind == "node" and quantizable(source):
                    found.append(SuiteCase(f"{source.name}_quantized", QUANTIZED, 0, 0, source))
    return tuple(sorted(found, key=lambda case: (KINDS.index(case.kind), case.name)))


def _has_operands(source: Any) -> bool:
    """Whether there are inputs beside the first, all of them tensors."""
    inputs = source.model.graph.input
    tensors = all(value.type.HasField("tensor_type") for value in inputs)
    return len(inputs) > 1 and tensors and len(source.data_sets) == 1


def select(pattern: str | None) -> tuple[SuiteCase, ...]:
    """The cases whose name matches a regular expression; `UsageError` E2720, E2721."""
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise UsageError("E2720", f"{pattern!r} is not a regular expression: {error}") from None
    chosen = tuple(case for case in all_cases() if wanted.search(case.name))
    if not chosen:
        raise UsageError("E2721", f"no case matches {pattern!r}", hint="for example: onnxhw conformance --filter conv")
    return chosen


def load(case: SuiteCase) -> tuple[onnx.ModelProto, Data]:
    """The model and the pairs of inputs and expected outputs of a case."""
    source = case.source
    if case.kind == QUANTIZED:
        return quantized(source)
    if source.model is not None:
        data = [([array_of(x) for x in i], [array_of(x) for x in o]) for i, o in source.data_sets]
        return _constant_operands(source.model, data) if case.kind == CONSTANTS else (source.model, data)
    if source.model_dir:
        model = onnx.load(Path(source.model_dir) / "model.onnx")
        sets = sorted(Path(source.model_dir).glob("test_data_set*"))
        return model, [(_protos(s, "input", model.graph.input), _protos(s, "output", model.graph.output)) for s in sets]
    path = Path(onnx.__file__).parent.parent / source.url
    if not path.exists():
        return onnx.ModelProto(), []
    model = onnx.load(path)
    outputs = range(len(model.graph.output))
    expected = [numpy_helper.to_array(onnx.load_tensor(path.with_name(f"{path.stem}_output_{i}.pb"))) for i in outputs]
    return model, [(_ramps(model), expected)]


def _constant_operands(model: onnx.ModelProto, data: Data) -> tuple[onnx.ModelProto, Data]:
    """The model with the values of all inputs but the first in it."""
    constant = deepcopy(model)
    constant.ir_version = max(model.ir_version, 4)  # before, every initializer had to be an input
    ((inputs, outputs),) = data
    for value, array in zip(model.graph.input[1:], inputs[1:], strict=True):
        constant.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
    del constant.graph.input[1:]
    return constant, [(inputs[:1], outputs)]


def _protos(folder: Path, stem: str, values: Iterable[onnx.ValueInfoProto]) -> list[Any]:
    found: list[Any] = []
    for index, value in enumerate(values):
        path = folder / f"{stem}_{index}.pb"
        if not path.exists():
            break
        proto, read = READERS.get(value.type.WhichOneof("value"), (onnx.TensorProto, numpy_helper.to_array))
        found.append(read(proto.FromString(path.read_bytes())))
    return found


def _ramps(model: onnx.ModelProto) -> list[npt.NDArray[np.float32]]:
    """The suite's inputs of its `real` models: ``0, 1/n .. (n - 1)/n`` in the input's shape."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    ramps = []
    for value in model.graph.input:
        if value.name not in defaults:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            size = int(np.prod(shape))
            ramps.append((np.arange(size).reshape(shape) / size).astype(np.float32))
    return ramps
