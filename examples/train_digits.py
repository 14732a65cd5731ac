"""Trains, quantizes and writes ``digits.onnx``: a small int8 CNN for scikit-learn's handwritten digits.

    python examples/train_digits.py

Writes ``digits.onnx`` and ``digits_test.npz`` (the held-out images and labels) beside this file. Plain
numpy: a forward and a backward pass per layer, Adam, then quantization of what was learned by the
smallest and largest activation over the training images. Takes about half a minute; deterministic on
one machine (another machine's BLAS may round differently, so the committed file is the reference).
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from onnxhw.qdq import Grid, QdqBuilder

HERE = Path(__file__).resolve().parent
EPOCHS, BATCH, RATE = 40, 32, 4e-3
HELD_OUT = 360
Array = npt.NDArray[np.float64]
Backward = Callable[[Array], Array]

LAYERS: dict[str, tuple[tuple[int, ...], int, int]] = {
    # name: weights [O, I / group, KH, KW], stride, group; all but the pointwise one pad by "same"
    "conv1": ((8, 1, 3, 3), 1, 1),
    "conv2": ((16, 8, 3, 3), 2, 1),
    "depthwise": ((16, 1, 3, 3), 1, 16),
    "pointwise": ((16, 16, 1, 1), 1, 1),
    "dense": ((10, 16, 2, 2), 1, 1),  # a Gemm over the flattened 16 x 2 x 2
}


def padding(name: str) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) of a layer; at stride 2 "same" padding is asymmetric."""
    if name in ("pointwise", "dense"):
        return (0, 0, 0, 0)
    return (0, 0, 1, 1) if LAYERS[name][1] == 2 else (1, 1, 1, 1)


def patches(x: Array, kernel: tuple[int, int], stride: int) -> Array:
    """Windows of a padded input: ``[N, C, OH, OW, KH, KW]``, a view."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))
    return windows[:, :, ::stride, ::stride]


class Network:
    """The float network, its gradients and its Adam state."""

    def __init__(self, seed: int) -> None:
        random = np.random.RandomState(seed)
        self.weights, self.biases = {}, {}
        for name, (shape, _, _) in LAYERS.items():
            self.weights[name] = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
            self.biases[name] = np.zeros(shape[0])
        self.weights["pointwise"] *= 0.5  # the residual branch starts small
        self.state = {key: (np.zeros_like(p), np.zeros_like(p)) for key, p in self.parameters().items()}
        self.gradients: dict[str, Array] = {}
        self.steps = 0
        self.ranges: dict[str, tuple[float, float]] = {}

    def parameters(self) -> dict[str, Array]:
        """All weights and biases by name."""
        return {f"w:{k}": v for k, v in self.weights.items()} | {f"b:{k}": v for k, v in self.biases.items()}

    def conv(self, name: str, x: Array, relu: bool) -> tuple[Array, Backward]:
        """A convolution (grouped: one channel per group), with its backward pass."""
        (_, _, *kernel), stride, group = LAYERS[name]
        top, left, bottom, right = padding(name)
        w = self.weights[name]
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        taps = patches(padded, (kernel[0], kernel[1]), stride)
        equation = (
            ("nchwij,cij->nchw", "nchw,nchwij->cij", "nchw,cij->nchwij")
            if group > 1
            else ("nchwij,ocij->nohw", "nohw,nchwij->ocij", "nohw,ocij->nchwij")
        )
        flat = w[:, 0] if group > 1 else w
        y = np.einsum(equation[0], taps, flat, optimize=True) + self.biases[name][:, None, None]
        if relu:
            y = np.maximum(y, 0)
        self.seen(name, y)

        def backward(gradient: Array) -> Array:
            if relu:
                gradient = gradient * (y > 0)
            self.gradients[f"w:{name}"] = np.einsum(equation[1], gradient, taps, optimize=True).reshape(w.shape)
            self.gradients[f"b:{name}"] = gradient.sum((0, 2, 3))
            per_tap = np.einsum(equation[2], gradient, flat, optimize=True)
            total = np.zeros_like(padded)
            height, width = gradient.shape[2:]
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    rows, columns = slice(i, i + stride * height, stride), slice(j, j + stride * width, stride)
                    total[:, :, rows, columns] += per_tap[..., i, j]
            return total[:, :, top : top + x.shape[2], left : left + x.shape[3]]

        return y, backward

    def max_pool(self, x: Array) -> tuple[Array, Backward]:
        """2 x 2 maximum, with its backward pass."""
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = windows.max((3, 5))
        mask = windows == y[:, :, :, None, :, None]
        mask = mask / mask.sum((3, 5), keepdims=True)
        return y, lambda gradient: (mask * gradient[:, :, :, None, :, None]).reshape(x.shape)

    def seen(self, name: str, y: Array) -> None:
        """Widen the range of an activation."""
        low, high = self.ranges.get(name, (0.0, 0.0))
        self.ranges[name] = (min(low, float(y.min())), max(high, float(y.max())))

    def forward(self, x: Array) -> tuple[Array, Callable[[Array], None]]:
        """Logits ``[N, 10]`` and the backward pass that fills `gradients`."""
        y1, back1 = self.conv("conv1", x, relu=True)
        y2, back2 = self.conv("conv2", y1, relu=True)
        y3, back3 = self.conv("depthwise", y2, relu=True)
        y4, back4 = self.conv("pointwise", y3, relu=False)
        total = np.maximum(y2 + y4, 0)
        self.seen("residual", total)
        pooled, back5 = self.max_pool(total)
        logits, back6 = self.conv("dense", pooled, relu=False)

        def backward(gradient: Array) -> None:
            down = back5(back6(gradient[:, :, None, None])) * (total > 0)
            back1(back2(down + back3(back4(down))))

        return logits[:, :, 0, 0], backward

    def learn(self, x: Array, labels: npt.NDArray[np.int64], rate: float) -> float:
        """One step of Adam on the cross entropy; the loss."""
        logits, backward = self.forward(x)
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(x))
        loss = -np.log(p[rows, labels] + 1e-12).mean()
        p[rows, labels] -= 1
        backward(p / len(x))
        self.steps += 1
        for key, parameter in self.parameters().items():
            mean, square = self.state[key]
            g = self.gradients[key]
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            scaled = (mean / (1 - 0.9**self.steps)) / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)
            parameter -= rate * scaled
        return float(loss)


def load() -> tuple[Array, npt.NDArray[np.int64], Array, npt.NDArray[np.int64]]:
    """Training images and labels, held-out images and labels; images are 0..16, ``[N, 1, 8, 8]``."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    images = data.images[:, None].astype(np.float64)
    x, x_test, y, y_test = train_test_split(images, data.target, test_size=HELD_OUT, random_state=0)
    return x, y.astype(np.int64), x_test, y_test.astype(np.int64)


