"""Sessions of onnxruntime whose results are comparable, and what its optimiser makes of a model."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx
import onnxruntime as ort


def session(model: onnx.ModelProto, optimise: bool, saved: Path | None = None) -> ort.InferenceSession:
    """An onnxruntime CPU session of one thread; `saved` gets the optimised graph.

    ``x64quantprecision`` keeps integer kernels from saturating on CPUs without VNNI.
    """
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    if saved is not None:
        options.optimized_model_filepath = str(saved)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def exposed(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with the given tensors as further outputs."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    have = {value.name for value in out.graph.output}
    out.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in have)
    return out


def fused_operators(model: onnx.ModelProto) -> list[str]:
    """The operators of onnxruntime's optimised graph: shows whether its integer kernels run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.onnx"
        session(model, True, path)
        return [node.op_type for node in onnx.load(path).graph.node]
