"""`computed`, `refusal`: what the host computes before a run, in a worker (`onnxhw.worker`): constants, and trials."""

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from ..errors import OnnxhwError
from ..worker import TaskFailedError, WorkerDiedError, call_in_worker, worker_scope

IMPOSSIBLE = ("E4750", "E4751", "E4752", "E4756")
"""Of `evaluate`: what need not be about the numbers of the inputs."""


class RefusedError(RuntimeError):
    """The kernel that would compute a node refuses its operands: it would do so in every run."""


def computed(node: onnx.NodeProto, opset: int, operands: Sequence[Any]) -> list[Any]:
    """The results of a node of the default domain as the host would compute them (`single.computed`).

    `RuntimeError` with the text of its error, or with how it ended; `RefusedError` if the operands are to blame.
    """
    question = pickle.dumps((node.SerializeToString(), opset, list(operands)), pickle.HIGHEST_PROTOCOL)
    try:
        results, refused = pickle.loads(call_in_worker(_compute, question))
    except WorkerDiedError as died:
        raise RuntimeError(f"its computation {died}") from None
    except TaskFailedError as error:
        raise RuntimeError(str(error)) from None
    except MemoryError:
        raise RuntimeError("it needs too much memory") from None
    if results is None:
        raise RefusedError(refused)
    found: list[Any] = results
    return found


def refusal(model: onnx.ModelProto, attempts: Sequence[Mapping[str, Any]]) -> str:
    """Why the host computes a model of none of several inputs; "" if it does of one, or if that cannot be told, for
    lack of time or memory. A crash is a reason, where each of the inputs has one.
    """
    with worker_scope():
        reason, died = _asked_to_try(model, attempts)
        if died is None or died.slow:
            return "" if died else reason
        every = [_asked_to_try(model, [one]) for one in attempts]  # what came behind the crash has not been tried
        return reason if all(text and not (end and end.slow) for text, end in every) else ""


def _asked_to_try(model: onnx.ModelProto, attempts: Sequence[Mapping[str, Any]]) -> tuple[str, WorkerDiedError | None]:
    """The worker's refusal, or how it ended."""
    question = model.SerializeToString(), [dict(inputs) for inputs in attempts]
    try:
        return call_in_worker(_try, pickle.dumps(question, pickle.HIGHEST_PROTOCOL)).decode(errors="replace"), None
    except WorkerDiedError as died:
        return f"its kernel {died}", died
    except (TaskFailedError, MemoryError):
        return "", None


def _compute(question: bytes) -> bytes:
    """Of a node: its results, or None and why a kernel, which has what the node needs, refuses its operands."""
    from .onnxruntime_node import NativeError  # only here: it takes long to import

    try:
        answer: tuple[list[Any] | None, str] = _computed(*pickle.loads(question)), ""
    except NativeError as error:
        answer = None, str(error)
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def _computed(node: bytes, opset: int, operands: Sequence[Any]) -> list[Any]:
    from .single_node import computed as on_the_host  # only here: it takes long to import

    return list(on_the_host(onnx.NodeProto.FromString(node), opset, operands))


def _try(question: bytes) -> bytes:
    from .evaluator import evaluate  # only here: it takes long to import

    model, attempts = pickle.loads(question)
    proto, text = onnx.ModelProto.FromString(model), ""
    for inputs in attempts:
        try:
            evaluate(proto, inputs)
            return b""
        except OnnxhwError as error:
            if error.code not in IMPOSSIBLE:
                return b""
            text = error.what
    return text.encode(errors="replace")
