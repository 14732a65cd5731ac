"""`infer_shapes`, `convert_version`, `computed`, `refusal`, `native`: others' code in a child that is bounded.

That code takes attributes and constants as indices, sizes and counts without a look at them, so a model can make it
read beyond its memory, abort, allocate without end or loop for ever. In a child all of that is an error with a code.
The child is forked when it is first needed, serves calls until this process ends, and is replaced if it dies. That of
a large process, whose memory it would hold, ends with the outermost `guarded` block. Where a process cannot fork
(Windows), or not safely (macOS), the code runs in this one. What a model's run computes there (`native`) has the
time and memory that it takes: only its end is not this process's.
"""

import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import onnx
from onnx import shape_inference, version_converter

from ..errors import InvalidModelError, OnnxhwError
from .spec.findings import label

if TYPE_CHECKING:
    from .native import Kind, NativeNode

MEMORY = 512 << 20
"""Address space that a call may take: a model of 100,000 nodes takes 400 MiB with its types."""
PER_BYTE = 8
"""Further address space per byte of the model: it is read, parsed, inferred and written."""
SECONDS = 1.0
"""Processor time of a call: 10,000 nodes take 0.1 s."""
SECONDS_PER_MIB = 2.0
"""More of it per MiB of the model, for nodes; constants take hardly any."""
WAIT = 20.0
"""Seconds by the clock per second of processor time: a busy machine is not at fault."""
CALLS = 500
"""Calls that a child serves: what they leave behind in its memory counts against the next."""
LARGE = 512 << 20
"""Bytes of memory of a process whose child does not stay: it would hold what the process has freed since."""
TRIES = 3
"""Times that nodes must pass before they are taken for harmless: what a read outside of memory meets there differs."""
ANSWER = 64 << 20
"""Bytes of an answer, and `PER_BYTE` per byte of the model."""
FORKS = sys.platform == "linux"
HEAD = struct.Struct("<BqQ")
"""Of a request: what to do, its number, bytes. Of an answer: 0 or the number of the error's kind, bytes."""
INFER, CONVERT, COMPUTE, TRY, RUN = 0, 1, 2, 3, 4
IMPOSSIBLE = ("E4750", "E4751", "E4752", "E4756")
"""Of `hostrun.evaluate`: what need not be about the numbers of the inputs."""
DONE, FAILED, MEMORY_ERROR, REFUSED, NO_KERNEL, NO_KERNEL_FOR_ATTRIBUTES = 0, 1, 2, 3, 4, 5
CHECKED, STRICT, VALUES = 1, 2, 4
"""How to infer: with types checked, every failure an error, values propagated."""


class CrashError(InvalidModelError):
    """onnx's own code crashes on a model, or has too little time or memory for it."""


class RefusedError(RuntimeError):
    """The kernel that would compute a node refuses its operands: it would do so in every run."""


class _DiedError(Exception):
    """The child is gone; the text says why. `slow`: it took too long."""

    def __init__(self, text: str, slow: bool = False) -> None:
        super().__init__(text)
        self.slow = slow


