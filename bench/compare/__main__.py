"""Our cycles beside SCALE-Sim's and those of NNgen's RTL, for the same networks.

    python bench/compare                                  everything; the first time takes half an hour
    python bench/compare --models kws,ad --skip-nngen     a minute
    python bench/compare --preset ulx3s-45f         another array; SCALE-Sim gets the same rows and columns

Layers come from the graph that our compiler reads, before any of its passes. What is compared is not alike:

- SCALE-Sim is a model of a systolic array of the same rows and columns. It counts convolutions and dense layers, with
  a weight tile's load before each tile, memories that never stall, no Add, no pooling, no requantization. It has
  no depthwise unit: each channel is a layer on the whole array.
- NNgen's RTL runs here in the simulator that runs ours (Yosys, CXXRTL). Its activations and weights come over an AXI
  bus from a memory model, ours lie on the chip. "1 x 1" is its default; more input and output channels in parallel
  is tuning. Its cycles do not depend on the values. Results are compared with its own software, and at 1 x 1 all
  ten differ, for a reason that is not known yet: take its cycles as those of the same work, not of a proven result.

Results are kept in the cache, but for ours.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from environments import SCALE_SIM, python_with
from layers import Layer, layers
from nngen_cycles import SCRIPT as NNGEN_SCRIPT
from nngen_cycles import nngen

from onnxhw import engines
from onnxhw.bench.measure import measure, model
from onnxhw.build.cache import Cache, key_of
from onnxhw.config import HwConfig
from onnxhw.presets import preset

SCALE_SIM_SCRIPT = Path(__file__).with_name("scale_sim_run.py")
NNGEN_POINTS = ((1, 1, 32), (2, 2, 32), (4, 4, 128))
"""Channels in and out in parallel, and bits of the bus."""


def tell(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def kept(parts: dict[str, str], label: str, make: Any) -> dict[str, int]:
    """A result from the cache, or made and put there."""
    cache, key = Cache("compare"), key_of(parts)
    if found := cache.load(key):
        return dict(json.loads(found["result.json"]))
    result = make()
    cache.store(key, {"result.json": json.dumps(result).encode()}, label=label)
    return dict(result)


def scale_sim(found: list[Layer], config: HwConfig, dataflow: str) -> dict[str, int]:
    """SCALE-Sim's cycles by layer."""
    text, sizes = json.dumps(found), (str(config.rows), str(config.cols), dataflow)

    def make() -> Any:
        tell(f"SCALE-Sim {' '.join(sizes)}")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text)
            file.flush()
            words = [python_with("scale-sim", SCALE_SIM), SCALE_SIM_SCRIPT, file.name, *sizes]
            return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    parts = {"layers": text, "sizes": " ".join(sizes), "script": SCALE_SIM_SCRIPT.read_text(), "pins": str(SCALE_SIM)}
    return kept(parts, f"SCALE-Sim {' '.join(sizes)}", make)


def ours(name: str, config: HwConfig, rtl: bool) -> dict[str, Any]:
    """Predicted and simulated cycles of a model."""
    tell(f"{name} on {config.name}")

    def engine(config: HwConfig) -> engines.Engine:
        return engines.open("cxxrtl", config, progress=tell)

    return asdict(measure(model(name), config, engine if rtl else None, None).row)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="ic,kws,vww,ad")
    parser.add_argument("--preset", default="virtual")
    parser.add_argument("--dataflow", default="ws", choices=("ws", "os", "is"), help="SCALE-Sim's")
    parser.add_argument("--skip-nngen", action="store_true", help="NNgen's RTL takes minutes to compile the first time")
    parser.add_argument("--no-rtl", action="store_true", help="of ours, only the predicted cycles (which are exact)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    config = preset(asked.preset)
    rows = []
    for name in asked.models.split(","):
        found = layers(model(name).graph)
        own = ours(name, config, not asked.no_rtl)
        parts = scale_sim(found, config, asked.dataflow)
        depthwise = sum(parts[layer["name"]] for layer in found if layer.get("groups", 1) > 1)
        row = {"model": own["model"], "ours": own["cycles_predicted"], "rtl": own["cycles_rtl"], "equal": own["equal"]}
        rows.append({**row, "scale_sim": sum(parts.values()), "scale_sim_depthwise": depthwise, "note": own["note"]})
    points = []
    if not asked.skip_nngen:
        found = layers(model("ic").graph)
        own = ours("ic", config, False)["cycles_predicted"]
        for point in NNGEN_POINTS:
            key = {"layers": json.dumps(found), "point": str(point), "script": NNGEN_SCRIPT.read_text()}
            result = kept(key, f"NNgen {point}", lambda point=point: nngen(found, *point, tell))
            points.append({"in": point[0], "out": point[1], "bus": point[2], "ours": own, **result})
    if asked.json:
        print(json.dumps({"preset": config.name, "models": rows, "nngen": points}, indent=1))
        return
    show(config, asked.dataflow, rows, points)


def show(config: HwConfig, dataflow: str, rows: list[dict[str, Any]], points: list[dict[str, Any]]) -> None:
    """The tables; a ratio is theirs over ours."""
    print(f"{config.name}: {config.rows} x {config.cols}; SCALE-Sim 3.0.0, {dataflow}, the same array, no stalls")
    print(f"{'model':24}{'ours':>10}{'our RTL':>10}{'SCALE-Sim':>11}{'ratio':>7}{'of it depthwise':>17}")
    for row in rows:
        cells = [f"{row[key]:,}" if row[key] else "-" for key in ("ours", "rtl", "scale_sim", "scale_sim_depthwise")]
        ratio = f"{row['scale_sim'] / row['ours']:.2f}" if row["ours"] else "-"
        line = f"{row['model']:24}{cells[0]:>10}{cells[1]:>10}{cells[2]:>11}{ratio:>7}{cells[3]:>17}  {row['note']}"
        print(line.rstrip())
        if row["equal"] is False:
            print("  our RTL differs from the golden model")
    if points:
        print(f"\nResNet-8: NNgen 1.3.4, RTL in the same simulator; ours on {config.name}, {config.array_multipliers} "
              "multipliers in the array")  # fmt: skip
        print(f"{'channels in x out, bus':24}{'multipliers':>12}{'cycles':>12}{'ratio':>7}  results and its software")
    for point in points:
        name, ratio = f"{point['in']} x {point['out']}, {point['bus']} bits", point["cycles"] / point["ours"]
        right = "equal" if not point["wrong"] else f"{point['wrong']} of {point['outputs']} differ"
        print(f"{name:24}{point['multipliers']:>12,}{point['cycles']:>12,}{ratio:>7.2f}  {right}")


if __name__ == "__main__":
    main()
