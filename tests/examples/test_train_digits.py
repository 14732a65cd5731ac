"""The example network's training code, in small, and the demo's drawing."""

import demo
import numpy as np
import pytest
import train_digits


def test_gradients_are_those_of_the_loss():
    network = train_digits.Network(seed=3)
    random = np.random.RandomState(0)
    x, labels = random.uniform(0, 1, (4, 1, 8, 8)), np.array([1, 5, 0, 9])
    for bias in network.biases.values():
        bias += random.uniform(-0.1, 0.1, bias.shape)  # away from the corners of Relu and the maximum

    def loss():
        logits, _ = network.forward(x)
        logits = logits - logits.max(1, keepdims=True)
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(4), labels]).mean())

    before = {name: parameter.copy() for name, parameter in network.parameters().items()}
    network.learn(x, labels, rate=0.0)
    assert all(np.array_equal(before[name], parameter) for name, parameter in network.parameters().items())
    for name, parameter in network.parameters().items():
        for _ in range(4):
            at = tuple(random.randint(0, size) for size in parameter.shape)
            kept, step = parameter[at], 1e-6
            parameter[at] = kept + step
            up = loss()
            parameter[at] = kept - step
            down = loss()
            parameter[at] = kept
            assert network.gradients[name][at] == pytest.approx((up - down) / (2 * step), abs=1e-5), (name, at)


def test_the_held_out_file_has_the_held_out_digits(digits_test):
    _, _, x, labels = pytest.importorskip("sklearn") and train_digits.load()
    with np.load(digits_test) as data:
        assert np.array_equal(data["input"], x.astype(np.float32))
        assert np.array_equal(data["label"], labels)


def test_a_drawing_has_a_caption_per_image():
    images = np.zeros((2, 1, 8, 8), np.float32)
    images[1] = 16
    lines = demo.drawing(images, ["one", "two"]).splitlines()
    assert len(lines) == 9
    assert lines[0] == "   " + " " * 16 + "  " + "@" * 16
    assert lines[8].split() == ["one", "two"]
