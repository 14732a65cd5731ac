"""The smallest core, a program for it, and a simulated board of the "mini" preset run by the command."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.ir.graph import Port
from onnxhw.isa import Array, Load, Vector, VectorOp
from onnxhw.isa.timeline import timeline
from onnxhw.program import DeviceProgram, Entry, Place

TINY = HwConfig("tiny", rows=4, cols=4, word=4, lanes=2, act_banks=2, act_depth=32, weight_depth=16, acc_depth=16,
                param_depth=16, tables=1, load_ucode=16, array_ucode=32, vector_ucode=64)  # fmt: skip


@pytest.fixture(scope="session")
def tiny() -> HwConfig:
    return TINY


@pytest.fixture(scope="session")
def tiny_program() -> DeviceProgram:
    """A 1x1 convolution of (1, 4, 2, 3)."""
    rng = np.random.default_rng(3)
    places = {"x": Place(0, 0, 3, (1, 4, 2, 3)), "y": Place(40, 0, 3, (1, 4, 2, 3))}
    image = {"oh_n": 2, "ow_n": 3}
    code: dict[str, Any] = {
        "load": [Load(tiles=1)],
        "array": [Array(**image, a_oh=3, a_ow=1, in_h=2, in_w=3)],
        "vector": [Vector(after_array=1, op=VectorOp.DRAIN, per_channel=1, exact=1, a_oh=3, a_ow=1, **image,
                          o_base=40, o_oh=3, o_ow=1, groups=2, zy=3)],
    }  # fmt: skip
    params = [Scale(1 << 24, 31, bias).pack() for bias in (0, -700, 5000, 12)]
    shape = (1, 4, 2, 3)
    return DeviceProgram(
        config=TINY, model="tiny", code=code,
        weights=rng.integers(0, 256, (4, 4)).astype(np.uint8), params=np.array(params, np.uint64).reshape(2, 2),
        tables=np.zeros((0, 256), np.int8),
        tensors={name: Entry(name, place, 1.0, 0) for name, place in places.items()},
        inputs=[Port("input", shape, "int8", "x")], outputs=[Port("output", shape, "int8", "y")],
        layers=[], cycles=timeline(TINY, code).cycles, macs=96,
    )  # fmt: skip


class Served:
    """``onnxhw serve`` as a process; `record` is what it printed with ``--json``."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "onnxhw", "serve", "--preset", "mini", "--json", *options]
        pipe = subprocess.PIPE
        environment = {**os.environ, "COLUMNS": "200"}
        self.process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # also where the tests ignore it
            start_new_session=True,
        )  # fmt: skip
        text = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text += line
            if line.startswith("}"):
                break
        assert text, self.process.communicate()[1]
        self.record: dict[str, Any] = json.loads(text)

    def stop(self, seconds: float) -> None:
        """Stop the whole process group, as Ctrl-Z does: the command and its supervisor."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        threading.Timer(seconds, lambda: os.killpg(self.process.pid, signal.SIGCONT)).start()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit status and what was said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        words = self.process.communicate(timeout=600)[1]
        return self.process.returncode, words


@pytest.fixture
def served(compiler: None) -> Iterator[Callable[..., Served]]:
    """Starts simulated boards; they end with the test."""
    started: list[Served] = []

    def start(*options: str) -> Served:
        started.append(Served(*options))
        return started[-1]

    yield start
    for board in started:
        board.end()


@pytest.fixture
def boards_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of clocks of this test's own."""
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path
