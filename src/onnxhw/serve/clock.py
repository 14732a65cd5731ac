"""`ClockFile`: the simulated board's own side of `onnxhw.driver.simulated_time`."""

import fcntl
import mmap
import os
import stat
from pathlib import Path

from ..closeable import Closeable
from ..driver.simulated_time import SIZE, TEXT, RunningBoard, clock_file, folder
from ..errors import UsageError


class ClockFile(Closeable):
    """Publishes the time of a simulated board for as long as it is open; a context manager.

    The file is locked, which is how others know that the board is alive; a killed process' file is taken over.

    Errors: `UsageError` E2580 if another simulated board has the same address, E2581 if the file cannot be written.
    """

    def __init__(self, board: RunningBoard) -> None:
        path = clock_file(board.address)
        self.path = path if path is not None else folder() / f"{board.address.replace(':', '-')}-{board.pid}"
        try:
            self._view = self._make(board)
        except BlockingIOError as error:
            what = f"another simulated board runs at {board.address}"
            raise UsageError("E2580", what, hint="stop it, or choose another port") from error
        except OSError as error:
            raise UsageError(
                "E2581", f"the clock of the simulated board cannot be written: {error.strerror}", where=str(self.path)
            ) from error
        self._words = memoryview(self._view).cast("Q")

    def _make(self, board: RunningBoard) -> mmap.mmap:
        home = self.path.parent
        home.mkdir(mode=0o700, exist_ok=True)
        found = home.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(1, "the folder belongs to someone else", str(home))
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = board.to_json().encode() + b"\n"
            os.ftruncate(self._file, 0)
            os.ftruncate(self._file, SIZE)
            os.pwrite(self._file, text, TEXT)
            return mmap.mmap(self._file, SIZE)
        except OSError:
            os.close(self._file)
            raise

    def set(self, seconds: float) -> None:
        """The board's time now."""
        self._words[0] = int(seconds * 1e9)

    def close(self) -> None:
        """Remove the file."""
        Path(self.path).unlink(missing_ok=True)
        self._words.release()
        self._view.close()
        os.close(self._file)

