"""`compare_layers`: each operation fed with onnxruntime's own operands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from onnxhw import fixed, golden
from onnxhw.ir.graph import Conv, Graph
from onnxhw.partition import load

from .kernel import Kernel
from .session import exposed, session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """Elements of one operation's results that differ from onnxruntime's, given onnxruntime's operands.

    `differ`, `largest` (the largest difference): from the whole model; `kernel_differ`: from the integer kernel, None
    where there is none.
    """

    name: str
    kind: str
    elements: int
    differ: int
    largest: int
    kernel: str
    kernel_differ: int | None


def compare_layers(model: onnx.ModelProto, feeds: Sequence[Mapping[str, Array]], optimise: bool = True) -> list[Layer]:
    """One record per IR operation whose tensors onnxruntime has too, over all feeds."""
    graph = load(model.SerializeToString())
    made = {name for node in model.graph.node for name in node.output}
    names = [name for name in graph.tensors if name in made]
    runtime = session(exposed(model, names), optimise)
    kernels = {op.name: Kernel.of(model, op.nodes[0]) for op in graph.ops if isinstance(op, Conv)}
    found: dict[str, Layer] = {}
    for feed in feeds:
        theirs = dict(zip(names, runtime.run(names, dict(feed)), strict=True))
        tensors = {name: as_tensor(graph, name, value) for name, value in theirs.items()}
        for op in graph.ops:
            if op.output not in tensors or any(name not in tensors for name in op.inputs):
                continue
            ours = golden.evaluate(graph, op, tensors)
            gap = np.abs(ours.astype(int) - tensors[op.output])
            old = found.get(op.name, Layer(op.name, type(op).__name__, 0, 0, 0, "", None))
            kernel = kernels.get(op.name)
            wrong = old.kernel_differ
            if kernel is not None:
                wrong = (wrong or 0) + int((kernel.run(theirs[op.inputs[0]]).ravel() != ours.ravel()).sum())
            found[op.name] = Layer(
                op.name,
                old.kind,
                old.elements + gap.size,
                old.differ + int((gap > 0).sum()),
                max(old.largest, int(gap.max())),
                kernel.op_type if kernel else "",
                wrong,
            )
    return list(found.values())


def as_tensor(graph: Graph, name: str, value: Array) -> npt.NDArray[np.int8]:
    """An onnxruntime tensor in the IR's form; what a MaxPool between DQ and Q gives is real, and lies on the grid."""
    tensor = graph.tensors[name]
    if value.dtype == np.float32:
        return fixed.quantize(value, np.float32(tensor.scale), tensor.zero_point).astype(np.int8).reshape(tensor.shape)
    signed = value if value.dtype == np.int8 else (value.astype(np.int16) - 128).astype(np.int8)
    return signed.reshape(tensor.shape)
