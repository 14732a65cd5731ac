"""onnxhw: from an ONNX file to a running FPGA accelerator, with open tools."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when onnxruntime is imported, which else writes to the home
# and the temporary folder what it would tell its maker about this machine

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of the command line
if TYPE_CHECKING:
    from .driver.device import Device
    from .ort_api import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtValue,
        RunOptions,
        SessionOptions,
        disable_telemetry_events,
        enable_telemetry_events,
        get_all_providers,
        get_available_providers,
        get_build_info,
        get_device,
        get_version_string,
        has_collective_ops,
        preload_dlls,
        set_default_logger_severity,
        set_default_logger_verbosity,
        set_global_thread_pool_sizes,
        set_seed,
    )
    from .runtime.session import InferenceSession

__version__ = "0.2.0"
__all__ = [
    "Device", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
    "ModelMetadata", "NodeArg", "OrtValue", "RunOptions", "SessionOptions", "__version__", "disable_telemetry_events",
    "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "has_collective_ops", "preload_dlls", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
]  # fmt: skip

_LAZY = {"Device": "onnxhw.driver.device", "InferenceSession": "onnxhw.runtime.session"}
"""Where public names live that are not in `onnxhw.ort_api`; all are imported when first used, so that `import onnxhw`
stays quick."""


def __getattr__(name: str) -> object:
    import importlib.util

    if name not in __all__:
        if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
            from .ort_api import REFUSED, Refused

            if name in REFUSED:
                return Refused(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY.get(name, "onnxhw.ort_api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
