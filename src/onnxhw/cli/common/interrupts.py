"""Ctrl-C, SIGTERM and a closed terminal: each unwinds the command once, so that files and children go."""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from types import FrameType

from ...errors import OnnxhwError
from . import grace_period

PATIENCE = 2.0
"""Seconds for which further signals are ignored: whatever the first has set off is being cleaned up."""

AGAIN = 0.02
"""Seconds after which a signal is looked at again that came at a bad time."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


_whole: list[None] = []
"""As many as there are blocks of `undivided` that have not ended."""


@contextmanager
def undivided() -> Iterator[None]:
    """The block is short and must end: signals that come in it are looked at again afterwards."""
    _whole.append(None)
    try:
        yield
    finally:
        _whole.pop()


@dataclass
class Finishing:
    """A block of `finishing`: what it says to a signal, for how many seconds it may then go on, and when the first
    came, on the monotonic clock."""

    text: str
    limit: float
    since: float | None = None

    @property
    def interrupted(self) -> bool:
        """A signal has come."""
        return self.since is not None


_finishing: list[Finishing] = []
"""The blocks of `finishing` that have not ended, outermost first."""


@contextmanager
def finishing(text: str, limit: float) -> Iterator[Finishing]:
    """The block writes what must not be written half: the first signal in it is answered by `text` on stderr.

    The second, or the end of `limit` seconds after the first, raises `KeyboardInterrupt`. Whether there was a first is
    in what the block gets: raising `KeyboardInterrupt` after it is up to the caller.
    """
    block = Finishing(text, limit)
    with grace_period.more(limit):
        _finishing.append(block)
        try:
            yield block
        finally:
            _finishing.pop()


@dataclass
class Interruption:
    """Of a block of `interruptible`: whether a signal has raised `KeyboardInterrupt` in it. What then ends it is that,
    even if a library has made another exception of it."""

    raised: bool = False


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Make the signals raise `KeyboardInterrupt` in the block; those that the process ignores stay ignored. No warning
    is shown after one: of what is being thrown away some libraries say that it was not used."""
    last, latest, interruption = -PATIENCE, signal.SIGINT.value, Interruption()
    main, later = threading.main_thread().ident, list[threading.Timer]()

    def come_again(number: int, seconds: float) -> None:
        later.append(threading.Timer(seconds, signal.pthread_kill, [main, number]))
        later[-1].daemon = True
        later[-1].start()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last, latest
        now, block = time.monotonic(), _finishing[-1] if _finishing else None
        if _whole or _in_native_import(frame):
            come_again(number, AGAIN)  # the main thread may wait for something
        elif block and block.since is None:
            block.since = now
            with suppress(OSError):  # past Python's buffer, which may be locked
                os.write(2, f"{block.text}\n".encode())
            come_again(number, block.limit)
        elif block and block.since is not None and now - block.since < grace_period.ONCE:
            pass
        elif now - last >= PATIENCE:
            last, latest, interruption.raised = now, number, True
            warnings.simplefilter("ignore")
            raise KeyboardInterrupt

    def lost(what: "sys.UnraisableHookArgs") -> None:
        """Python has thrown an interrupt away, and would show it: it was raised in a destructor or a weak reference's
        callback."""
        nonlocal last
        if not issubclass(what.exc_type, KeyboardInterrupt):
            shown(what)
            return
        last = -PATIENCE
        come_again(latest, AGAIN)

    before, shown = {}, sys.unraisablehook
    sys.unraisablehook = lost
    try:
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, interrupt)
    except ValueError:  # not in the main thread: signals are not ours
        pass
    try:
        yield interruption
    finally:
        sys.unraisablehook = shown
        for timer in later:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def script_status(main: Callable[[], int]) -> int:
    """Exit status of a script whose `main` may be interrupted: then 130, and a word on standard error. An
    `OnnxhwError` is told there, too, and has its own status."""
    try:
        with interruptible():
            return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OnnxhwError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_status


def _in_native_import(frame: FrameType | None) -> bool:
    """Whether an extension module is being initialised: onnx's ends with a segmentation fault if Python code that it
    calls raises."""
    while frame is not None:
        if frame.f_code.co_name in ("create_module", "exec_module") and isinstance(
            frame.f_locals.get("self"), ExtensionFileLoader
        ):
            return True
        frame = frame.f_back
    return False
