"""Ctrl-C and SIGTERM in the middle of work: exit status 130, one line, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


def heeded():
    """Signals that whoever started the tests ignores are not ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A command in a process of its own, with its own folders for work, temporary files and the cache."""

    def __init__(self, repository, place, *words):
        self.place, self.mark = place, uuid.uuid4().hex
        for name in ("work", "temporary"):
            (place / name).mkdir()
        environment = {
            **os.environ,
            "PYTHONPATH": str(repository / "src"),
            "TMPDIR": str(place / "temporary"),
            "ONNXHW_CACHE": str(place / "cache"),
            "ONNXHW_TEST_MARK": self.mark,
        }
        self.stderr = place / "stderr"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "onnxhw", *map(str, words)], stdout=subprocess.DEVNULL,
            stderr=self.stderr.open("wb"), env=environment, cwd=place / "work", start_new_session=True,
            preexec_fn=heeded,
        )  # fmt: skip

    def family(self):
        """The command lines of all its processes."""
        found = []
        for place in Path("/proc").iterdir():
            try:
                if place.name.isdigit() and self.mark.encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def wait_for(self, sign):
        """Until `sign()` is true."""
        while not sign():
            assert self.process.poll() is None, self.stderr.read_text()
            time.sleep(0.02)

    def interrupt(self, number=signal.SIGINT, times=1):
        """Send signals; then nothing must be left of the command, and it must have said so."""
        for _ in range(times):
            self.process.send_signal(number)
            time.sleep(0.05)
        assert self.process.wait(120) == 130
        text = self.stderr.read_text()
        assert text.endswith("interrupted; nothing was written half\n")
        assert "Traceback" not in text
        assert "E1901" not in text
        assert self.family() == []
        assert [path for name in ("work", "temporary") for path in (self.place / name).iterdir()] == []
        assert [path for path in self.place.glob("cache/**/*") if path.is_file()] == []


@pytest.fixture
def start(repository, tmp_path):
    started = []

    def make(*words):
        started.append(Command(repository, tmp_path, *words))
        return started[-1]

    yield make
    for command in started:
        command.process.kill()
        command.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_simulation_leaves_nothing(number, start, digits, digits_test):
    command = start("simulate", digits, "-p", "mini", "-e", "emulator", "-i", digits_test, "-o", "results/out.npz")
    command.wait_for(lambda: "prepare emulator" in command.stderr.read_text())
    command.interrupt(number)


@pytest.mark.parametrize("seconds", [0.4, 0.6, 0.8])
@pytest.mark.parametrize("name", ["check", "compile"])
def test_an_interrupt_at_any_time_is_one_line(name, seconds, start, digits):
    """Imports, reading, scheduling: wherever that finds the command; a second Ctrl-C does not disturb the cleaning."""
    command = start(name, digits, "-p", "ulx3s-85f")
    command.wait_for(lambda: "onnx/" in Path(f"/proc/{command.process.pid}/maps").read_text())
    time.sleep(seconds - 0.4)
    if command.process.poll() is not None:
        assert command.process.returncode == 0, command.stderr.read_text()
        return  # a quick machine
    command.interrupt(times=2)


@pytest.mark.slow
@pytest.mark.rtl
def test_interrupted_compilers_end(start, digits, compiler):
    """The compiler proper is a child of the one that was started."""
    command = start("simulate", digits, "-p", "mini", "-e", "cxxrtl")
    command.wait_for(lambda: any("cc1plus" in line or "clang" in line for line in command.family()))
    command.interrupt()


@pytest.mark.slow
@pytest.mark.synth
def test_an_interrupted_synthesis_ends_its_tools(start, digits):
    command = start("synth", digits, "-p", "mini", "-o", "out")
    command.wait_for(lambda: any("write_json" in line or " top.ys" in line for line in command.family()))
    command.interrupt()


def test_what_a_process_ignores_stays_ignored():
    """As a shell starts commands in the background."""
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" \
        "from onnxhw.cli.interrupts import interruptible\n" \
        "with interruptible(): print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
