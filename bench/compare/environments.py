"""Other projects' tools in virtual environments of their own: they need versions that this project's cannot have."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

PLACE = Path(__file__).parents[2] / "build" / "compare"

SCALE_SIM = ("scalesim==3.0.0", "numpy==1.26.4", "setuptools<81")
"""SCALE-Sim 3.0.0 ends with a TypeError where numpy no longer makes a number of an array of one element (from 2.4)."""
NNGEN = ("nngen==1.3.4", "veriloggen==2.3.0", "pyverilog==1.3.0", "numpy==2.4.6", "onnx==1.23.2")
"""NNgen itself runs with current versions; only reading some operators of ONNX would need numpy before 1.24."""


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment with these packages, made the first time (half a minute to minutes)."""
    key = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    folder = PLACE / f"{name}-{key}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    ready = folder / "ready"
    if not ready.is_file():
        print(f"making an environment with {', '.join(requirements)}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        ready.touch()
    return python
