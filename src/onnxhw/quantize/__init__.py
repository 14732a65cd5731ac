"""From a float ONNX model and calibration samples to an int8 QDQ model.

prepare     check, opset 13 or later                       (prepare.py)
fold        batch normalizations into weights              (affine_folding.py)
plan        which values are quantized, on which grids     (plan.py)
calibrate   ranges of activations over the samples         (calibrate.py, ranges.py)
correct     biases                                         (bias_correction.py)
write       the QDQ model                                  (write.py)
evaluate    noise per layer, accuracy                      (evaluate.py, report.py, plot.py)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from ..errors import UnsupportedError, UsageError
from ..onnxfile.limits import DEFAULT, Limits
from .affine_folding import fold_normalizations
from .bias_correction import correct_biases
from .calibrate import METHODS, Samples, calibrate_grids
from .evaluate import Accuracy, accuracy, noise
from .floatgraph import FloatGraph
from .plan import QuantizationPlan, plan_grids, shares_grid
from .plot import plot_noise
from .prepare import Source, inputs_of, prepare_model
from .report import LayerReport, QuantizationReport
from .runner import Runner
from .write import float_model, qdq_model

__all__ = [
    "METHODS",
    "Accuracy",
    "LayerReport",
    "QuantizationReport",
    "Quantized",
    "Samples",
    "inputs_of",
    "plot_noise",
    "quantize",
]  # fmt: skip


@dataclass(frozen=True)
class Quantized:
    """The QDQ model and what it cost. The same inputs give the same bytes."""

    model: onnx.ModelProto
    report: QuantizationReport

    def bytes(self) -> bytes:
        """The model's file."""
        return bytes(self.model.SerializeToString(deterministic=True))


def quantize(
    source: Source,
    samples: Samples,
    *,
    method: str = "min-max",
    percentile: float = 99.99,
    bias_correction: bool = False,
    evaluation: Samples | None = None,
    labels: Sequence[int] | None = None,
    limits: Limits = DEFAULT,
    shapes: Mapping[str, int] | None = None,
) -> Quantized:
    """An int8 QDQ model of the float model `source`, calibrated with `samples`.

    Weights are symmetric per output channel, activations asymmetric per tensor, biases int32. `samples` iterates over
    feeds of one inference each; it is called several times. Noise is measured over `evaluation` (default: `samples`),
    accuracy too, if `labels` gives the class of each of its samples.

    `limits` and `shapes` are those of `onnxhw.partition.read`; symbolic dimensions stay symbolic in what is written.

    `UsageError` E2604 (a value is not finite), E2607 (options, labels), E2609 (no samples); `UnsupportedError`
    E4700 to E4703.
    """
    if method not in METHODS or not 50 < percentile <= 100:
        raise UsageError(
            "E2607",
            f"method {method!r} with percentile {percentile:g} is not possible",
            hint=f"methods: {', '.join(METHODS)}; a percentile is more than 50 and at most 100",
        )
    model, where = prepare_model(source, limits)
    graph = FloatGraph(model, where, limits, shapes)
    fold_normalizations(graph)
    chosen = plan_grids(graph)
    if not any(layer.weight is not None and layer.output in chosen.layers for layer in graph.layers):
        raise UnsupportedError(
            "E4700",
            "nothing to quantize: no Conv, Gemm or MatMul with constant float32 weights",
            where=where,
            hint="export the model in float32, with its weights as constants",
        )
    reference = float_model(graph)
    runner = Runner(reference, [name for names in chosen.sources.values() for name in names], where)
    grids = calibrate_grids(runner, samples, chosen, method, percentile)
    if bias_correction:
        correct_biases(graph, chosen, grids, samples)
    written = qdq_model(graph, chosen, grids)
    measured = evaluation if evaluation is not None else samples
    values = _results(graph, chosen)
    names = {value: written.names[value] for value in values.values()}
    outputs = {value.name: value.name for value in graph.outputs if graph.is_float(value.name)}
    found = noise(reference, written.model, {**names, **outputs}, measured, where)
    layers = []
    for layer in graph.layers:
        if layer.output in values:
            value = values[layer.output]
            grid = grids[chosen.group[value]]
            low, high = ((bound - grid.zero_point) * float(grid.scale) for bound in (-128, 127))
            layers.append(
                LayerReport(layer.label, layer.node.op_type, value, float(grid.scale), grid.zero_point, low, high,
                            found[value].snr_db)
            )  # fmt: skip
    report = QuantizationReport(
        method,
        sum(1 for _ in samples()),
        sum(1 for _ in measured()),
        evaluation is not None,
        tuple(layers),
        tuple(layer.label for layer in graph.layers if layer.output not in chosen.layers),
        {name: found[name].snr_db for name in outputs},
        None if labels is None else accuracy(model, written.model, measured, labels, where),
    )
    return Quantized(written.model, report)


def _results(graph: FloatGraph, plan: QuantizationPlan) -> dict[str, str]:
    """The quantized result of each layer that rounds, by the layer's output name."""
    return {
        layer.output: plan.result(layer)
        for layer in graph.layers
        if layer.output in plan.layers and layer.node.input[0] not in plan.fused and not shares_grid(layer)
    }
