"""The names of onnxruntime's Python interface that scripts use beside `InferenceSession`, with the same meaning here.

A script written for onnxruntime runs with ``import onnxhw as ort`` instead of ``import onnxruntime as ort``. What only
tunes onnxruntime (threads, optimisation levels, arenas, log levels) is accepted and changes nothing; what would
change results or needs memory of another device is refused.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UsageError

PROVIDER = "OnnxhwExecutionProvider"
"""What runs the hardware's operations: a device, the RTL, or the integers of the golden model."""
CPU_PROVIDER = "CPUExecutionProvider"
"""What runs the host's nodes."""
ONNX_TYPES = {
    "float16": "float16", "float32": "float", "float64": "double", "bfloat16": "bfloat16", "bool": "bool",
    "object": "string", "str": "string", "complex64": "complex64", "complex128": "complex128",
    "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz", "float4_e2m1fn": "float4e2m1",
}  # fmt: skip
"""ONNX names of numpy's (and ml_dtypes') element types, where they differ or are no integers."""


class GraphOptimizationLevel(Enum):
    """onnxruntime's levels; they change nothing here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """onnxruntime's modes; they change nothing here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """onnxruntime's orders; they change nothing here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass
class SessionOptions:
    """Options of a session, by onnxruntime's names and with its defaults.

    Sizes given by `add_free_dimension_override_by_name` are used. Threads, levels, memory and logging change nothing.
    `UsageError` E2591 for a profile, an optimised model to be written, and custom operators.
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
    execution_order: Any = ExecutionOrder.DEFAULT
    graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    sizes: dict[str, int] = field(default_factory=dict)
    """Dimensions by symbol, from `add_free_dimension_override_by_name`."""
    entries: dict[str, str] = field(default_factory=dict)
    """What `add_session_config_entry` was given."""

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """The size of a dynamic dimension."""
        self.sizes[dim_name] = int(dim_value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Note a setting; it changes nothing."""
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A setting that was noted; `UsageError` E2592 if there is none."""
        if key not in self.entries:
            raise UsageError("E2592", f"there is no session configuration entry {key!r}")
        return self.entries[key]

    def register_custom_ops_library(self, path: str) -> None:
        """`UsageError` E2591: code from a library would not be what the golden model computes."""
        raise unsupported("a library of custom operators", "write the operator as a function of the model")


@dataclass
class RunOptions:
    """Options of a run, by onnxruntime's names; they change nothing."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    entries: dict[str, str] = field(default_factory=dict)
    """What `add_run_config_entry` was given."""

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Note a setting; it changes nothing."""
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """A setting that was noted; `UsageError` E2592 if there is none."""
        if key not in self.entries:
            raise UsageError("E2592", f"there is no run configuration entry {key!r}")
        return self.entries[key]


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model.

    `shape`: a dimension is a number, a symbol, or None (not known); empty where the rank is not known. `type`: as ONNX
    writes it, ``tensor(float)``; `dtype`: numpy's name of the element type, "" for what is no tensor.
    """

    name: str
    type: str
    shape: list[int | str | None]
    dtype: str = ""


