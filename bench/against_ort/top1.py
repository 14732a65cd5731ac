"""`compare_top1`: the classes of whole runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from onnxhw import golden
from onnxhw.ir.graph import Graph
from onnxhw.partition import load

from .session import session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Top1:
    """Classes of golden and onnxruntime (optimisation off and on) on the same images; ties to the lower index."""

    images: int
    golden_correct: int
    ort_correct: int
    agree: int
    agree_optimised: int
    ort_agrees_with_itself: int


def compare_top1(model: onnx.ModelProto, x: Array, labels: Array) -> Top1:
    """Whole runs of a classifier of one input and one output."""
    graph = load(model.SerializeToString())
    output = graph.outputs[0].name
    ours = np.concatenate([found[output].reshape(len(found[output]), -1).argmax(1) for found in run_golden(graph, x)])
    theirs = []
    for optimise in (False, True):
        runtime, name = session(model, optimise), graph.inputs[0].name
        theirs.append(np.array([int(runtime.run([output], {name: x[i : i + 1]})[0].argmax()) for i in range(len(x))]))
    off, on = theirs
    return Top1(
        len(x),
        int((ours == labels).sum()),
        int((off == labels).sum()),
        int((ours == off).sum()),
        int((ours == on).sum()),
        int((off == on).sum()),
    )


def run_golden(graph: Graph, x: Array, batch: int = 50) -> Iterator[dict[str, Array]]:
    """Outputs of the golden model, batch by batch, for a model of one input."""
    name = graph.inputs[0].name
    for start in range(0, len(x), batch):
        tensors = golden.run(graph, golden.host.prepare(graph, {name: x[start : start + batch]}))
        yield golden.host.finish(graph, tensors)
