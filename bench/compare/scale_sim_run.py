"""Runs where SCALE-Sim is installed: cycles of each convolution and dense layer, as JSON.

    python scale_sim_run.py LAYERS.json ROWS COLUMNS DATAFLOW

Memories are so large and fast that nothing waits for them ("CALC" bandwidth, stalls are 0). SCALE-Sim has no depthwise
convolution: a channel is a layer of its own on the whole array, so one is simulated and counted as often as there are
channels. It knows neither Add nor pooling, nor what happens to a sum after the array.
"""

import contextlib
import csv
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from scalesim.scale_sim import scalesim

SETTINGS = """\
[general]
run_name = run
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {cols}
IfmapSramSzkB = 1024
FilterSramSzkB = 1024
OfmapSramSzkB = 1024
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Bandwidth = 10
Dataflow = {dataflow}
MemoryBanks = 1
ReadRequestBuffer = 32
WriteRequestBuffer = 32
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""


def topology(layers: list[dict[str, Any]]) -> list[str]:
    """SCALE-Sim's lines: padded input, filter, channels, filters, stride; a channel alone of a grouped convolution."""
    lines = ["Layer, IFMAP height, IFMAP width, Filter height, Filter width, Channels, Num filter, Stride,"]
    for number, layer in enumerate(layers):
        out, depth, rows, cols = layer["weight"]
        top, left, bottom, right = layer["pads"]
        _, height, width = layer["input_shape"]
        if layer["strides"][0] != layer["strides"][1]:
            raise SystemExit("SCALE-Sim has one stride for both directions")
        sizes = (height + top + bottom, width + left + right, rows, cols, depth, out // layer["groups"])
        lines.append(", ".join(map(str, (f"layer{number}", *sizes, layer["strides"][0]))) + ",")
    return lines


def run(layers: list[dict[str, Any]], rows: str, cols: str, dataflow: str, folder: Path) -> dict[str, int]:
    """Cycles by layer."""
    files = {"topology.csv": "\n".join(topology(layers))}
    files["run.cfg"] = SETTINGS.format(rows=rows, cols=cols, dataflow=dataflow)
    files["layout.csv"] = "header,\n" + "".join(f"layer{n}{', 1' * 20},\n" for n in range(len(layers)))
    for name, text in files.items():
        (folder / name).write_text(text + "\n")
    with contextlib.redirect_stdout(sys.stderr):
        simulator = scalesim(
            save_disk_space=True, verbose=False, config=str(folder / "run.cfg"),
            topology=str(folder / "topology.csv"), layout=str(folder / "layout.csv"),
        )  # fmt: skip
        # At its end it adds up the layers and fails (3.0.0): a method is subscripted. The report is written by then.
        with contextlib.suppress(TypeError):
            simulator.run_scale(top_path=str(folder))
    with (folder / "run" / "COMPUTE_REPORT.csv").open() as file:
        found = [{key.strip(): value for key, value in row.items() if key} for row in csv.DictReader(file)]
    assert len(found) == len(layers), "SCALE-Sim did not finish"
    assert all(int(float(row["Stall Cycles"])) == 0 for row in found)
    return {
        layer["name"]: layer["groups"] * int(float(row["Total Cycles"]))
        for layer, row in zip(layers, found, strict=True)
    }


def main() -> None:
    """The command line."""
    layers = [layer for layer in json.loads(Path(sys.argv[1]).read_text()) if layer["kind"] == "conv"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(json.dumps(run(layers, *sys.argv[2:5], Path(folder))))


if __name__ == "__main__":
    main()
