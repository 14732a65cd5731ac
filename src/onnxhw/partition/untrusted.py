"""`read_untrusted`: parse and check a model in a child process with bounded memory and time.

The child reads and places the model, so that the libraries below it (protobuf, onnx, numpy) meet the file there
first. What comes back is the checked model, data included, or an error as a record; a child that dies is an error, too.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import onnx

from .. import errors
from ..diagnostics import Diagnostic
from ..errors import InvalidModelError, OnnxhwError, UsageError
from ..onnxfile.limits import DEFAULT, LimitError, Limits
from ..onnxmodel.read import ModelFile, read
from .pipeline import read as read_and_place

if TYPE_CHECKING:
    from ..onnxmodel.read import Source

SECONDS = 60
"""Time for one model; the MobileNetV1 of 96 x 96 pixels takes four."""
BYTES = 8 << 30
"""Address space of the child, libraries included: four times the largest file that protobuf can have."""
SEPARATOR = b"\n"
CHILD = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import answer; answer()"
"""The child's program: isolated from the environment, with the parent's modules."""


def read_untrusted(
    source: "Source",
    limits: Limits = DEFAULT,
    seconds: int = SECONDS,
    memory: int = BYTES,
    shapes: Mapping[str, int] | None = None,
) -> ModelFile:
    """`load.read` in a child process of at most `seconds` of processor and wall time and `memory` bytes; less
    where the process is limited to less itself.

    The child places the model as well, with the sizes of its dimensions that `shapes` gives.

    Errors are those of reading and placing, and E3170 more time, E3171 more memory, E3172 the child ended without an
    answer; `UsageError` E2161 where processes cannot be limited.
    """
    if find_spec("resource") is None:
        raise UsageError("E2161", "this system cannot limit the memory and time of a process")
    path, data = (None, source) if isinstance(source, bytes) else (os.fspath(source), b"")
    where = path or "model"
    sizes = dict(shapes or {})
    request = {"path": path, "limits": asdict(limits), "shapes": sizes, "seconds": seconds, "memory": memory}
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", CHILD, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        answer, _ = process.communicate(json.dumps(request).encode() + SEPARATOR + data, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise _too_slow(where, seconds) from error
    finally:
        process.kill()
        process.wait()
    return _result(answer, process.returncode, where, seconds)


def _result(answer: bytes, status: int, where: str, seconds: int) -> ModelFile:
    head, _, body = answer.partition(SEPARATOR)
    try:
        record: dict[str, Any] = json.loads(head)
    except ValueError:
        if status == -signal.SIGXCPU:
            raise _too_slow(where, seconds) from None
        raise InvalidModelError(
            "E3172", f"the process that read it ended without an answer (status {status})", where=where
        ) from None
    if "memory" in record:
        what = f"needs more than {record['memory'] >> 20} MiB to be placed"
        raise InvalidModelError("E3171", what, where=where, hint="give it more memory")
    if "error" in record:
        raise _rebuilt(record["error"], where)
    warnings = tuple(Diagnostic.of(entry) for entry in record["warnings"])
    return ModelFile(onnx.ModelProto.FromString(body), warnings)


def _rebuilt(record: dict[str, str], where: str) -> OnnxhwError:
    """The child's error; what it knows as bytes has a name here."""
    kinds = [LimitError, *(kind for kind in vars(errors).values() if isinstance(kind, type))]
    found = next((kind for kind in kinds if issubclass(kind, OnnxhwError) and kind.kind == record["kind"]), OnnxhwError)
    return found(
        record["code"],
        record["what"],
        where=where if record["where"] == "model" else record["where"],
        hint=record["hint"],
    )


def _too_slow(where: str, seconds: int) -> InvalidModelError:
    return InvalidModelError(
        "E3170", f"takes more than {seconds} seconds to be read", where=where, hint="give it more time"
    )


def _limit(seconds: int, memory: int) -> int:
    """Bound this process, nowhere above the limits that it has already; no core files either. The bytes it may have."""
    import resource

    def bound(what: int, soft: int, hard: int) -> int:
        now, most = (sys.maxsize if one == resource.RLIM_INFINITY else one for one in resource.getrlimit(what))
        soft, hard = min(soft, now), min(hard, most)
        resource.setrlimit(what, (soft, hard))
        return soft

    bound(resource.RLIMIT_CPU, seconds, seconds + 1)  # first a signal that can be told from others
    bound(resource.RLIMIT_CORE, 0, 0)
    return bound(resource.RLIMIT_AS, memory, memory)


def answer() -> None:
    """The child: answer the request on stdin with a line of JSON and, if there is no error, the model."""
    head, _, data = sys.stdin.buffer.read().partition(SEPARATOR)
    request = json.loads(head)
    limits = Limits(**request["limits"])
    memory = _limit(request["seconds"], request["memory"])
    body = b""
    record: dict[str, Any]
    try:
        found = read(request["path"] or data, limits)
        body = found.model.SerializeToString()
        read_and_place(body, limits=limits, shapes=request["shapes"])
        record = {"warnings": [warning.record() for warning in found.warnings]}
    except MemoryError:
        record, body = {"memory": memory}, b""
    except OnnxhwError as error:
        record, body = {"error": error.record()}, b""
    sys.stdout.buffer.write(json.dumps(record).encode() + SEPARATOR + body)
    sys.stdout.buffer.flush()
