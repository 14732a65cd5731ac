"""The names of onnxruntime's Python interface that scripts use beside `InferenceSession`, with the same meaning here.

A script written for onnxruntime runs with ``import onnxhw as ort`` instead of ``import onnxruntime as ort``. What only
tunes onnxruntime (threads, optimisation levels, arenas, log levels) is accepted and changes nothing; what would
change results or needs memory of another device is refused (`UsageError` E2591).
"""

from .methods import SessionMethods
from .module_names import (
    REFUSED,
    Refused,
    get_build_info,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_global_thread_pool_sizes,
)
from .options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    check_run_options,
    sizes_of,
)
from .providers import (
    CPU_PROVIDER,
    PROVIDER,
    MissingInputError,
    chosen_providers,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
    unsupported,
)
from .values import IOBinding, ModelMetadata, NodeArg, OrtValue, own, tensor_type, type_text

__all__ = [
    "CPU_PROVIDER", "PROVIDER", "REFUSED", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding",
    "MissingInputError", "ModelMetadata", "NodeArg", "OrtValue", "Refused", "RunOptions", "SessionMethods",
    "SessionOptions", "check_run_options", "chosen_providers", "disable_telemetry_events", "enable_telemetry_events",
    "get_all_providers", "get_available_providers", "get_build_info", "get_device", "get_version_string",
    "has_collective_ops", "own", "preload_dlls", "set_default_logger_severity", "set_default_logger_verbosity",
    "set_global_thread_pool_sizes", "set_seed", "sizes_of", "tensor_type", "type_text", "unsupported",
]  # fmt: skip
