"""The process that waits for a command: however the command ends, the user gets a status and at most one message."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxhw import __version__
from onnxhw.cli.common import supervisor

from .processes import (
    DEAF,
    ENDS,
    INTERRUPTED,
    PATIENCE,
    begin,
    children,
    done,
    gone,
    heeded,
    linux,
    stub,
    wait_for,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")


@linux
@pytest.mark.parametrize("number", ENDS)
def test_native_code_that_answers_nothing_is_ended_with_all_that_it_started(number, tmp_path):
    body = f"""
    folder = tempfile.mkdtemp(); open(os.path.join(folder, "half"), "w").close(); tempfile.mkstemp()
    subprocess.Popen(["sh", "-c", "sleep 500 & sleep 501"]); click.echo("deaf", err=True); {DEAF}"""
    process = begin(stub(body), env={**os.environ, "TMPDIR": str(tmp_path)})
    assert [process.stderr.readline() for _ in range(2)] == ["begun\n", "deaf\n"]
    wait_for(lambda: len(children(process.pid)) == 4)
    family = children(process.pid)
    before = sum(os.times()[2:4])
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, INTERRUPTED)
    assert sum(os.times()[2:4]) - before < 5, "it was not left to compute"
    wait_for(lambda: all(map(gone, family)))
    assert list(tmp_path.iterdir()) == []


def test_the_patience_is_less_than_what_is_promised():
    assert supervisor.PATIENCE < 2


def test_a_command_that_cleans_up_has_the_time_for_it():
    body = """import contextlib
    with contextlib.suppress(KeyboardInterrupt):
        click.echo("ready", err=True)
        time.sleep(600)
    click.echo("clean")"""
    process = begin(stub(body))
    assert [process.stderr.readline() for _ in range(2)] == ["begun\n", "ready\n"]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=600) == ("clean\n", "")
    assert process.returncode == 0, "as a simulated board ends"


CRASH = "the command crashed in native code"
FAULTS = [
    ("ctypes.string_at(0)", 1, f"E1950 internal error: {CRASH} (SIGSEGV)"),
    ("os.abort()", 1, f"E1950 internal error: {CRASH} (SIGABRT)"),
    ("os.kill(os.getpid(), signal.SIGFPE)", 1, f"E1950 internal error: {CRASH} (SIGFPE)"),
    ("os.kill(os.getpid(), signal.SIGKILL)", 2, "E2950 usage: the system ended the command (SIGKILL), most likely for"),
    ("os.kill(os.getpid(), signal.SIGXCPU)", 2, "E2950 usage: the system ended the command (SIGXCPU): its processor"),
    ("os.kill(os.getpid(), signal.SIGUSR1)", 2, "E2950 usage: the system ended the command (SIGUSR1)"),
    ("os.kill(os.getpid(), 40)", 2, "E2950 usage: the system ended the command (signal 40)"),
]


@pytest.mark.parametrize(("body", "status", "words"), FAULTS)
def test_a_command_that_does_not_end_itself_is_told_of(body, status, words):
    found, out, err = done(stub(body))
    assert (found, out) == (status, "")
    assert err.startswith("begun\n" + words)
    assert len(err.splitlines()) == 3, "and a hint"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize(("body", "status"), [("os.abort()", 1), ("os.kill(os.getpid(), 9)", 2), ("return 0", 0)])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_what_cannot_be_said_does_not_change_the_status(body, status, name):
    with open("/dev/full", "w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, name: full}
        run = subprocess.run([*stub(body), "--json"], **streams, text=True, timeout=600)
    assert run.returncode == status
    assert "Traceback" not in (run.stderr or "")


@pytest.mark.parametrize("close", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_device(close):
    """A pipe of ours must not take a stream's number."""
    words = [sys.executable, "-m", "onnxhw", "boards"]
    status, out, err = done(["sh", "-c", f'exec "$@" {close}', "sh", *words])
    assert (status, err) == (0, "")
    assert ("Boards" in out) == (">&-" not in close.split())
    status, out, err = done(["sh", "-c", f'exec "$@" {close}', "sh", *stub("os.abort()")])
    assert status == 1
    assert ("E1950" in err) == ("2>&-" not in close)


def test_a_reader_that_goes_away_ends_the_command_without_a_word():
    read, write = os.pipe()
    process = subprocess.Popen(stub("while True: click.echo('line' * 1000)"), stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 1)
    os.close(read)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (141, b"begun\n")


@pytest.mark.parametrize("what", ["fork", "pipe"])
def test_where_no_second_process_can_be_the_command_runs_nevertheless(what):
    refused = f"import os\ndef refused(): raise BlockingIOError(11, 'no more')\nos.{what} = refused\n"
    assert done(stub("return 3", refused)) == (3, "", "begun\n")
    process = begin(stub("time.sleep(600)", refused))
    assert process.stderr.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err.lstrip("\n")) == (130, "", INTERRUPTED), "click ends the line before"


def test_a_process_that_ignores_its_children_gets_their_status():
    """As some who start processes leave it."""

    def prepare():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    assert done(stub("return 3"), prepare) == (3, "", "begun\n")


def test_what_is_ignored_stays_ignored():
    """As `nohup` has it."""

    def prepare():
        heeded()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = begin(stub("sys.stdin.read(1); return 3"), prepare, stdin=subprocess.PIPE)
    assert process.stderr.readline() == "begun\n"
    process.send_signal(signal.SIGHUP)
    for child in children(process.pid):
        os.kill(child, signal.SIGHUP)
    process.communicate("x", timeout=600)
    assert process.returncode == 3, "and its input came through"


