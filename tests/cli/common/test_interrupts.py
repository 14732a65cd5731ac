"""Ctrl-C and SIGTERM in the middle of work: exit status 130, one line, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.cli import main
from onnxhw.cli.common.interrupts import script_status
from onnxhw.cli.common.supervisor import _descendants
from onnxhw.errors import DoesNotFitError

INTERRUPTED = "interrupted; nothing was written half\n"
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


def heeded():
    """Signals that whoever started the tests ignores are not ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A command in a process of its own, with its own folders for work, temporary files and the cache."""

    def __init__(self, repository, place, *words, program=("-m", "onnxhw")):
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
            [sys.executable, *program, *map(str, words)], stdout=subprocess.DEVNULL,
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

    def used(self):
        """Processor seconds of the command so far."""
        fields = [
            (Path("/proc") / str(child) / "stat").read_text().rpartition(")")[2].split()
            for child in _descendants(self.process.pid)
        ]
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")

    def wait_for(self, sign):
        """Until `sign()` is true."""
        while not sign():
            assert self.process.poll() is None, self.stderr.read_text()
            time.sleep(0.02)

    def interrupt(self, number=signal.SIGINT):
        """Send a signal; it must end the command as it should."""
        self.process.send_signal(number)
        assert self.process.wait(600) == 130
        self.has_gone()

    def has_gone(self):
        """Nothing is left of the interrupted command, and it has said so."""
        text = self.stderr.read_text()
        assert text.endswith(INTERRUPTED)
        assert text.count(INTERRUPTED) == 1
        assert "Traceback" not in text
        assert "E1901" not in text
        end = time.monotonic() + 60
        while self.family() and time.monotonic() < end:  # killed, but not gone yet
            time.sleep(0.02)
        assert self.family() == []
        left = {path.name for path in (self.place / "temporary").iterdir()}
        assert left <= {".ses"}, "which onnxruntime has for all its processes"
        left = {path.name for path in (self.place / "work").glob("build/*/*")}
        whole = {"program.ohw", "manifest.json", "report.html", "trace.json", "model.onnx"}
        assert left == whole or list((self.place / "work").iterdir()) == [], "all or nothing"
        assert [path for path in self.place.glob("cache/**/*") if path.is_file()] == []


@pytest.fixture
def start(repository, tmp_path):
    started = []

    def make(*words, **how):
        started.append(Command(repository, tmp_path, *words, **how))
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


def looping():
    """A model of which the host runs 9,999,999 iterations between two operations of the hardware."""
    info, node, real, grid = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT, ["s", "z"]
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Tanh", ["v"], ["w"])], "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("v", real, None)],
        [info("on", TensorProto.BOOL, []), info("w", real, None)],
    )  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", *grid], ["a"]), node("DequantizeLinear", ["a", *grid], ["b"]),
        node("DequantizeLinear", ["k", *grid], ["kernel"]), node("Conv", ["b", "kernel"], ["c"]),
        node("QuantizeLinear", ["c", *grid], ["d"]), node("DequantizeLinear", ["d", *grid], ["e"]),
        node("Loop", ["n", "", "e"], ["y"], body=body),
    ]  # fmt: skip
    values = {"s": np.float32(0.125), "z": np.int8(0), "k": np.ones((4, 4, 1, 1), np.int8), "n": np.int64(9_999_999)}
    graph = helper.make_graph(
        nodes, "looping", [info("x", real, [1, 4, 4, 4])],
        [info("y", real, [None] * 4)],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_long_loop_of_the_host_is_interrupted(number, start, tmp_path):
    onnx.save(looping(), tmp_path / "loop.onnx")
    command = start(
        "simulate", tmp_path / "loop.onnx", "-p", "mini", "-e", "emulator", "--random", "1", "-o", "out.npz"
    )
    command.wait_for(lambda: "prepare emulator" in command.stderr.read_text())
    command.interrupt(number)


@pytest.mark.slow
def test_a_long_loop_is_interrupted_in_run(start, tmp_path, repository):
    onnx.save(looping(), tmp_path / "loop.onnx")
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 4, 4, 4), np.float32))
    words = ["compile", str(tmp_path / "loop.onnx"), "-p", "mini", "-o", str(tmp_path / "out"), "-q"]
    assert main(words) == 0
    command = start("run", tmp_path / "out", "-d", "emu:", "-i", tmp_path / "x.npz", "-o", "y.npz")
    command.wait_for(lambda: command.used() > 4)
    command.interrupt()


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.4, 0.6, 0.8, 1.2])
@pytest.mark.parametrize("name", ["check", "compile"])
def test_an_interrupt_at_any_time_is_one_line(name, seconds, start, digits):
    """Imports, reading, scheduling: wherever that finds the command; a second Ctrl-C does not disturb the cleaning.

    The time is the processor's, so that others who use it change nothing; a quick one may be done before.
    """
    command = start(name, digits, "-p", "ulx3s-85f", program=("-c", TIMED.format(seconds=seconds)))
    if command.process.wait(600) != 0:
        assert command.process.returncode == 130, command.stderr.read_text()
        command.has_gone()


TIMED = """
import signal, sys
left = [1, 1]
def strike(number, frame):
    if left:
        left.pop()
        signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGPROF, strike)
