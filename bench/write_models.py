"""Writes the benchmark networks as ONNX files, to look at or to feed to other tools.

python bench/write_models.py [DIRECTORY]
"""

import argparse
from pathlib import Path

import onnx

from onnxhw.bench.topologies import TOPOLOGIES


def main() -> None:
    """Write one file per network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/models"), metavar="DIRECTORY",
                        help="default: %(default)s")  # fmt: skip
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for build in TOPOLOGIES.values():
        path = folder / f"{build.__name__}.onnx"
        onnx.save(build(), path)
        print(path)


if __name__ == "__main__":
    main()
