"""Commands in processes of their own, for tests of the process that waits for them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxhw.cli.common import supervisor

INTERRUPTED = "interrupted; nothing was written half\n"
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 120
"""Seconds until a test gives up."""

STUB = """
import sys, click
from onnxhw.cli import app, main
@click.command()
@click.option("--json", is_flag=True)
def command(json):
    import collections, ctypes, itertools, os, signal, subprocess, tempfile, time
    click.echo("begun", err=True)
    {body}
app.Commands.get_command = lambda *_: command
sys.argv = ["onnxhw", "boards", *sys.argv[1:]]
sys.exit(main())
"""
"""The whole way from the command line, to a command of the test's own."""
DEAF = "collections.deque(itertools.repeat(0), maxlen=0)"
"""Native code without an end, in which Python answers no signal."""


def heeded():
    """Signals that whoever started the tests ignores are not ignored."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)


def stub(body, before=""):
    return [sys.executable, "-c", before + STUB.format(body=body)]


def begin(words, prepare=heeded, **how):
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, preexec_fn=prepare, **how)


def done(words, prepare=heeded, **how):
    """Status, stdout and stderr."""
    process = begin(words, prepare, **how)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def children(process):
    return supervisor._descendants(process)


def wait_for(sign):
    end = time.monotonic() + PATIENCE
    while not sign():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(process):
    """Has it ended, whoever it belongs to now?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