from onnxhw.cli import main
signal.setitimer(signal.ITIMER_PROF, {seconds}, 0.02)
status = main()
signal.setitimer(signal.ITIMER_PROF, 0)
sys.exit(status)
"""
"""The command, which gets two interrupts after some time."""


@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupt_while_the_command_is_loaded_is_one_line(lost, start, tmp_path):
    """Also if the import system loses what the handler raises, as in the callback of a weak reference."""
    (tmp_path / "click.py").write_text(
        "import contextlib, signal\n"
        f"with contextlib.suppress({'BaseException' if lost else ''}): signal.raise_signal(signal.SIGINT)\n"
    )
    command = start("boards", program=("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {MAIN}"))
    assert command.process.wait(600) == 130
    assert command.stderr.read_text() == INTERRUPTED


MAIN = "from onnxhw.cli import main; sys.exit(main())"
"""What the installed script does."""


def test_hardly_anything_is_imported_before_interrupts_are_answered(repository):
    code = (
        f"import os, sys; sys.path.insert(0, {str(repository / 'src')!r}); before = {{*sys.modules}}; "
        "import onnxhw.cli; print(sorted({*sys.modules} - before))"
    )
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert run.stdout == "['onnxhw', 'onnxhw.cli']\n"


def test_an_interrupt_after_the_command_is_no_traceback(start):
    code = f"import atexit, signal, sys; atexit.register(signal.raise_signal, signal.SIGINT); {MAIN}"
    command = start("--version", program=("-c", code))
    assert command.process.wait(600) == 0
    assert command.stderr.read_text() == ""


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
        "from onnxhw.cli.common.interrupts import interruptible\n" \
        "with interruptible(): print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_what_a_destructor_throws_away_comes_again_without_a_word():
    code = "import os, signal, time\n" \
        "from onnxhw.cli.common.interrupts import interruptible\n" \
        "class Dying:\n" \
        "    def __del__(self): signal.raise_signal(signal.SIGTERM)\n" \
        "try:\n" \
        "    with interruptible():\n" \
        "        Dying()\n" \
        "        print('lost', flush=True)\n" \
        "        time.sleep(60)\n" \
        "        print('never', flush=True)\n" \
        "except KeyboardInterrupt: print('interrupted')"  # fmt: skip
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("lost\ninterrupted\n", "")


def test_other_errors_of_destructors_are_shown():
    code = "from onnxhw.cli.common.interrupts import interruptible\n" \
        "class Dying:\n" \
        "    def __del__(self): raise ValueError('mine')\n" \
        "with interruptible(): Dying()"  # fmt: skip
    assert "ValueError: mine" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr


def test_a_script_that_is_interrupted_says_so(capsys):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    assert script_status(interrupted) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert script_status(lambda: 3) == 3


def test_a_script_tells_an_error_that_a_user_can_cause(capsys):
    def refused():
        raise DoesNotFitError("E5190", "too large")

    assert script_status(refused) == 5
    assert capsys.readouterr().err == "E5190 does not fit: too large\n"