LEFT = """subprocess.Popen(["sh", "-c", "sleep 500 & sleep 501"])
    click.echo("ready", err=True)
    {work}"""
"""A command that ends without what it has started."""


@linux
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no subreapers")
@pytest.mark.parametrize("work", ["time.sleep(600)", DEAF])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_job_in_a_script_s_background_ignores_sigint_and_ends_by_the_others(number, work, tmp_path):
    """`command &` in a script has SIGINT ignored from its start; so have the processes that the command starts."""

    def prepare():
        heeded()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = begin(stub(LEFT.format(work=work)), prepare)
    assert [process.stderr.readline() for _ in range(2)] == ["begun\n", "ready\n"]
    wait_for(lambda: len(children(process.pid)) == 4)
    family = children(process.pid)
    for one in (process.pid, *family):
        os.kill(one, signal.SIGINT)
    time.sleep(supervisor.PATIENCE + 0.5)
    assert process.poll() is None
    assert not any(map(gone, family))
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err.lstrip("\n")) == (130, INTERRUPTED)
    wait_for(lambda: all(map(gone, family)))


@linux
def test_what_the_shell_had_started_before_it_became_the_command_is_left(tmp_path):
    """`exec` gives the command children that are not its own, as a process substitution of the shell is."""
    words = ["sh", "-c", 'sleep 502 >/dev/null 2>&1 & echo $!; exec "$@"', "sh", *stub("time.sleep(600)")]
    process = begin(words)
    other = int(process.stdout.readline())
    assert process.stderr.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err.lstrip("\n")) == (130, INTERRUPTED)
    assert not gone(other)
    os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize("what", ["BrokenPipeError(32, 'Broken pipe')", "SystemExit(3)"])
def test_another_pipe_than_stdout_is_no_reader_that_went_away(what, tmp_path):
    status, out, err = done(stub(f"raise {what}"), env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (status, out) == (1, "")
    assert f"E1901 internal error: {what.partition('(')[0]}" in err


@linux
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the child")
def test_a_command_whose_parent_is_killed_ends():
    process = begin(stub("time.sleep(600)"))
    assert process.stderr.readline() == "begun\n"
    family = children(process.pid)
    assert len(family) == 1
    process.kill()
    wait_for(lambda: gone(family[0]))
    process.communicate()


def test_without_proc_there_are_no_descendants(monkeypatch):
    def nowhere(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", nowhere)
    assert supervisor._descendants(os.getpid()) == []
    process = subprocess.Popen(["sleep", "600"])
    supervisor._end([process.pid])
    assert process.wait() == -signal.SIGKILL


def test_a_process_of_somebody_else_is_left(monkeypatch):
    def forbidden(process, number):
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(os, "kill", forbidden)
    supervisor._end([1 << 22])


SHELL = """
import os, pty, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    for number in (signal.SIGTTOU, signal.SIGTSTP, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    print("stopped", flush=True)
    os.tcsetpgrp(0, os.getpid())
    sys.stdin.readline()
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
print("status", os.waitstatus_to_exitcode(status), flush=True)
"""
"""A shell with one job, which it continues when it gets a line."""


def until(terminal, words):
    """What the terminal shows, up to these words."""
    text = ""
    while not re.search(words, text):
        assert select.select([terminal], [], [], PATIENCE)[0], text
        text += os.read(terminal, 1 << 16).decode()
    return text


@linux
def test_a_terminal_stops_continues_and_interrupts():
    """Ctrl-Z stops both processes; Ctrl-C, which both get, too, ends the command once."""
    import pty

    words = [sys.executable, "-c", SHELL, *stub("click.echo(f'tty {sys.stdout.isatty()}'); time.sleep(600)")[1:]]
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, words)
    try:
        until(terminal, "tty True\r\n")
        (job,) = (one for one in children(pid) if children(one))
        os.write(terminal, b"\x1a")
        until(terminal, "stopped")
        for process in (job, *children(job)):
            wait_for(lambda one=process: Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        os.write(terminal, b"\n")
        (command,) = children(job)
        wait_for(lambda: Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        os.write(terminal, b"\x03")
        text = until(terminal, "status [0-9-]+\\r\\n")
        assert text.count(INTERRUPTED.strip()) == 1
        assert "status 130" in text
    finally:
        for process in (*children(pid), pid):
            os.kill(process, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("place", range(6))
def test_an_interrupt_while_it_starts_has_no_traceback(number, place):
    """From the first line of the command on: before `main` acts, while it forks, in either process, in any import."""
    strike = f"""
import os, signal, sys
count = 0
def hook(event, arguments):
    global count
    if event in ("import", "os.fork", "open"):
        count += 1
        if count == {1 + 37 * place}: os.kill(os.getpid(), {int(number)})
from onnxhw.cli import main
sys.addaudithook(hook)
sys.argv = ["onnxhw", "--version"]
sys.exit(main())
"""
    status, out, err = done([sys.executable, "-c", strike])
    assert "Traceback" not in err
    assert (status, out, err) in [
        (130, "", INTERRUPTED), (-number, "", ""), (0, f"onnxhw, version {__version__}\n", ""),
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_little_memory_is_an_error_or_enough():
    for kib in (150_000, 300_000):
        status, _, err = done(
            ["sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh", sys.executable, "-m", "onnxhw", "boards"]
        )
        assert status in (0, 1, 2)
        assert "Traceback" not in err
