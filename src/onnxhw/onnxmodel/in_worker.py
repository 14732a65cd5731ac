"""`infer_shapes`, `convert_version`: onnx's own code in a worker of bounded memory and time (`onnxhw.worker`)."""

import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial

import onnx
from onnx import shape_inference

from ..errors import InvalidModelError
from ..worker import Task, TaskFailedError, WorkerDiedError, call_in_worker, memory_of, worker_scope
from .specification.findings import label

SECONDS = 1.0
"""By the clock, for finding the node that ends inference."""
TRIES = 3
"""Times that nodes must pass before they are taken for harmless: what a read outside of memory meets there differs."""


class CrashError(InvalidModelError):
    """onnx's own code crashes on a model, or has too little time or memory for it."""


def infer_shapes(
    model: onnx.ModelProto, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto:
    """`onnx.shape_inference.infer_shapes`, with its errors.

    `CrashError` E3450 if it ends the process or takes too much time, with the node if one can be named; E3451 if it
    takes too much memory.
    """
    task = partial(_inferred, check_type, strict_mode, data_prop)
    return _asked(model, task, "shape inference", shape_inference.InferenceError, _culprit)


def convert_version(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """`onnx.version_converter.convert_version`, whose errors are `RuntimeError` here; `CrashError` as above."""
    return _asked(model, partial(_converted, version), "version conversion", RuntimeError)


def _inferred(check_type: bool, strict_mode: bool, data_prop: bool, model: bytes) -> bytes:
    from onnx.onnx_cpp2py_export import shape_inference as inference

    return bytes(inference.infer_shapes(model, check_type, strict_mode, data_prop))


def _converted(version: int, model: bytes) -> bytes:
    from onnx.onnx_cpp2py_export import version_converter as conversion

    return bytes(conversion.convert_version(model, version))


def _nobody(model: onnx.ModelProto, task: Task) -> str:
    return ""


def _asked(
    model: onnx.ModelProto,
    task: Task,
    name: str,
    kind: type[Exception],
    culprit: Callable[[onnx.ModelProto, Task], str] = _nobody,
) -> onnx.ModelProto:
    data = model.SerializeToString()
    with worker_scope():
        try:
            found: onnx.ModelProto = onnx.ModelProto.FromString(call_in_worker(task, data))
        except WorkerDiedError as died:
            raise CrashError("E3450", f"{culprit(model, task)}onnx's {name} {died}") from None
        except MemoryError:
            most = memory_of(len(data)) >> 20
            raise CrashError("E3451", f"onnx's {name} needs more than {most} MiB for it") from None
        except TaskFailedError as error:
            raise kind(str(error)) from None
    return found


def _culprit(model: onnx.ModelProto, task: Task) -> str:
    """The first node with which inference ends its process, found by halving: "node 'x' (Op): "; "" if it is none."""
    if not model.graph.node:
        return ""
    part = deepcopy(model)
    del part.graph.output[:]
    good, bad, deadline = 0, len(model.graph.node), time.monotonic() + SECONDS
    while bad - good > 1 and time.monotonic() < deadline:
        middle = (good + bad) // 2
        del part.graph.node[:]
        part.graph.node.extend(model.graph.node[:middle])
        try:
            for _ in range(TRIES):
                with suppress(TaskFailedError, MemoryError):
                    call_in_worker(task, part.SerializeToString())
            good = middle
        except WorkerDiedError:
            bad = middle
    return f"{label(model.graph.node[bad - 1])}: " if bad - good == 1 else ""
