"""The C++ compiler: which one, and compiling many files at once so that an interrupt leaves no child behind."""

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO

from ...build import tools
from ...errors import ToolError

HINT = "install a C++ compiler (Debian: apt install g++), or: pip install ziglang"
TAIL = 20
"""Lines of a compiler's output shown when it fails."""


def command() -> tuple[str, ...]:
    """The words that start a C++ compiler: ``CXX``, g++, clang++ or the ``ziglang`` package.

    `ToolError` E7401 if there is none.
    """
    if chosen := os.environ.get("CXX"):
        words = tuple(shlex.split(chosen, posix=os.name != "nt"))
        if not words or shutil.which(words[0]) is None:
            raise ToolError("E7401", f"CXX names {chosen!r}, which cannot be found", hint=HINT)
        return words
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "c++")
    raise ToolError("E7401", "no C++ compiler is installed", hint=HINT)


@lru_cache(maxsize=4)
def version(words: tuple[str, ...]) -> str:
    """The first line of ``--version``; part of the key of everything compiled."""
    try:
        done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError("E7402", f"cannot start {words[0]}: {error.strerror}", hint=HINT) from error
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise ToolError("E7402", f"{' '.join(words)} --version failed: {done.stderr.strip()}", hint=HINT)
    return lines[0]


@lru_cache(maxsize=1)
def processor() -> str:
    """Model and extensions of an x86 processor, as Linux tells them; empty elsewhere: code is for any of its kind."""
    if platform.machine() != "x86_64":
        return ""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0]
    except OSError:
        return ""
    found = dict(re.findall(r"^(model name|flags)\s*: (.*)$", text, re.M))
    return " ".join(found.values()) if "flags" in found else ""


def run_all(commands: Sequence[Sequence[str]], directory: Path, *, jobs: int, finished: Callable[[int], None]) -> None:
    """Run compiler commands in `directory`, `jobs` at a time; `finished` is told how many are done.

    `ToolError` E7403 with the end of the output of the first that fails. Any exception, an interrupt included, kills
    what still runs.
    """
    waiting = list(enumerate(commands))
    running: list[tuple[tools.Child, Path]] = []
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                number, words = waiting.pop(0)
                log = directory / f"{number}.log"
                with log.open("wb") as sink:
                    running.append((_start(words, directory, sink), log))
            ended = next((item for item in running if item[0].poll() is not None), None)
            if ended is None:
                time.sleep(0.02)
                continue
            running.remove(ended)
            process, log = ended
            if process.returncode:
                text = "\n".join(log.read_text(errors="replace").rstrip().splitlines()[-TAIL:])
                what = f"the C++ compiler failed with status {process.returncode}; the end of its output:\n{text}"
                raise ToolError("E7403", what, where=str(process.args[0]) if isinstance(process.args, list) else "")
            done += 1
            finished(done)
    finally:
        for process, _ in running:
            tools.stop(process)


def _start(words: Sequence[str], directory: Path, sink: IO[bytes]) -> tools.Child:
    try:
        return tools.launch(words, directory, sink, os.environ, scratch=directory)
    except OSError as error:
        raise ToolError("E7402", f"cannot start {words[0]}: {error.strerror}", hint=HINT) from error
