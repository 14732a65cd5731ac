"""What quantization costs: the signal-to-noise ratio of every layer, and the accuracy before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
import onnx

from ..errors import UsageError
from .calibrate import Samples
from .runner import Runner


@dataclass(frozen=True)
class Noise:
    """Energy of a float value and of its difference from the quantized one, summed over samples and finite elements."""

    signal: float
    noise: float

    @property
    def snr_db(self) -> float | None:
        """``10 log10(signal / noise)``; None without noise or without signal."""
        return 10 * (log10(self.signal) - log10(self.noise)) if self.noise > 0 and self.signal > 0 else None


@dataclass(frozen=True)
class Accuracy:
    """How many of `total` have their label as class, which is the first largest element of the first output.

    Of samples, or of the rows of samples that have several.
    """

    float_correct: int
    quantized_correct: int
    total: int

    @property
    def before(self) -> float:
        """Accuracy of the float model in percent."""
        return 100 * self.float_correct / self.total

    @property
    def after(self) -> float:
        """Accuracy of the quantized model in percent."""
        return 100 * self.quantized_correct / self.total


def noise(
    reference: onnx.ModelProto, quantized: onnx.ModelProto, names: Mapping[str, str], samples: Samples, where: str
) -> dict[str, Noise]:
    """The noise of each value of `reference` in `names`; `names` maps it to its counterpart in `quantized`.

    Elements that are infinite or NaN on one side do not count.
    """
    runners = Runner(reference, list(names), where), Runner(quantized, list(names.values()), where)
    signal, error = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for feeds in samples():
        wanted, found = (runner.run(feeds) for runner in runners)
        for name, other in names.items():
            finite = np.isfinite(wanted[name]) & np.isfinite(found[other])
            real = wanted[name][finite].astype(np.float64)
            signal[name] += float((real**2).sum())
            error[name] += float(((real - found[other][finite]) ** 2).sum())
    return {name: Noise(signal[name], error[name]) for name in names}


def accuracy(
    reference: onnx.ModelProto, quantized: onnx.ModelProto, samples: Samples, labels: Sequence[int], where: str
) -> Accuracy:
    """Top-1 of both models; `labels` has one class for each sample, or for each row of the first output in turn.

    `UsageError` E2607 for any other number of labels.
    """
    runners = Runner(reference, None, where), Runner(quantized, None, where)
    right, count = [0, 0], sum(1 for _ in samples())
    each = len(labels) // count
    for number, feeds in enumerate(samples()):
        wanted = np.array(labels[number * each : (number + 1) * each])
        for index, runner in enumerate(runners):
            found = runner.run(feeds)[runner.names[0]]
            if each * count != len(labels) or not each or found.size % each:
                what = f"{len(labels)} labels do not fit {count} samples with results of shape {list(found.shape)}"
                raise UsageError("E2607", what, where=where)
            right[index] += int((found.reshape(each, -1).argmax(axis=1) == wanted).sum())
    return Accuracy(right[0], right[1], len(labels))
