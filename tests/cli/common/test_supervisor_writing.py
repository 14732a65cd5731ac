"""A command that is interrupted while it writes what must not be written half."""

import os
import signal
import time

import pytest

from onnxhw.cli.common import supervisor

from .processes import (
    DEAF,
    ENDS,
    INTERRUPTED,
    begin,
    children,
    stub,
    wait_for,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")


WRITES = """from onnxhw.cli.common.interrupts import finishing
    from onnxhw.build import tools
    from pathlib import Path
    with finishing("waiting", {limit}) as block:
        Path("{place}/writes").touch()
        {work}
    click.echo(f"whole, {{block.interrupted}}")
    {end}"""
"""A command that must not stop in the middle, until there is a file `end`."""
UNTIL = 'tools.run("until", [], Path("{place}"))'


def written(tmp_path, *, limit=600, work=UNTIL, end="raise KeyboardInterrupt"):
    """The command in the middle of writing."""
    tool = tmp_path / "until"
    tool.write_text(f"#!/bin/sh\nwhile [ ! -e {tmp_path}/end ]; do sleep 0.05; done\n")
    tool.chmod(0o755)
    body = WRITES.format(limit=limit, place=tmp_path, work=work.format(place=tmp_path), end=end)
    process = begin(stub(body), env={**os.environ, "UNTIL": str(tool)})
    wait_for((tmp_path / "writes").exists)
    return process


def wait_longer():
    """Longer than an interrupted command usually may take."""
    time.sleep(2 * supervisor.PATIENCE + 0.5)


@pytest.mark.parametrize("number", ENDS)
def test_what_must_not_be_written_half_is_waited_for(number, tmp_path):
    process = written(tmp_path)
    process.send_signal(number)
    assert [process.stderr.readline() for _ in range(2)] == ["begun\n", "waiting\n"]
    wait_longer()
    assert process.poll() is None
    (tmp_path / "end").touch()
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err.lstrip("\n")) == (130, "whole, True\n", INTERRUPTED)


def test_once_it_is_whole_the_command_has_the_usual_time_to_end(tmp_path):
    process = written(tmp_path, end=f'click.echo("deaf", err=True); {DEAF}')
    process.send_signal(signal.SIGINT)
    assert [process.stderr.readline() for _ in range(2)] == ["begun\n", "waiting\n"]
    wait_longer()
    (tmp_path / "end").touch()
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, f"deaf\n{INTERRUPTED}")


@pytest.mark.parametrize("work", [UNTIL, DEAF])
def test_a_second_signal_stops_it(work, tmp_path):
    process = written(tmp_path, work=work)
    process.send_signal(signal.SIGINT)
    wait_longer()
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, "")
    assert err.endswith(INTERRUPTED if work == UNTIL else supervisor.HALF)


def test_the_same_signal_twice_is_one(tmp_path):
    """As `timeout` sends it, and the terminal: to the process and to its group."""
    process = written(tmp_path)
    for one in (process.pid, *children(process.pid)[:1]):
        os.kill(one, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    wait_longer()
    (tmp_path / "end").touch()
    assert process.communicate(timeout=600)[0] == "whole, True\n"


@pytest.mark.parametrize("work", [UNTIL, DEAF])
def test_the_wait_for_what_is_written_is_bounded(work, tmp_path):
    process = written(tmp_path, limit=3, work=work)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, "")
    assert err.endswith(INTERRUPTED if work == UNTIL else supervisor.HALF)