def tensor_type(dtype: str) -> str:
    """The ONNX type of a tensor from numpy's name of its element type; "" for what is no tensor."""
    return f"tensor({ONNX_TYPES.get(dtype, dtype)})" if dtype else ""


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself, by onnxruntime's names."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class OrtValue:
    """A value in this process's memory: an array, a sequence (list) or a map (dict)."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: npt.NDArray[Any], device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """From an array; `UsageError` E2591 for a device other than "cpu"."""
        _only_cpu(device_type)
        return OrtValue(np.asarray(numpy_obj))

    def numpy(self) -> Any:
        """The array."""
        return self._value

    def shape(self) -> list[int]:
        """The array's shape."""
        return list(np.shape(self._value))

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Whether it is an array."""
        return isinstance(self._value, np.ndarray)

    def has_value(self) -> bool:
        """Whether it is not an empty optional."""
        return self._value is not None


class IOBinding:
    """Inputs and outputs by name, for `InferenceSession.run_with_iobinding`; all in this process's memory.

    Pointers and devices are refused with `UsageError` E2591.
    """

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.wanted: list[str] = []
        self.results: list[Any] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: npt.NDArray[Any]) -> None:
        """The array of an input."""
        self.inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """The value of an input."""
        self.inputs[name] = ortvalue.numpy()

    def bind_input(self, *_: Any, **__: Any) -> None:
        """`UsageError` E2591: an input by its address in memory."""
        raise unsupported("an input by its address in memory", "bind_cpu_input(name, array)")

    def bind_output(
        self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Any = None,
        buffer_ptr: int | None = None,
    ) -> None:  # fmt: skip
        """An output that is wanted; `UsageError` E2591 for another device, or for memory to write it into."""
        _only_cpu(device_type)
        if buffer_ptr is not None:
            raise unsupported("an output by its address in memory", "copy_outputs_to_cpu()")
        self.wanted.append(name)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """`UsageError` E2591: an output into a value that exists."""
        raise unsupported("an output into a value that exists", "bind_output(name) and copy_outputs_to_cpu()")

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self.results)

    def get_outputs(self) -> list[OrtValue]:
        """The same as values."""
        return [OrtValue(result) for result in self.results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self.wanted.clear()
        self.results.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: all is in this process's memory."""

    synchronize_outputs = synchronize_inputs


def sizes_of(options: Any) -> dict[str, int]:
    """The sizes of dimensions that session options give.

    Options may be ours, onnxruntime's own (whose overrides cannot be read back, so their names are unknown), or None.
    `UsageError` E2590 for something else, as a device given in their place; E2591 for options that ask for files.
    """
    if options is None:
        return {}
    if not hasattr(options, "graph_optimization_level"):
        what = f"sess_options must be SessionOptions, not {type(options).__name__}"
        raise UsageError("E2590", what, hint="a device is given by name: InferenceSession(model, device=...)")
    if options.enable_profiling:
        raise unsupported("enable_profiling", "InferenceSession.profile() gives the cycles of each layer")
    if options.optimized_model_filepath:
        raise unsupported("optimized_model_filepath", "onnxhw compile writes what is made of a model")
    return dict(options.sizes) if isinstance(options, SessionOptions) else {}


def chosen_providers(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> None:
    """Check what a script asks for as onnxruntime does: providers that are not there give a warning.

    `UsageError` E2590: another number of options than of providers, something that is no name, or options for the
    hardware, which are parameters of the session.
    """
    asked = list(providers or [])
    if options is not None and len(options) != len(asked):
        raise UsageError("E2590", f"{len(options)} provider_options for {len(asked)} providers")
    pairs = [(one, {}) if isinstance(one, str) else one for one in asked]
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise UsageError("E2590", "a provider must be a name, or a pair of a name and options", hint=PROVIDER)
    for (name, inline), given in zip(pairs, options or [{}] * len(pairs), strict=True):
        if name == PROVIDER and (inline or given):
            what = f"{PROVIDER} has no options"
            raise UsageError("E2590", what, hint="InferenceSession(model, device=..., config=..., board=...)")
        if name not in get_available_providers():
            warnings.warn(
                f"provider {name!r} is not available here; available: {', '.join(get_available_providers())}",
                stacklevel=4,
            )


def get_available_providers() -> list[str]:
    """The providers that `InferenceSession` knows."""
    return [PROVIDER, CPU_PROVIDER]


get_all_providers = get_available_providers


def get_device() -> str:
    """Where results lie: always "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted; this package has no logger of its own."""


def _only_cpu(device: str) -> None:
    if device != "cpu":
        raise unsupported(f"memory of device {device!r}", "use 'cpu'")


def unsupported(what: str, hint: str) -> UsageError:
    """E2591 for a part of onnxruntime's interface that has no meaning here."""
    return UsageError("E2591", f"{what} is not supported", hint=hint)