def infer_shapes(
    model: onnx.ModelProto, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto:
    """`onnx.shape_inference.infer_shapes`, with its errors.

    `CrashError` E3450 if it ends the process or takes too much time, with the node if one can be named; E3451 if it
    takes too much memory.
    """
    how = CHECKED * check_type | STRICT * strict_mode | VALUES * data_prop
    if not FORKS:
        return shape_inference.infer_shapes(model, check_type, strict_mode, data_prop)
    return _asked(model, INFER, how, "shape inference", shape_inference.InferenceError)


def convert_version(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """`onnx.version_converter.convert_version`, whose errors are `RuntimeError` here; `CrashError` as above."""
    if not FORKS:
        converted: onnx.ModelProto = version_converter.convert_version(model, version)
        return converted
    return _asked(model, CONVERT, version, "version conversion", RuntimeError)


def computed(node: onnx.NodeProto, opset: int, operands: Sequence[Any]) -> list[Any]:
    """The results of a node of the default domain as the host would compute them (`hostnodes.computed`).

    `RuntimeError` with the text of its error, or with how it ended; `RefusedError` if the operands are to blame.
    """
    question = (node.SerializeToString(), opset, list(operands))
    if not FORKS:
        try:
            return _computed(*question)
        except Exception as error:  # whatever the libraries raise
            raise (RefusedError if _refuses(error) else RuntimeError)(str(error)) from error
    data = pickle.dumps(question, pickle.HIGHEST_PROTOCOL)
    with guarded(), _LOCK:
        try:
            status, answer = _current().ask(COMPUTE, 0, data)
        except _DiedError as died:
            raise RuntimeError(f"its computation {died}") from None
    if status == DONE:
        results: list[Any] = pickle.loads(answer)
        return results
    text = answer.decode(errors="replace")
    raise RefusedError(text) if status == REFUSED else RuntimeError(text or "it needs too much memory")


def refusal(model: onnx.ModelProto, attempts: Sequence[Mapping[str, Any]]) -> str:
    """Why the host computes a model of none of several inputs; "" if it does of one, or if that cannot be told, for
    lack of time or memory. A crash is a reason, where each of the inputs has one.
    """
    if not FORKS:
        return _tried(model.SerializeToString(), attempts)
    with guarded(), _LOCK:
        reason, died = _asked_to_try(model, attempts)
        if died is None or died.slow:
            return "" if died else reason
        every = [_asked_to_try(model, [one]) for one in attempts]  # what came behind the crash has not been tried
        return reason if all(text and not (end and end.slow) for text, end in every) else ""


def _asked_to_try(model: onnx.ModelProto, attempts: Sequence[Mapping[str, Any]]) -> tuple[str, _DiedError | None]:
    """The child's refusal, or how it ended."""
    question = (model.SerializeToString(), [dict(inputs) for inputs in attempts])
    try:
        status, answer = _current().ask(TRY, 0, pickle.dumps(question, pickle.HIGHEST_PROTOCOL))
    except _DiedError as died:
        return f"its kernel {died}", died
    return (answer.decode(errors="replace") if status == DONE else ""), None


def native(node: "NativeNode", kinds: "tuple[Kind, ...]", operands: Sequence[Any] | None) -> Any:
    """The results of a node in onnxruntime, of operands of these kinds; without operands, whether there is a kernel.

    `native.NativeError` where the kernel refuses the operands, or ends its process; `native.NoKernelError`.
    """
    from .native import NativeError, NoKernelError  # only here: it imports this

    if not FORKS or _serving:
        return node.here(kinds, operands)
    with guarded(), _LOCK:
        child = _current()
        known = child.pid and node.key in child.nodes
        question = node.key, None if known else (node.node.SerializeToString(), node.version), kinds, operands
        try:
            status, answer = child.ask(RUN, 0, pickle.dumps(question, pickle.HIGHEST_PROTOCOL))
        except _DiedError as died:
            raise NativeError(f"its kernel {died}") from None
        child.nodes.add(node.key)
    if status == DONE:
        return pickle.loads(answer)
    text = answer.decode(errors="replace")
    if status in (NO_KERNEL, NO_KERNEL_FOR_ATTRIBUTES):
        raise NoKernelError(text, status == NO_KERNEL_FOR_ATTRIBUTES)
    raise NativeError(text or "it needs too much memory")


@contextmanager
def guarded() -> Iterator[None]:
    """One child for all calls in the block, if it does not stay anyway; a block within a block changes nothing."""
    with _LOCK:
        child = _current()
        child.users += 1
    try:
        yield
    finally:
        with _LOCK:
            child.users -= 1
            if not child.users and not child.stays:
                child.close()


def _asked(model: onnx.ModelProto, what: int, how: int, name: str, kind: type[Exception]) -> onnx.ModelProto:
    data = model.SerializeToString()
    with guarded(), _LOCK:
        try:
            status, answer = _current().ask(what, how, data)
        except _DiedError as died:
            raise CrashError("E3450", f"{_culprit(model, what, how)}onnx's {name} {died}") from None
    if status == MEMORY_ERROR:
        most = (MEMORY + PER_BYTE * len(data)) >> 20
        raise CrashError("E3451", f"onnx's {name} needs more than {most} MiB for it")
    if status == FAILED:
        raise kind(answer.decode(errors="replace"))
    found: onnx.ModelProto = onnx.ModelProto.FromString(answer)
    return found


def _culprit(model: onnx.ModelProto, what: int, how: int) -> str:
    """The first node with which inference ends its process, found by halving: "node 'x' (Op): "; "" if it is none."""
    if what != INFER or not model.graph.node:
        return ""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    del part.graph.output[:]
    good, bad, deadline = 0, len(model.graph.node), time.monotonic() + SECONDS
    while bad - good > 1 and time.monotonic() < deadline:
        middle = (good + bad) // 2
        del part.graph.node[:]
        part.graph.node.extend(model.graph.node[:middle])
        try:
            for _ in range(TRIES):
                _current().ask(what, how, part.SerializeToString())
            good = middle
        except _DiedError:
            bad = middle
    return f"{label(model.graph.node[bad - 1])}: " if bad - good == 1 else ""


class _Child:
    """The process, or none yet; `users` are the blocks of `guarded` that are open, `calls` how many it has served but
    for runs, `nodes` the keys of those that it has.
    """

    def __init__(self) -> None:
        self.users, self.pid, self.calls, self.nodes = 0, 0, 0, set[bytes]()
        self._large = False
        self._to = self._from = -1

    @property
    def stays(self) -> bool:
        """Whether it is there for more calls when nobody has asked for it to be."""
        return not self._large and self.calls < CALLS

    def ask(self, what: int, how: int, data: bytes) -> tuple[int, bytes]:
        """The status and bytes of an answer; `_DiedError` if there is none."""
        if not self.pid:
            self._start()
        self.calls += what != RUN
        budget = WAIT * (SECONDS + SECONDS_PER_MIB * len(data) / (1 << 20)) if what != RUN else None
        whole = False
        try:
            _send(self._to, HEAD.pack(what, how, len(data)) + data)
            deadline = None if budget is None else time.monotonic() + budget
            if not select.select([self._from], [], [], budget)[0]:
                raise _DiedError(f"takes more than {budget:.0f} seconds", slow=True)
            status, _, size = HEAD.unpack(_receive(self._from, HEAD.size, deadline))
            answer = _receive(self._from, size, deadline)
            whole = True
            return status, answer
        except (BrokenPipeError, EOFError):
            raise self._ending() from None
        finally:
            if not whole:  # an interrupt too: what comes next through the pipe is no answer to the next question
                self.close()

    def _ending(self) -> _DiedError:
        """How the process ended."""
        pid, self.pid = self.pid, 0
        _, status = os.waitpid(pid, 0)
        os.close(self._to)
        os.close(self._from)
        if not os.WIFSIGNALED(status):
            return _DiedError(f"ends its process with status {os.waitstatus_to_exitcode(status)}")
        number = os.WTERMSIG(status)
        if number == signal.SIGPROF:
            return _DiedError("takes too long", slow=True)
        return _DiedError(f"crashes ({signal.Signals(number).name})")

    def close(self) -> None:
        """End the process."""
        if self.pid:
            pid, self.pid = self.pid, 0
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(self._to)
            os.close(self._from)

    def forget(self) -> None:
        """Close the pipes of a process that is another's child."""
        if self.pid:
            self.pid = 0
            os.close(self._to)
            os.close(self._from)

    def _start(self) -> None:
        self.calls, self._large = 0, _memory()[1] > LARGE
        self.nodes.clear()
        requests, self._to = os.pipe()
        self._from, answers = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child runs nothing that they may hold
            self.pid = os.fork()
        if not self.pid:
            _serve(requests, answers)
        os.close(requests)
        os.close(answers)


_LOCK = threading.RLock()
_children: list[_Child] = []
_serving = False
"""Is this process such a child?"""


def _forked() -> None:
    """In a process that was forked, maybe while another thread was in here: the child is the parent's."""
    global _LOCK
    _LOCK = threading.RLock()
    for child in _children:
        child.forget()
    _children.clear()


if FORKS:
    os.register_at_fork(after_in_child=_forked)


def _current() -> _Child:
    """This process's child."""
    if not _children:
        _children.append(_Child())
    return _children[-1]


def _send(to: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(to, rest) :]


def _receive(source: int, size: int, deadline: float | None = None) -> bytes:
    """So many bytes; `EOFError` if they do not come."""
    data = bytearray()
    while len(data) < size:
        if deadline is not None and not select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise EOFError
        more = os.read(source, min(size - len(data), 1 << 20))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def _serve(requests: int, answers: int) -> NoReturn:
    """The child: answers until the pipe closes; nothing of the parent's is open here, and nothing of it runs."""
    import resource as limits  # not on Windows

    global _serving
    _serving = True
    try:
        for caught in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
            signal.signal(caught, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent answers it, and ends this process
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        low, high = sorted((requests, answers))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, min(limits.getrlimit(limits.RLIMIT_NOFILE)[0], 1 << 16))
        limits.setrlimit(limits.RLIMIT_CORE, (0, 0))
        (space, _), given = _memory(), limits.getrlimit(limits.RLIMIT_AS)
        while True:
            what, how, size = HEAD.unpack(_receive(requests, HEAD.size))
            data = _receive(requests, size)
            if what == RUN:
                limits.setrlimit(limits.RLIMIT_AS, given)
            elif space:
                _bound(limits.RLIMIT_AS, space + MEMORY + PER_BYTE * size)
            signal.setitimer(signal.ITIMER_PROF, 0 if what == RUN else SECONDS + SECONDS_PER_MIB * size / (1 << 20))
            status, answer = _answer(what, how, data)
            signal.setitimer(signal.ITIMER_PROF, 0)
            _send(answers, HEAD.pack(status, 0, len(answer)) + answer)
            del data, answer
    finally:
        os._exit(0)


def _answer(what: int, how: int, data: bytes) -> tuple[int, bytes]:
    try:
        if what == COMPUTE:
            answer = pickle.dumps(_computed(*pickle.loads(data)), pickle.HIGHEST_PROTOCOL)
        elif what == RUN:
            return _ran(*pickle.loads(data))
        elif what == TRY:
            answer = _tried(*pickle.loads(data)).encode(errors="replace")
        elif what == CONVERT:
            from onnx.onnx_cpp2py_export import version_converter as conversion

            answer = conversion.convert_version(data, how)
        else:
            from onnx.onnx_cpp2py_export import shape_inference as inference

            answer = inference.infer_shapes(data, bool(how & CHECKED), bool(how & STRICT), bool(how & VALUES))
    except MemoryError:
        return MEMORY_ERROR, b""
    except Exception as error:
        return REFUSED if _refuses(error) else FAILED, str(error).encode(errors="replace")
    return (MEMORY_ERROR, b"") if len(answer) > ANSWER + PER_BYTE * len(data) else (DONE, answer)


def _refuses(error: Exception) -> bool:
    """Is it the refusal of a kernel, which has what the node needs but for its operands?"""
    from .native import NativeError  # only here: it takes long to import

    return isinstance(error, NativeError)


_nodes: "dict[bytes, NativeNode]" = {}
"""Of a child: the nodes that it has been sent."""


def _ran(key: bytes, sent: tuple[bytes, int] | None, kinds: Any, operands: Sequence[Any] | None) -> tuple[int, bytes]:
    from .native import NativeNode, NoKernelError  # only here: it imports this

    if sent is not None:
        _nodes[key] = NativeNode(onnx.NodeProto.FromString(sent[0]), sent[1])
    try:
        return DONE, pickle.dumps(_nodes[key].here(kinds, operands), pickle.HIGHEST_PROTOCOL)
    except NoKernelError as error:
        return NO_KERNEL_FOR_ATTRIBUTES if error.attributes else NO_KERNEL, str(error).encode(errors="replace")


def _computed(node: bytes, opset: int, operands: Sequence[Any]) -> list[Any]:
    from .hostnodes import computed as on_the_host  # only here: it takes long to import

    return list(on_the_host(onnx.NodeProto.FromString(node), opset, operands))


def _tried(model: bytes, attempts: Sequence[Mapping[str, Any]]) -> str:
    from .hostrun import evaluate  # only here: it takes long to import

    proto, text = onnx.ModelProto.FromString(model), ""
    for inputs in attempts:
        try:
            evaluate(proto, inputs)
            return ""
        except OnnxhwError as error:
            if error.code not in IMPOSSIBLE:
                return ""
            text = error.what
    return text


def _memory() -> tuple[int, int]:
    """Bytes of this process's address space, and of memory; 0 where there is no /proc, and then no bound on it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            space, resident, *_ = file.read().split()
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(space) * page, int(resident) * page


def _bound(what: int, soft: int) -> None:
    """Set a soft limit, nowhere above the hard one."""
    import resource as limits

    _, hard = limits.getrlimit(what)
    limits.setrlimit(what, (soft if hard == limits.RLIM_INFINITY else min(soft, hard), hard))
