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
"""Seconds after which a signal is looked at again that came while native code was being imported."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def interruptible() -> Iterator[None]:
    """Make the signals raise `KeyboardInterrupt` in the block; those that the process ignores stay ignored."""
    last = -PATIENCE

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if _in_native_import(frame):
            again = threading.Timer(AGAIN, signal.raise_signal, [number])
            again.daemon = True
            again.start()
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