def shifted(x: Array, random: np.random.RandomState) -> Array:
    """Each image moved sideways by at most one pixel, where digits have a margin: more training data for free."""
    moves = random.randint(-1, 2, len(x))
    return np.stack([np.roll(image, move, 2) for image, move in zip(x, moves, strict=True)])


def train(x: Array, labels: npt.NDArray[np.int64]) -> Network:
    """The trained network, with the ranges of its activations over the training images."""
    random = np.random.RandomState(1)
    network = Network(seed=7)
    for epoch in range(EPOCHS):
        order = random.permutation(len(x))
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        losses = []
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
            losses.append(network.learn(shifted(x[batch], random) / 16, labels[batch], rate))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:2d} of {EPOCHS}: loss {np.mean(losses):.4f}", file=sys.stderr)
    network.ranges.clear()
    network.forward(x / 16)
    return network


def quantized(network: Network) -> onnx.ModelProto:
    """The int8 QDQ model; its input is the raw image (0..16), so the division by 16 moves into conv1."""
    builder = QdqBuilder("digits")

    def grid(name: str) -> Grid:
        return Grid.covering(*network.ranges[name])

    def parameters(name: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        return network.weights[name].astype(np.float32), network.biases[name].astype(np.float32)

    x = builder.input("input", (1, 1, 8, 8), Grid.covering(0, 16))
    weights, bias = parameters("conv1")
    y = builder.conv("conv1", x, weights / np.float32(16), bias, grid("conv1"), pads=padding("conv1"))
    stem = builder.conv("conv2", y, *parameters("conv2"), grid("conv2"), strides=(2, 2), pads=padding("conv2"))
    y = builder.conv(
        "depthwise", stem, *parameters("depthwise"), grid("depthwise"), pads=padding("depthwise"), group=16
    )
    y = builder.conv("pointwise", y, *parameters("pointwise"), grid("pointwise"), relu=False)
    y = builder.add("residual", stem, y, grid("residual"), relu=True)
    y = builder.flatten("flatten", builder.max_pool("pool", y, 2))
    weights, bias = parameters("dense")
    y = builder.gemm("dense", y, weights.reshape(10, -1), bias, grid("dense"))
    builder.output(builder.softmax("softmax", y), "probabilities", (1, 10))
    return builder.model()


def main() -> None:
    """Train, measure, write."""
    x, labels, x_test, labels_test = load()
    network = train(x, labels)
    right = int((network.forward(x_test / 16)[0].argmax(1) == labels_test).sum())
    network.ranges.clear()
    network.forward(x / 16)
    onnx.save(quantized(network), HERE / "digits.onnx")
    np.savez_compressed(HERE / "digits_test.npz", input=x_test.astype(np.float32), label=labels_test)
    print(f"float accuracy on {HELD_OUT} held-out digits: {right} of {HELD_OUT} ({100 * right / HELD_OUT:.1f} %)")
    print(f"wrote {HERE / 'digits.onnx'} and {HERE / 'digits_test.npz'}")


if __name__ == "__main__":
    main()
