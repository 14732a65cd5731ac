"""Writes the benchmark networks as ONNX files, to look at or to feed to other tools.

python bench/write_models.py [DIRECTORY]        default: build/models
"""

import sys
from pathlib import Path

import onnx

from onnxhw.bench.topologies import TOPOLOGIES


def main() -> None:
    """Write one file per network."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/models")
    folder.mkdir(parents=True, exist_ok=True)
    for build in TOPOLOGIES.values():
        path = folder / f"{build.__name__}.onnx"
        onnx.save(build(), path)
        print(path)


if __name__ == "__main__":
    main()
