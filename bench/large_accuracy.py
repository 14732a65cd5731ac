"""How classifiers larger than the chip compare: the emulator with the golden model, and that with onnxruntime.

    python bench/large_accuracy.py                                   all classifiers of bench/networks, 50 inputs each
    python bench/large_accuracy.py squeezenet resnet18 --images 5
    python bench/large_accuracy.py mobilenetv2 --form qop --json

The models are those of `bench/large.py`, as onnxruntime's quantizer writes them, with random weights; inputs are normal
random numbers, as they were calibrated with. So no class is right or wrong, and classes lie closer together than those
of a trained network: "same_class" says how many inputs get the class that onnxruntime gives them, "ort_same_class" how
many get the same from onnxruntime without and with its optimiser. "differences": parts of tensors, of all inputs, that
the emulator makes otherwise than the golden model. "steps": the largest difference of an output to onnxruntime's
without its optimiser, in steps of the output's scale. "layers": operations of which the golden model makes an element
otherwise than onnxruntime from onnxruntime's own operands, of all that both have; "begins": the first of them in the
order of the graph; "share": of the elements of them all; "largest": their largest difference, in steps.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

import large
import networks
import numpy as np
import onnx
from against_ort import Layer, compare_layers, session

from onnxhw import golden, segments
from onnxhw.emu.emulator import Emulator
from onnxhw.partition import load
from onnxhw.presets import preset

CLASSIFIERS = ("mobilenetv1", "mobilenetv2", "mobilenetv3", "efficientnet-lite0", "squeezenet", "resnet18", "resnet50")
"""Of `networks.FULL`."""


@dataclass(frozen=True)
class Agreement:
    """One classifier's record; what the fields are, the module's docstring says."""

    network: str
    images: int
    differences: int
    same_class: int
    ort_same_class: int
    steps: int
    layers: str
    begins: str
    share: float
    largest: int


def agreement(name: str, model: onnx.ModelProto, images: int, layered: int, preset_name: str) -> Agreement:
    """Of a quantized model, over so many inputs; layers over the first `layered` of them."""
    graph = segments.sampled(load(model.SerializeToString()))
    _, plan, program, _ = large.measure(name, graph, preset(preset_name), segments.Techniques())
    emulator, runtimes = Emulator(program), [session(model, optimise) for optimise in (False, True)]
    (port,), (output,) = graph.inputs, graph.outputs
    scale = graph.tensors[output.tensor].scale
    rng, feeds = np.random.default_rng(1), []
    differences = same = ort_same = 0
    steps = 0.0
    for _ in range(images):
        feed = {port.name: rng.normal(0, 1, _shape(model)).astype(np.float32)}
        feeds.append(feed)
        inputs = golden.host.prepare(graph, feed)
        wanted = golden.run(graph, inputs)
        differences += large.differing(plan, program, emulator.run(inputs, trace=True), wanted)
        ours = golden.host.finish(graph, wanted)[output.name].ravel()
        off, on = (runtime.run([output.name], feed)[0].ravel() for runtime in runtimes)
        same, ort_same = same + int(ours.argmax() == off.argmax()), ort_same + int(off.argmax() == on.argmax())
        steps = max(steps, float(np.abs(ours - off).max()) / scale)
    rows = compare_layers(model, feeds[:layered])
    found = [row for row in rows if row.differ]
    elements = sum(row.elements for row in rows)
    return Agreement(
        name, images, differences, same, ort_same, round(steps), f"{len(found)} of {len(rows)}", _named(found),
        round(sum(row.differ for row in found) / elements, 9), max((row.largest for row in found), default=0),
    )  # fmt: skip


def _shape(model: onnx.ModelProto) -> list[int]:
    return [size.dim_value or 1 for size in model.graph.input[0].type.tensor_type.shape.dim]


def _named(found: list[Layer]) -> str:
    return f"{found[0].name} ({found[0].kind})" if found else ""


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(CLASSIFIERS)
    parser.add_argument("networks", nargs="*", default=names, metavar="NETWORK", help=", ".join(names))
    parser.add_argument("--form", choices=networks.FORMS, default="qdq")
    parser.add_argument("--preset", default="ulx3s-85f+sdram")
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--layers", type=int, default=2, metavar="N", help="compare layers on N of the inputs")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in args.networks:
        model = networks.quantized(networks.FULL[name](), args.form)
        record: dict[str, Any] = asdict(agreement(name, model, args.images, args.layers, args.preset))
        text = "  ".join(f"{key} {value}" for key, value in record.items())
        print(json.dumps(record) if args.json else text, flush=True)


if __name__ == "__main__":
    main()
