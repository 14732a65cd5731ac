"""Ctrl-C and SIGTERM in the middle of work: exit status 130, and no half-written file."""

import os
import signal
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_simulation_leaves_nothing(number, repository, digits, digits_test, tmp_path):
    target = tmp_path / "results" / "out.npz"
    words = ["simulate", digits, "--preset", "mini", "-e", "emulator", "-i", digits_test, "-o", target]
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxhw", *words], stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("prepare emulator"):
            break
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait(60) == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []
