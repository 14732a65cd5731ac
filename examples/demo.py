"""What ``make demo`` runs: from the committed network to RTL results and a bitstream.

1. compiles ``digits.onnx`` for the ULX3S;
2. simulates the RTL, cycle by cycle, on real handwritten digits, beside the golden model;
3. makes a bitstream of a small preset (minutes the first time, then from the cache);
4. says where everything lies.

    python examples/demo.py [--digits N] [--no-synth]
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODEL, DATA = HERE / "digits.onnx", HERE / "digits_test.npz"
SHADES = " .:-=+*#%@"
"""Grey values as characters, dark to bright."""


def title(number: int, text: str) -> None:
    """A headline of the demo."""
    print(f"\n\033[1m{number}. {text}\033[0m" if sys.stdout.isatty() else f"\n{number}. {text}", flush=True)


def onnxhw(*arguments: str) -> dict[str, Any]:
    """Run a command as a person would, and return what it says as JSON; its progress goes to the terminal."""
    print(f"   $ onnxhw {' '.join(arguments)}", flush=True)
    run = subprocess.run([sys.executable, "-m", "onnxhw", *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(run.returncode)
    record: dict[str, Any] = json.loads(run.stdout)
    return record


def relative(path: str | Path) -> str:
    """A path as seen from here, if that is shorter."""
    absolute = Path(path).resolve()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def drawing(images: npt.NDArray[np.float32], captions: list[str]) -> str:
    """Images of 8 x 8 values 0..16 side by side, a caption below each."""
    rows = []
    for y in range(8):
        cells = ["".join(2 * SHADES[int(v / 16 * (len(SHADES) - 1))] for v in image[0, y]) for image in images]
        rows.append("   " + "  ".join(cells))
    rows.append("   " + "  ".join(f"{caption:^16}" for caption in captions))
    return "\n".join(rows)


def table(images: int, rtl: dict[str, Any], classes: list[npt.NDArray[np.int64]], labels: npt.NDArray[np.int64]) -> str:
    """Per digit: label, class of golden model and RTL, cycles, utilisation, equal."""
    lines = ["   digit  label  golden  RTL    cycles  utilisation  RTL = golden"]
    for i in range(images):
        golden, hardware = (int(found[i]) for found in classes)
        lines.append(
            f"   {i:5}  {labels[i]:5}  {golden:6}  {hardware:3}  {rtl['cycles']:8,}  {100 * rtl['utilization']:9.1f} %"
            f"  {'equal' if rtl['equal'] else 'DIFFERS'}"
        )
    return "\n".join(lines)


def predicted(path: str) -> npt.NDArray[np.int64]:
    """The most probable class of each inference in a file of outputs."""
    with np.load(path) as outputs:
        scores: npt.NDArray[np.float32] = outputs["probabilities"]
    return scores.argmax(1)


def main() -> None:
    """The demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--digits", type=int, default=10, metavar="N", help="digits to simulate (default 10)")
    parser.add_argument("--no-synth", action="store_true", help="leave out the bitstream")
    arguments = parser.parse_args()
    start, count = time.monotonic(), arguments.digits
    if not MODEL.exists():
        print("training the example network first, half a minute", flush=True)
        subprocess.run([sys.executable, str(HERE / "train_digits.py")], check=True)
    with np.load(DATA) as data:
        images, labels = data["input"], data["label"]
    folder = ROOT / "build" / "demo"

    title(1, "Compile an int8 network for the ULX3S with LFE5U-85F")
    compiled = onnxhw("compile", relative(MODEL), "--board", "ulx3s", "-o", relative(folder / "digits"))
    macs, cycles = compiled["macs_nominal"], compiled["predicted_cycles"]
    print(f"   {macs:,} multiply-accumulates in {cycles:,} cycles (predicted)")

    title(2, f"Simulate the RTL on {count} handwritten digits it has not been trained on")
    inputs = ("--input", relative(DATA), "--count", str(count))
    results = {}
    for engine in ("golden", "cxxrtl"):
        output = relative(folder / f"{engine}.npz")
        results[engine] = onnxhw(
            "simulate", relative(folder / "digits"), "--engine", engine, *inputs, "--output", output
        )
    rtl = results["cxxrtl"]
    classes = [predicted(results[engine]["outputs"]) for engine in ("golden", "cxxrtl")]
    print(f"\n{drawing(images[:5], [f'RTL says {found}' for found in classes[1][:5]])}\n")
    print(table(min(count, len(images)), rtl, classes, labels))
    print(f"   {rtl['tensors_compared']} tensors compared, every integer equal; cycles as predicted; "
          f"{rtl['top1']['right']} of {rtl['top1']['of']} digits right")  # fmt: skip

    made = compiled["artifacts"]
    if not arguments.no_synth:
        title(3, "Make a bitstream: Yosys, nextpnr and ecppack, for a preset that routes in minutes")
        built = onnxhw(
            "synth",
            relative(MODEL),
            "--board",
            "ulx3s",
            "--preset",
            "mini",
            "--freq",
            "75",
            "-o",
            relative(folder / "bitstream"),
        )
        used = ", ".join(
            f"{name} {value['used']:,} of {value['available']:,}" for name, value in built["resources"].items()
        )
        latency = built["predicted_cycles"] / built["clock_mhz"]
        origin = "from the cache" if built["cached"] else "newly placed and routed"
        print(f"   {origin}: Fmax {built['fmax_mhz']:.1f} MHz at a clock of {built['clock_mhz']:g} MHz; {used}")
        print(f"   {built['predicted_cycles']:,} cycles per digit on this preset, {latency:.0f} microseconds")
        made = built["artifacts"]

    title(4, "What there is now")
    for name, path in made.items():
        print(f"   {name:14} {relative(path)}")
    rest = "" if arguments.no_synth else "; the next run takes the bitstream from the cache"
    print(f"   done in {time.monotonic() - start:.0f} s{rest}")


if __name__ == "__main__":
    main()
