"""How the golden model compares with onnxruntime: layer by layer, in top-1, and in rates per operator.

    python bench/accuracy.py layers MODEL.onnx [--data DATA.npz] [--images 20]
    python bench/accuracy.py top1 MODEL.onnx --data DATA.npz [--images 1000]
    python bench/accuracy.py rates [--elements 200000]

`layers` feeds each operation with onnxruntime's own int8 operands and compares all elements of the result, twice:
with what the whole model gives in onnxruntime (on CPUs without VNNI its convolutions then run in float32), and for
convolution and gemm with onnxruntime's integer kernel, QLinearConv or QGemm, on the same operands.
`top1` compares the classes of whole runs. `rates` compares Conv, Gemm, Add, Mul and pooling on random data with
random and with power-of-two scales. Everything is printed on standard output; `--json` prints it as JSON.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
from against_ort import CASES, compare_layers, compare_top1, inputs, load_data, rate


def _table(rows: Sequence[Any]) -> str:
    records = [asdict(row) for row in rows]
    heads = list(records[0])
    cells = [heads] + [[str(record[head]) for head in heads] for record in records]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def main() -> int:
    """The command line; exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("layers", "top1", "rates"))
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=0, help="20 for layers, all for top1")
    parser.add_argument("--elements", type=int, default=200_000)
    parser.add_argument("--unoptimised", action="store_true", help="layers: onnxruntime without graph optimisation")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.what != "rates" and arguments.model is None:
        parser.error(f"{arguments.what} needs a model")
    rows: list[Any]
    if arguments.what == "rates":
        rows = [rate(operator, powers, arguments.elements) for operator in CASES for powers in (False, True)]
    elif arguments.what == "layers":
        model = onnx.load(arguments.model)
        feeds = inputs(model, arguments.data, arguments.images or 20)
        rows = list(compare_layers(model, feeds, not arguments.unoptimised))
    else:
        if arguments.data is None:
            parser.error("top1 needs --data")
        model = onnx.load(arguments.model)
        x, labels = load_data(arguments.data, model)
        count = arguments.images or len(x)
        rows = [compare_top1(model, x[:count], labels[:count])]
    print(json.dumps([asdict(row) for row in rows], indent=1) if arguments.json else _table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
