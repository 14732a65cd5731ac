"""CIFAR-10 images before a simulated camera: what a board without a host answers, from power-up on.

    python bench/camera.py                 100 images, ResNet-8 on ulx3s-85f
    python bench/camera.py --count 5 --json

A device with a camera (`onnxhw synth --standalone --input camera-ov7670`) is simulated at its pins: registers over
SCCB, XCLK, then frames of QVGA in RGB565 in which an image's pixel is a box of 7x7. The first frame comes at the rate
of the data sheet, with its pauses; the others with PCLK `FACTOR` times as fast and shorter pauses. Of every frame the
words that go to the core, all scores in its memory and the line of text are compared with the reference in numpy and
the golden model.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

from onnxhw import golden
from onnxhw.build.memory_contents import images
from onnxhw.compiler import compile
from onnxhw.engines.cxxrtl.camera_model import PAUSE, CameraModel, camera_libraries, frame_levels, memories_of
from onnxhw.isa.ov7670 import PCLK_DIVISION, SCCB_HZ
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program.camera import answer_of, frame_of, image_of, input_of, line_of, settings_of
from onnxhw.program.input_regions import input_stream
from onnxhw.rtl.sensors.device import xclk_half

SHARED = Path(__file__).resolve().parents[2] / "shared"
MODEL, DATA = SHARED / "models" / "ic_resnet8_int8_qdq.onnx", SHARED / "data" / "cifar10_test1000_jpeg_nhwc_u8.npz"
CLOCK, BAUD = 100_000_000, 3_000_000
FACTOR = 2
"""How much faster PCLK is than on a board, but for the first frame: then a level lasts two cycles, as few as may be."""
BLANKS = 0.02
"""What is left of the pauses then."""
LINE = 30
"""Characters of time for a line of text."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--preset", default="ulx3s-85f")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    with np.load(DATA) as data:
        pixels, labels = (data[name][: chosen.count] for name in data.files[:2])
    record = measure(pixels.transpose(0, 3, 1, 2), labels.astype(int), chosen.preset)
    if chosen.json:
        print(json.dumps(record, indent=2))
    else:
        for name, value in record.items():
            print(f"{name:24} {value}")
    return 0 if record["equal"] == chosen.count else 1


def measure(pixels: np.ndarray, labels: np.ndarray, name: str) -> dict[str, float | str]:
    """Show the images one after the other; what was found."""
    config = preset(name)
    program = compile(MODEL, config).only(str(MODEL))
    settings, graph = settings_of(program), load(MODEL)
    libraries = camera_libraries(config, clock_hz=CLOCK, baud=BAUD, sccb_hz=SCCB_HZ, progress=_tell)
    contents = images(program, memories_of(libraries.core), settings)
    source, scores = program.inputs[0].tensor, program.outputs[0].tensor
    level = xclk_half(CLOCK) * PCLK_DIVISION
    equal, right, first = 0, 0, {}
    begun = time.monotonic()
    with CameraModel(libraries, contents, settings, clock_hz=CLOCK, baud=BAUD) as camera:
        while not camera.configured:
            camera.run(100_000)
        first["configured_ms"] = 1e3 * camera.cycles / CLOCK
        camera.show(PAUSE, level)
        said = b""
        for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
            frame = frame_of(image, settings.crop)
            true = number == 0
            camera.show(frame_levels(frame, blanks=1.0 if true else BLANKS), level if true else level / FACTOR)
            camera.run(program.cycles + round(10 * LINE * CLOCK / BAUD))
            x = input_of(image_of(frame, settings.crop), settings)
            wanted = golden.run(graph, {source: x})[scores]
            answer, line = answer_of(wanted), line_of(answer_of(wanted))
            got = camera.place(program.tensors[scores], config.word)
            told, said = camera.text[len(said) :], camera.text
            same = np.array_equal(camera.words(), input_stream(program, {source: x}))
            equal += same and np.array_equal(got, wanted) and told == line
            right += answer[0] == label
            if true:
                first["first_answer_ms"] = 1e3 * camera.cycles / CLOCK
            _tell(f"{number + 1}: {told.decode().strip()}, label {label}")
        cycles = camera.cycles
    return {
        "model": MODEL.stem, "preset": name, "clock_mhz": CLOCK / 1e6, **first, "frames": len(labels),
        "true_rate_frames": 1, "factor": FACTOR, "equal": int(equal), "top1_percent": 100 * right / len(labels),
        "file_model_top1_percent": 100 * float(np.mean(by_file(pixels) == labels)),
        "cycles": cycles, "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


def by_file(pixels: np.ndarray) -> np.ndarray:
    """Classes that onnxruntime gives the images as they are."""
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.array([session.run(None, {name: one[None].astype(np.float32)})[0].argmax() for one in pixels])


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
