"""onnx's backend interface: `prepare`, `run_model`, `run_node`, `supports_device`, `is_compatible`.

    import onnx, onnxhw.backend
    onnxhw.backend.prepare(onnx.load("model.onnx")).run([x])

The device CPU is the golden model for what has operations of the hardware, and the host for the rest. Any other is
what `InferenceSession` takes: "emulator", "cxxrtl", or a device's address ("auto", "serial:/dev/ttyUSB0", "emu:mini").
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .closeable import Closeable
from .driver.address import FORMS, parse
from .driver.device import Device
from .errors import OnnxhwError, UsageError
from .partition import refuse
from .runtime.executor_names import DEVICES
from .runtime.session import InferenceSession

DEVICE = "CPU"


class OnnxhwBackendRep(BackendRep, Closeable):
    """A prepared model. `where` says where it runs: "hardware", "host" or "mixed".

    Open dimensions of inputs take the sizes of the arrays that `run` gets; each set of sizes is placed once.
    """

    def __init__(self, model: onnx.ModelProto, device: str = DEVICE) -> None:
        self.model = model
        self._target: str | Device = _target(device)
        self._open = {
            (value.name, axis)
            for value in model.graph.input
            for axis, dim in enumerate(value.type.tensor_type.shape.dim)
            if not dim.HasField("dim_value")
        }
        self._placed: dict[tuple[tuple[str, int], ...], InferenceSession] = {}
        self.session = self._place({})

    @property
    def where(self) -> str:
        """Of the sizes of the last run."""
        model = self.session.model
        if model is None or not model.hardware:
            return "host"
        return "mixed" if model.host or model.golden else "hardware"

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs in order, also by name, from a sequence (or a single array) or a mapping of inputs."""
        feeds = bind(self.session, inputs)
        arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
        known = sorted((name, axis) for name, axis in self._open if name in arrays and axis < arrays[name].ndim)
        self.session = self._place({f"{name}:{axis}": arrays[name].shape[axis] for name, axis in known})
        values = self.session.run(None, feeds)
        names = [value.name for value in self.session.get_outputs()]
        outputs: tuple[Any, ...] = namedtupledict("Outputs", names)(*values)
        return outputs

    def close(self) -> None:
        """Release engines and device."""
        for session in reversed(self._placed.values()):
            session.close()

    def _place(self, sizes: dict[str, int]) -> InferenceSession:
        key = tuple(sorted(sizes.items()))
        if key not in self._placed:
            session = InferenceSession(self.model, device=self._target, shapes=sizes)
            self._target = session.target  # a device is opened once, by the first session
            self._placed[key] = session
            if session.model is not None:
                refuse(session.model)
        return self._placed[key]


def bind(session: InferenceSession, inputs: Any) -> dict[str, Any]:
    """The inputs by name; `UsageError` E2711 if they are neither all inputs nor all without a default."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    given: Sequence[Any] = inputs if isinstance(inputs, Sequence) else [inputs]
    required = [value.name for value in session.get_inputs()]
    every = [value.name for value in session.program.inputs]
    if len(given) not in (len(every), len(required)):
        raise UsageError("E2711", f"{len(given)} inputs given, the model has {len(required)}: {', '.join(required)}")
    return dict(zip(required if len(given) == len(required) else every, given, strict=True))


class OnnxhwBackend(Backend):
    """The interface as a class, as onnx's own test runner wants it; the module's functions are its methods."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = DEVICE, **_: Any) -> bool:
        """Whether `prepare` succeeds."""
        try:
            cls.prepare(model, device).close()
        except OnnxhwError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = DEVICE, **_: Any) -> OnnxhwBackendRep:
        """The model, checked and placed; `UsageError` E2710 for no such device; the errors of `InferenceSession`."""
        if not cls.supports_device(device):
            hint = f"devices: {DEVICE}, {', '.join(DEVICES[1:])}; {FORMS}"
            raise UsageError("E2710", f"no device named {device!r}", hint=hint)
        return OnnxhwBackendRep(model, device)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = DEVICE, **kwargs: Any) -> tuple[Any, ...]:
        """`prepare` and `run` at once."""
        with cls.prepare(model, device, **kwargs) as prepared:
            return prepared.run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = DEVICE, outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """One node on the given inputs, in the newest operator set or `opset_version`."""
        names = [name for name in node.input if name]
        given = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
        values = [np.asarray(value) for value in given]
        types = [onnx.helper.np_dtype_to_tensor_dtype(value.dtype) for value in values]
        graph = onnx.helper.make_graph(
            [node],
            node.op_type,
            [
                onnx.helper.make_tensor_value_info(name, element, value.shape)
                for name, element, value in zip(names, types, values, strict=True)
            ],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        newest = onnx.defs.onnx_opset_version() if node.domain in ("", "ai.onnx") else 1
        opset = onnx.helper.make_opsetid(node.domain, kwargs.pop("opset_version", newest))
        model = onnx.helper.make_model_gen_version(graph, opset_imports=[opset])
        return cls.run_model(onnx.shape_inference.infer_shapes(model), dict(zip(names, values, strict=True)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """CPU, with or without a number, an engine, or the form of an address (`prepare` asks whether it answers)."""
        if device in DEVICES or device.partition(":")[0] == DEVICE:
            return True
        try:
            parse(device)
        except UsageError:
            return False
        return True


def _target(device: str) -> str:
    """What `InferenceSession` calls it."""
    return "golden" if device.partition(":")[0] == DEVICE else device


is_compatible = OnnxhwBackend.is_compatible
prepare = OnnxhwBackend.prepare
run_model = OnnxhwBackend.run_model
run_node = OnnxhwBackend.run_node
supports_device = OnnxhwBackend.supports_device
