"""Names of onnxruntime's module that tell its version or prepare its libraries, and those that are refused."""

import sys
from typing import Any

from .providers import unsupported

CPU = "all arrays are in this process's memory: leave it out, or give the name 'cpu'"
COMPILE = "onnxhw compile MODEL -o DIR"
DEVICES = "onnxhw.get_available_providers()"
REFUSED = {
    **dict.fromkeys(
        ["OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtMemoryInfo", "OrtMemoryInfoDeviceType",
         "OrtMemType", "OrtAllocatorType", "OrtArenaCfg", "OrtSyncStream", "copy_tensors",
         "create_and_register_allocator", "create_and_register_allocator_v2"], CPU),
    **dict.fromkeys(
        ["OrtEpDevice", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
         "OrtExecutionProviderDevicePolicy", "get_ep_devices", "register_execution_provider_library",
         "unregister_execution_provider_library"], DEVICES),
    **dict.fromkeys(
        ["ModelCompiler", "ModelPackage", "ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions",
         "ModelPackageWriteMode", "OrtCompileApiFlags", "OrtEpContextData", "OrtEpContextDataBuffer"], COMPILE),
    **dict.fromkeys(["OrtSparseFormat", "SparseTensor"], "give dense arrays"),
    **dict.fromkeys(["AdapterFormat", "LoraAdapter"], "merge the adapter into the model's weights"),
    "OrtExternalInitializerInfo": "give the path of the model: its external data is read from beside it",
    "SessionIOBinding": "session.io_binding()",
    "print_debug_info": "onnxhw doctor",
    "set_default_logger_callback": "logging.getLogger('onnxhw')",
}  # fmt: skip
"""What else onnxruntime's module has, and what to do instead."""


class Refused:
    """A name of onnxruntime's that has no meaning here: E2591 where it is called, or something of it is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise unsupported(self.name, REFUSED[self.name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python asks for these of any object
        raise unsupported(f"{self.name}.{name}", REFUSED[self.name])


def get_version_string() -> str:
    """The version of this package."""
    return str(sys.modules["onnxhw"].__version__)  # an import of the package, which imports this, would be a circle


def get_build_info() -> str:
    """This package and its version: there is no build of native code."""
    return f"onnxhw {get_version_string()}"


def has_collective_ops() -> bool:
    """Always False."""
    return False


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Any = None) -> None:
    """Nothing: no libraries of a GPU are used."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Accepted; the number of threads changes no result."""
