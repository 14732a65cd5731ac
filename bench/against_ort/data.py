"""Inputs for a model: from the .npz files of the reference models, or random."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from onnxhw.partition import load

Array = npt.NDArray[Any]


def load_data(path: Path, model: onnx.ModelProto) -> tuple[Array, Array]:
    """Float inputs ``[N, ...]`` in the model's layout and labels, from an .npz with x and y."""
    data = np.load(path)
    value = model.graph.input[0].type.tensor_type.shape.dim
    shape = tuple(dim.dim_value for dim in value)[1:]
    x: Array = data["x"]
    if x.ndim == 3:
        x = np.repeat(x[..., None], shape[0], -1)
    if x.shape[1:] != shape and x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    real = x.astype(np.float32)
    if "scale" in data:
        real = (real - np.float32(data["zero_point"])) * np.float32(data["scale"])
    elif shape[1:] == (96, 96):
        real = real / np.float32(255)
    labels = data["y"].astype(int) if "y" in data else np.zeros(len(x), int)
    return np.ascontiguousarray(real), labels


def inputs(model: onnx.ModelProto, data: Path | None, count: int, seed: int = 1) -> list[dict[str, Array]]:
    """Real inputs, or without data random ones that fill the first quantizer's range."""
    name = model.graph.input[0].name
    if data is not None:
        x, _ = load_data(data, model)
        return [{name: x[i : i + 1]} for i in range(min(count, len(x)))]
    graph = load(model.SerializeToString())
    rng, port = np.random.default_rng(seed), graph.inputs[0]
    tensor = graph.tensors[port.tensor]
    q = rng.integers(-128, 128, (count, *port.shape[1:]))
    return [{name: ((q[i : i + 1] - tensor.zero_point) * tensor.scale).astype(np.float32)} for i in range(count)]
