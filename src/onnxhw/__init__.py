"""onnxhw: from an ONNX file to a running FPGA accelerator, with open tools."""

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of the command line
if TYPE_CHECKING:
    from .host.device import Device
    from .session import InferenceSession

__version__ = "0.1.0"
__all__ = ["Device", "InferenceSession", "__version__"]

_LAZY = {"Device": "onnxhw.host.device", "InferenceSession": "onnxhw.session"}
"""Public names and where they live; imported when first used, so that `import onnxhw` stays quick."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
