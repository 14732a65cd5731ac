"""Handwritten digits on a device, live: the input, a bar per class, and where the cycles went, layer by layer.

    python examples/live_digits.py                                     a simulated board in this process
    python examples/live_digits.py --device serial:/dev/ttyUSB0        a board
    python examples/live_digits.py --device emu:mini --count 20 --png digits.png
    python examples/live_digits.py --device auto --webcam              dark ink on light paper, in the picture's middle

The program is compiled for what the device says it is. Every result is compared with the golden model unless
``--no-check`` is given. The images are those that the network was not trained on, or come from a webcam (which
needs OpenCV: ``pip install opencv-python``); ``--png`` needs matplotlib (``pip install 'onnxhw[plot]'``).
"""

import argparse
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxhw import golden
from onnxhw.compiler import compile_graph
from onnxhw.driver.device import Device
from onnxhw.errors import OnnxhwError
from onnxhw.golden import host
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.report.profile import profile

HERE = Path(__file__).resolve().parent
MODEL, DATA = HERE / "digits.onnx", HERE / "digits_test.npz"
SHADES = " .:-=+*#%@"
"""Grey values as characters, dark to bright."""
WIDTH = 30
"""Characters of the longest bar."""

Image = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Seen:
    """One image and what the device makes of it. `image` is 8 x 8, 0 to 16; `label` is None if nobody knows it."""

    image: Image
    scores: npt.NDArray[np.float32]
    label: int | None
    equal: bool | None

    @property
    def digit(self) -> int:
        """The class with the highest score."""
        return int(self.scores.argmax())


class Live:
    """The network on an open device. `layers`: name and cycles of each; they are exact and add up to the run."""

    def __init__(self, device: Device, model: Path = MODEL, *, check: bool = True) -> None:
        info = device.info
        if info.config is None:
            sys.exit("the board was built from a configuration that this release cannot read")
        self.device, self.check = device, check
        self.graph = load(model)
        self.program = device.load(compile_graph(self.graph, info.config))
        self.layers = [(layer.name, layer.cycles) for layer in profile(self.program).layers]
        self.clock_hz = info.clock_hz

    def look(self, image: Image, label: int | None = None) -> Seen:
        """One inference."""
        feeds = {self.graph.inputs[0].name: image.reshape(1, 1, 8, 8).astype(np.float32)}
        tensors = host.prepare(self.graph, feeds)
        result = self.device.run_int8(tensors)
        equal = None
        if self.check:
            wanted = golden.run(self.graph, tensors)
            equal = all(np.array_equal(values, wanted[name]) for name, values in result.outputs.items())
        scores = host.finish(self.graph, result.outputs)[self.graph.outputs[0].name]
        return Seen(image.reshape(8, 8), np.asarray(scores, np.float32).reshape(-1), label, equal)

    def microseconds(self, cycles: int) -> float:
        """Time of so many cycles at the device's clock."""
        return 1e6 * cycles / self.clock_hz


def panel(live: Live, seen: Seen) -> str:
    """Image, classes and layers side by side, as text."""
    image = ["".join(2 * SHADES[int(v / 16 * (len(SHADES) - 1))] for v in row) for row in seen.image]
    classes = [
        f"{digit} {'#' * round(float(score) * WIDTH):<{WIDTH}} {100 * score:5.1f} %"
        for digit, score in enumerate(seen.scores)
    ]
    longest = max(cycles for _, cycles in live.layers)
    layers = [
        f"{name[:14]:14} {'=' * round(cycles / longest * WIDTH / 2):<{WIDTH // 2}} {live.microseconds(cycles):7.1f} us"
        for name, cycles in live.layers
    ]
    total = f"{live.program.cycles:,} cycles, {live.microseconds(live.program.cycles):,.0f} us"
    columns = [["input", *image], [verdict(seen), *classes], [total, *layers]]
    height = max(len(column) for column in columns)
    widths = [max(len(line) for line in column) for column in columns]
    padded = [[line.ljust(width) for line in [*column, *[""] * height][:height]]
              for column, width in zip(columns, widths, strict=True)]  # fmt: skip
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def verdict(seen: Seen) -> str:
    """What the device says, in words."""
    label = "" if seen.label is None else f" (it is {seen.label})"
    check = {None: "", True: ", equal to the golden model", False: ", DIFFERS from the golden model"}[seen.equal]
    return f"digit {seen.digit}{label}{check}"


