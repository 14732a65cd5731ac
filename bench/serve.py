"""How fast is the simulated board? A model through its serial pins, from a pseudo-terminal on.

    python bench/serve.py [--model FILE] [--preset mini] [--input FILE] [--images 1] [--json]

Starts ``onnxhw serve``, loads the program, runs images and compares every result with the golden model. The input is
an .npy or .npz with samples in its first dimension (uint8 images NHWC become float NCHW if the model wants that);
without one the images are random. The default is examples/digits.onnx on the preset "mini". The first run of
a preset compiles its core.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onnxhw import golden
from onnxhw.compiler import compile_graph
from onnxhw.driver.device import Device
from onnxhw.golden.host import prepare
from onnxhw.ir.graph import Graph
from onnxhw.partition import load
from onnxhw.presets import preset

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits.onnx"


def samples(graph: Graph, path: Path | None, count: int) -> npt.NDArray[np.generic]:
    """The first `count` samples of a file in the shape of the model's input, or random ones."""
    port = graph.inputs[0]
    if path is None:
        values = np.random.default_rng(0).uniform(0, 16, (count, *port.shape[1:]))
        return values.astype(port.dtype)
    found = np.load(path)
    array = (found if isinstance(found, np.ndarray) else found[found.files[0]])[:count]
    if array.shape[1:] != tuple(port.shape[1:]) and array.ndim == 4:
        array = array.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(array).astype(port.dtype)


def measure(device: Device, graph: Graph, preset_name: str, x: npt.NDArray[np.generic]) -> dict[str, object]:
    """The record that is printed; stops with an error if a result differs from the golden model's."""
    program = compile_graph(graph, preset(preset_name))
    start, begun = time.monotonic(), device.client.transport.now()
    device.load(program, again=True)
    loaded, loaded_at = time.monotonic(), device.client.transport.now()
    for sample in x:
        inputs = prepare(graph, {graph.inputs[0].name: sample[None]})
        wanted, got = golden.run(graph, inputs), device.run_int8(inputs)
        for name, values in got.outputs.items():
            if not np.array_equal(values, wanted[name]):
                sys.exit(f"{name} differs from the golden model")
    done, done_at = time.monotonic(), device.client.transport.now()
    counters = device.client.counters
    return {
        "model": program.model,
        "preset": preset_name,
        "images": len(x),
        "equal": True,
        "cycles_per_image": program.cycles,
        "load_seconds": round(loaded - start, 2),
        "load_simulated_ms": round(1e3 * (loaded_at - begun), 2),
        "seconds_per_image": round((done - loaded) / len(x), 2),
        "simulated_ms_per_image": round(1e3 * (done_at - loaded_at) / len(x), 2),
        "retries": counters.retries,
    }


def main() -> None:
    """The benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=DIGITS)
    parser.add_argument("--preset", default="mini")
    parser.add_argument("--input", type=Path)
    parser.add_argument("--images", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    graph = load(chosen.model)
    x = samples(graph, chosen.input, chosen.images)
    command = [sys.executable, "-m", "onnxhw", "serve", "--preset", chosen.preset, "--json"]
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            text = ""
            while not text.endswith("}\n"):
                line = server.stdout.readline() if server.stdout else ""
                if not line:
                    sys.exit("the simulated board has not started")
                text += line
            board = json.loads(text)
            ready = time.monotonic() - start
            with Device.open(board["device"]) as device:
                record = {**measure(device, graph, chosen.preset, x), "start_seconds": round(ready, 1)}
        finally:
            server.terminate()
    if chosen.json:
        print(json.dumps(record, indent=2))
        return
    for name, value in record.items():
        print(f"{name.replace('_', ' '):24} {value}")


if __name__ == "__main__":
    main()
