"""Ctrl-C, SIGTERM and a closed terminal: each unwinds the command once, so that files and children go."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from types import FrameType

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


@contextmanager
def interruptible() -> Iterator[None]:
    """Make the signals raise `KeyboardInterrupt` in the block; those that the process ignores stay ignored."""
    last = -PATIENCE
    main, later = threading.main_thread().ident, list[threading.Timer]()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if _whole or _in_native_import(frame):
            later.append(threading.Timer(AGAIN, signal.pthread_kill, [main, number]))  # which may wait for something
            later[-1].daemon = True
            later[-1].start()
        elif time.monotonic() - last >= PATIENCE:
            last = time.monotonic()
            raise KeyboardInterrupt

    before = {}
    try:
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, interrupt)
    except ValueError:  # not in the main thread: signals are not ours
        pass
    try:
        yield
    finally:
        for timer in later:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


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
