"""`NativeNode`: one node in onnxruntime, node by node, so that results depend on no fusion and on no other node.

A session holds one node, without graph optimisation, with one thread. It is made when operands of these types first
come, and is shared by all nodes of the same operator, attributes and types.
"""

import pickle
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..onnxmodel.specification.com_microsoft import CONTRIB, defined, schemas
from ..onnxmodel.specification.signatures import canonical, signature
from ..onnxmodel.trailing_names import ALL_OR_ONE
from ..worker import TaskFailedError, WorkerDiedError, call_in_worker, worker_scope

CACHED = 1024
"""Sessions that are kept; one takes about 30 KB and half a millisecond to make."""
IR_VERSION = 8
"""Of the models of one node: the first with optional types; every onnxruntime that is asked for reads it."""
OLDEST = 7
"""The oldest default operator set of which onnxruntime promises kernels."""
NEVER = 1 << 31
"""Beyond the index of any output."""
ENDLESS = 1000
"""No operator set is that high: the end of a kernel that has none, which serves the version it begins with only."""
DOMAINS = ("", "ai.onnx.ml", CONTRIB)
"""Operator sets of which kernels are used. (The others of onnxruntime are its own layouts, which differ by machine.)"""
CONFINED = frozenset(["ai.onnx.ml", CONTRIB, ("", "TfIdfVectorizer")])
"""Domains, and operators, whose kernels run in the worker (`onnxhw.worker`): of operands and attributes that no text
allows some of them end the process. Of a million random nodes of the default domain no other one did.
"""
TENSORS = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("FLOAT", "DOUBLE", "FLOAT16", "BOOL", "STRING", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16",
                 "UINT32", "UINT64")
)  # fmt: skip
"""Element types that pass between numpy and onnxruntime."""
FOREIGN = re.compile(r"bfloat16|float8|float4|float6|int4|int2|complex|sparse|Opaque")
"""Types of results that do not."""
EXACT = ("session.x64quantprecision", "1")
"""What keeps onnxruntime from adding pairs of uint8 * int8 products in 16 bits, on processors without VNNI."""
NOISE = (
    (re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "), ""),
    (re.compile(r"Non-zero status code returned while running \S+ node\. Name:'[^']*' Status Message: "), ""),
    (re.compile(r"\S*/\S*\.(cc|h|hpp|cpp):\d+ "), ""),
    (re.compile(r"(\b[\w:]+ )?\S*onnxruntime::[^(\[]*\([^)]*\)( const)?( \[with [^\]]*\])?(::\S+)?"), ""),
    (re.compile(r"Exception during (.* was false\. (?=\S))?"), ""),
)
"""Of onnxruntime's messages: what is no reason, and paths of the machine that it was built on."""
Kind = int | bytes | None
"""What an operand is: the element type of a tensor, another type serialized, or None where it is left out."""

LACKING = re.compile(
    r"not support|only supports|IsPrimitiveDataType|IsDataType|type mismatch|linked to C type|Unexpected input data "
     "type",
    re.IGNORECASE,
)
"""Reasons of kernels that do not have what the text allows, where the operands are not to blame."""

MAKING = re.compile("Exception during initialization")
"""Where a kernel exists and is not made."""
STRICT = ("ai.onnx.ml",)
"""Where it is not made of attributes that contradict each other, of which onnx's reference computes something. Kernels
of the default domain refuse what their text allows: an even size of LRN, saturate of a Cast to float."""

_sessions: "OrderedDict[tuple[bytes, tuple[Kind, ...], bool], Any]" = OrderedDict()


EXHAUSTED = re.compile("bad_alloc|bad allocation|out of memory|failed to allocate", re.IGNORECASE)
"""Where memory is short, which may be otherwise the next time."""


class NativeError(ValueError):
    """onnxruntime cannot compute a node of these operands, or cannot begin to; the text is its reason."""


class NoKernelError(Exception):
    """onnxruntime has nothing for these types; the text is its reason. Never leaves this package.

    `attributes`: it has a kernel, which refuses the node for its attributes, whatever the operands.
    """

    def __init__(self, text: str, attributes: bool = False) -> None:
        super().__init__(text)
        self.attributes = attributes


class NativeNode:
    """A node that onnxruntime may compute."""

    def __init__(self, node: onnx.NodeProto, version: int) -> None:
        """Of a version of its operator set; `is_native` must be true."""
        self.inputs = [f"x{index}" if name else "" for index, name in enumerate(node.input)]
        plain = onnx.NodeProto(op_type=node.op_type, domain=canonical(node.domain), input=self.inputs)
        plain.attribute.extend(node.attribute)
        self.node, self.version = plain, native_version(plain.domain, plain.op_type, version) or 1
        written = _written(plain, self.version, any(node.output[1:]))
        plain.output.extend(f"y{index}" if name or index >= written else "" for index, name in enumerate(node.output))
        self.key = b"%d:" % self.version + plain.SerializeToString(deterministic=True)
        self.places = [index for index, name in enumerate(plain.output) if name]
        self.confined = plain.domain in CONFINED or (plain.domain, plain.op_type) in CONFINED

    def require(self, kinds: tuple[Kind, ...]) -> None:
        """`NoKernelError` if onnxruntime has no kernel for operands of these kinds, `NativeError` if it fails to make
        it for another reason, which is not remembered."""
        self._found(kinds, self.confined)

    def _found(self, kinds: tuple[Kind, ...], in_worker: bool) -> Any:
        """The session, or what stands for one that is `in_worker`, in the worker."""
        key = self.key, kinds, in_worker
        found = _sessions.get(key)
        if found is None:
            try:
                found = _run_in_worker(self, kinds, None) if in_worker else _session(self.node, self.version, kinds)
            except NoKernelError as error:
                found = error
            _sessions[key] = found
            while len(_sessions) > CACHED:
                _sessions.popitem(last=False)
        else:
            _sessions.move_to_end(key)
        if isinstance(found, NoKernelError):
            raise found
        return found

    def run(self, operands: Sequence[Any], declared: Sequence[onnx.TypeProto | None] = ()) -> tuple[Any, ...]:
        """The results, None where the node names none.

        `declared`: types of the operands where they are known; what is no tensor needs one. `NoKernelError` if
        onnxruntime has no kernel, `NativeError` if the kernel refuses the operands.
        """
        operands = [np.asarray(value) if isinstance(value, np.generic) else value for value in operands]
        types = [*declared, *[None] * (len(operands) - len(declared))]
        kinds = tuple(kind(value, given) for value, given in zip(operands, types, strict=True))
        if self.confined:
            self.require(kinds)
            found = _run_in_worker(self, kinds, operands)
        else:
            found = self.run_here(kinds, operands)
        results: list[Any] = [None] * len(self.node.output)
        for place, value in zip(self.places, found, strict=True):
            results[place] = value
        return tuple(results)

    def run_here(self, kinds: tuple[Kind, ...], operands: Sequence[Any] | None) -> Any:
        """The named results, computed in this process; without operands, only the kernel is made."""
        session = self._found(kinds, in_worker=False)
        if operands is None:
            return True
        feeds = {name: value for name, value in zip(self.inputs, operands, strict=True) if name}
        from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotThere

        try:
            return session.run(None, feeds)
        except NotThere as error:
            raise NoKernelError(reason(error)) from error
        except Exception as error:  # of a dozen classes
            raise NativeError(reason(error)) from error


def _run_in_worker(node: NativeNode, kinds: tuple[Kind, ...], operands: Sequence[Any] | None) -> Any:
    """What `NativeNode.run_here` gives, computed in the worker; `NativeError` too where the kernel ends its process."""
    proto = node.node.SerializeToString(), node.version
    try:
        with worker_scope():
            for sent in ([None, proto] if node.key in _sent else [proto]):
                question = pickle.dumps((node.key, sent, kinds, operands), pickle.HIGHEST_PROTOCOL)
                status, found = pickle.loads(call_in_worker(_run, question, bounded=False))
                if status != UNKNOWN:
                    break
    except WorkerDiedError as died:
        raise NativeError(f"its kernel {died}") from None
    except TaskFailedError as error:
        raise NativeError(str(error)) from None
    except MemoryError:
        raise NativeError("it needs too much memory") from None
    _sent.add(node.key)
    if status in (NO_KERNEL, NO_KERNEL_FOR_ATTRIBUTES):
        raise NoKernelError(found, status == NO_KERNEL_FOR_ATTRIBUTES)
    if status == REFUSED:
        raise NativeError(found)
    return found


def _written(node: onnx.NodeProto, version: int, several: bool) -> int:
    """From which output on a kernel writes every one, named or not: it crashes of empty names."""
    known = defined(node.op_type, node.domain, version)
    if known and known.outputs and known.outputs[-1].option == "variadic":
        return len(known.outputs) - 1
    return 1 if several and (node.domain, node.op_type) == ALL_OR_ONE else NEVER


DONE, REFUSED, NO_KERNEL, NO_KERNEL_FOR_ATTRIBUTES, UNKNOWN = range(5)
"""How a run in the worker ends; `UNKNOWN`: the worker has not been sent the node."""
_nodes: dict[bytes, NativeNode] = {}
"""Of a worker: the nodes that it has been sent."""
_sent: set[bytes] = set()
"""Of its parent: the keys of nodes that a worker has been sent."""


def _run(question: bytes) -> bytes:
    """Of a node of `NativeNode`: how its run ended, and results or why."""
    key, sent, kinds, operands = pickle.loads(question)
    if sent is not None:
        _nodes[key] = NativeNode(onnx.NodeProto.FromString(sent[0]), sent[1])
    answer: tuple[int, Any]
    try:
        answer = (DONE, _nodes[key].run_here(kinds, operands)) if key in _nodes else (UNKNOWN, None)
    except NoKernelError as error:
        answer = NO_KERNEL_FOR_ATTRIBUTES if error.attributes else NO_KERNEL, str(error)
    except NativeError as error:
        answer = REFUSED, str(error)
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def kind(value: Any, declared: onnx.TypeProto | None = None) -> Kind:
    """What an operand is; `NoKernelError` for what does not pass to onnxruntime."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return _element(value.dtype)
    if declared is not None and not declared.HasField("tensor_type"):
        return bytes(declared.SerializeToString(deterministic=True))
    if isinstance(value, list) and value and all(isinstance(one, np.ndarray | np.generic) for one in value):
        elements = {_element(one.dtype) for one in value}
        if len(elements) == 1:
            tensor = helper.make_tensor_type_proto(elements.pop(), None)
            return bytes(helper.make_sequence_type_proto(tensor).SerializeToString(deterministic=True))
    raise NoKernelError(f"a {type(value).__name__} of unknown type does not pass to onnxruntime")


def kind_of(name: str) -> Kind:
    """The kind of a tensor whose elements have this type (numpy's name); None for the empty name."""
    if not name:
        return None
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise NoKernelError(f"a tensor of {name} does not pass to onnxruntime") from error
    return _element(dtype)


def _element(dtype: np.dtype[Any]) -> int:
    try:
        element = _elements(dtype)
    except (KeyError, ValueError, TypeError):
        element = 0
    if element not in TENSORS:
        raise NoKernelError(f"a tensor of {dtype} does not pass to onnxruntime")
    return element


@cache
def _elements(dtype: np.dtype[Any]) -> int:
    return onnx.TensorProto.STRING if dtype.kind in "OU" else int(helper.np_dtype_to_tensor_dtype(dtype))


def _session(node: onnx.NodeProto, version: int, kinds: tuple[Kind, ...]) -> Any:
    import onnxruntime  # only here: it takes long to import

    inputs = [onnx.ValueInfoProto(name=name, type=_type(one)) for name, one in zip(node.input, kinds, strict=True)
              if name]  # fmt: skip
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    imports = [helper.make_opsetid(node.domain, version)]
    if node.domain:
        imports.append(helper.make_opsetid("", OLDEST_FUNCTIONS))
    graph = helper.make_graph([node], "node", inputs, outputs)
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # of a dozen classes
        text = reason(error) or type(error).__name__
        if not _lacks(error):
            raise NativeError(text) from error
        refuses = node.domain in STRICT and bool(MAKING.search(str(error))) and not LACKING.search(text)
        raise NoKernelError(text, refuses) from error
    for value in session.get_outputs():
        if FOREIGN.search(value.type):
            raise NoKernelError(f"a result of type {value.type} does not pass from onnxruntime")
    return session


def _lacks(error: Exception) -> bool:
    """Does onnxruntime refuse the node in making its session (no kernel, types that its schema or a body lacks,
    attributes that the kernel refuses), so that another implementation is right to compute it?

    It ends with NotImplemented, InvalidGraph, InvalidArgument or Fail, in older versions with RuntimeException while
    kernels are made. All else (memory, a broken installation) says nothing about the node.
    """
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    if EXHAUSTED.search(str(error)):
        return False
    refusals = native.NotImplemented, native.InvalidGraph, native.InvalidArgument, native.Fail
    making = isinstance(error, native.RuntimeException) and MAKING.search(str(error)) is not None
    return isinstance(error, refusals) or making


OLDEST_FUNCTIONS = 17
"""The default operator set for the bodies that onnxruntime has of operators of other domains."""


def _type(one: Kind) -> onnx.TypeProto:
    made: onnx.TypeProto = (
        onnx.TypeProto.FromString(one) if isinstance(one, bytes) else helper.make_tensor_type_proto(one or 0, None)
    )
    return made


def options() -> Any:
    """How sessions run: as the model says, in one thread, and silent."""
    import onnxruntime

    chosen = onnxruntime.SessionOptions()
    chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    chosen.intra_op_num_threads = chosen.inter_op_num_threads = 1
    chosen.use_deterministic_compute = True
    chosen.enable_cpu_mem_arena = False  # an arena for each node would keep what it once had
    chosen.enable_mem_pattern = False
    chosen.log_severity_level = 4  # what is refused our errors say
    chosen.add_session_config_entry(*EXACT)
    return chosen


def reason(error: Exception) -> str:
    """The text of one of onnxruntime's errors, on one line."""
    text = " ".join(str(error).split())
    for pattern, instead in NOISE:
        text = pattern.sub(instead, text)
    return " ".join(text.split())[:300]


@cache
def native_version(domain: str, op_type: str, version: int) -> int | None:
    """The version of the operator set under which onnxruntime is asked for an operator, or None if it is not.

    That in which the operator last changed, so that models of other versions share its sessions, but not below
    `OLDEST`: operators that differ there are ours.
    """
    if domain not in DOMAINS:
        return None
    if domain == CONTRIB:
        return 1 if op_type in schemas() else None
    known = signature(op_type, domain, version)
    if known is None or known.deprecated:
        return None
    if domain or known.since >= OLDEST:
        return known.since
    oldest = signature(op_type, domain, OLDEST)
    return OLDEST if oldest is not None and oldest.since == known.since else None


@cache
def _kernels() -> Mapping[tuple[str, str], tuple[tuple[int, int], ...]]:
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    found: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {}
    for one in native.get_all_opkernel_def():
        key = canonical(one.domain), one.op_name
        found[key] = (*found.get(key, ()), tuple(one.version_range))
    return found


@cache
def has_kernel(domain: str, op_type: str, version: int) -> bool:
    """Does onnxruntime have a kernel of the operator, for any types?"""
    known = native_version(domain, op_type, version)
    ranges = _kernels().get((domain, op_type), ()) if known is not None else ()
    return known is not None and any(
        low == known or (low <= known <= high and (high < ENDLESS or known == OLDEST)) for low, high in ranges
    )