def figure(live: Live, *seen: Seen) -> Any:
    """The same as a matplotlib figure, a row for each result."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 3.2 * len(seen)), layout="constrained")
    rows = drawn.subplots(len(seen), 3, width_ratios=(1, 1.3, 1.6), squeeze=False)
    names, times = zip(*((name, live.microseconds(cycles)) for name, cycles in live.layers), strict=True)
    for (left, middle, right), one in zip(rows, seen, strict=True):
        left.imshow(one.image, cmap="gray", vmin=0, vmax=16)
        left.set_title("input")
        left.set_axis_off()
        middle.barh(range(len(one.scores)), one.scores, color=["C0" if i != one.digit else "C1" for i in range(10)])
        middle.set_yticks(range(len(one.scores)))
        middle.set_xlim(0, 1)
        middle.invert_yaxis()
        middle.set_title(verdict(one), fontsize=9)
        right.barh(range(len(names)), times, color="C2")
        right.set_yticks(range(len(names)), names, fontsize=7)
        right.invert_yaxis()
        right.set_title(f"{live.program.cycles:,} cycles; microseconds per layer", fontsize=9)
    return drawn


@dataclass(frozen=True)
class Picture:
    """A figure that a notebook shows: Jupyter asks a cell's last value for its picture."""

    figure: Any

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=80)
        return out.getvalue()


def held_out(count: int) -> Iterator[tuple[Image, int | None]]:
    """Images that the network was not trained on, with their labels."""
    with np.load(DATA) as data:
        images, labels = data["input"], data["label"]
    for image, label in zip(images[:count], labels[:count], strict=True):
        yield image, int(label)


def webcam(number: int, count: int) -> Iterator[tuple[Image, int | None]]:
    """The middle of a webcam's pictures: dark ink on light paper becomes 8 x 8 values 0 to 16."""
    try:
        import cv2
    except ImportError:
        sys.exit("a webcam needs OpenCV: pip install opencv-python")
    camera = cv2.VideoCapture(number)
    try:
        for _ in range(count):
            read, frame = camera.read()
            if not read:
                sys.exit(f"webcam {number} gives no picture")
            yield ink(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)), None
    finally:
        camera.release()


def ink(grey: npt.NDArray[np.uint8]) -> Image:
    """The middle square of a grey picture as 8 x 8 values: paper 0, the darkest ink 16."""
    side = min(grey.shape) // 2 // 8 * 8
    top, left = (grey.shape[0] - side) // 2, (grey.shape[1] - side) // 2
    square = grey[top : top + side, left : left + side].astype(np.float32)
    dark = np.clip(np.median(square) - square - 20, 0, None)
    cells = dark.reshape(8, side // 8, 8, side // 8).mean((1, 3))
    return np.round(16 * cells / max(float(cells.max()), 1.0)).astype(np.float32)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="sim:mini", help="where the device is (default: %(default)s)")
    parser.add_argument("--count", type=int, default=5, help="how many images (default: %(default)s)")
    parser.add_argument("--webcam", type=int, nargs="?", const=0, metavar="N", help="images of webcam N instead (0)")
    parser.add_argument("--png", type=Path, help="draw the last image into this file")
    parser.add_argument("--no-check", action="store_true", help="without comparing with the golden model")
    chosen = parser.parse_args()
    if chosen.count < 1:
        parser.error("--count must be at least 1")
    wrong = 0
    try:
        with Device.open(chosen.device, config=preset("mini")) as device:
            live = Live(device, check=not chosen.no_check)
            source = held_out(chosen.count) if chosen.webcam is None else webcam(chosen.webcam, chosen.count)
            for image, label in source:
                seen = live.look(image, label)
                wrong += seen.equal is False
                print(panel(live, seen), end="\n\n", flush=True)
            if chosen.png is not None:
                figure(live, seen).savefig(chosen.png, dpi=120)
    except ImportError as error:
        sys.exit(f"{error}: pip install 'onnxhw[plot]'")
    except OnnxhwError as error:
        sys.exit(str(error).replace(" Hint: ", "\n  hint: "))
    if wrong:
        sys.exit(f"{wrong} results differ from the golden model")


if __name__ == "__main__":
    main()
