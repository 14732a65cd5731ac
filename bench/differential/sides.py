"""The same model in the product, in onnxruntime, and in onnx's reference evaluator with our operators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime

from onnxhw import InferenceSession
from onnxhw.errors import OnnxhwError
from onnxhw.hostops.evaluator import Evaluator
from onnxhw.partition import refuse

BY_VALUES = ("E2702", "E4753", "E4755")
"""Refusals that depend on the values of a run alone, which `check` cannot know."""


@dataclass(frozen=True)
class Outcome:
    """Results in order, or the reason why there are none; `checked`: the refusal came before anything ran."""

    values: tuple[Any, ...] | None
    reason: str = ""
    checked: bool = False
    code: str = ""


def _refused(error: Exception, checked: bool = False) -> Outcome:
    code = getattr(error, "code", "") if isinstance(error, OnnxhwError) else type(error).__name__
    return Outcome(None, f"{code}: {' '.join(str(error).split())[:400]}", checked, str(code))


def product(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Outcome:
    """What a user gets of `InferenceSession`; what `check` refuses is refused before the run."""
    try:
        session = InferenceSession(model.SerializeToString())
        refuse(session.model)
    except Exception as error:
        return _refused(error, checked=isinstance(error, OnnxhwError))
    try:
        return Outcome(tuple(session.run(None, feeds)))
    except Exception as error:
        return _refused(error)


class Reference(Evaluator):
    """onnx's reference evaluator with our operators, nothing in onnxruntime."""

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        return self._others(node, input_types)


def ours(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Outcome:
    """`Reference`, without the shapes that onnx infers for outputs: of pools it counts windows that are not there."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for value in plain.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return _tried(lambda: tuple(Reference(plain).run(None, dict(feeds))))


def ort(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Outcome:
    """onnxruntime, nothing optimised, one thread."""

    def run() -> tuple[Any, ...]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return tuple(session.run(None, dict(feeds)))

    return _tried(run)


def _tried(run: Callable[[], tuple[Any, ...]]) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return Outcome(run())
    except Exception as error:
        return _refused(error)
