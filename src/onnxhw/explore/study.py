"""`StudyFile`: every point of a study, a line each, written when it is there. A study goes on where it stood.

The first line says what the study is of. Each further line is a point with the choice that it is of, or null for a
configuration of the front that was computed again, in the order of computing, which is not that of asking. A line that
a killed process has left unfinished is dropped.
"""

import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import OnnxhwError, UsageError
from ..files import parse_json, reason
from .point import DesignPoint
from .search import text_of
from .space import Values, restated

FORMAT = 2
"""Version of the lines."""
LARGEST = 1 << 30
"""Bytes of a study that is read: a point has a thousand, so it is one of a million points."""
ANOTHER = "name another file (--study), or remove this one to begin anew"
"""What to do about a file that is no study of these models."""


class StudyFile:
    """The file of a study, opened for more points; `points` are those it has, `seconds` what they took together, and
    `notes` results of synthesis and place and route.

    `header` says what decides over a point: a file with another one is of another study.

    `UsageError` E2802 for a file of another study or none of ours, or one of more than `LARGEST` bytes, E2803 for one
    that cannot be read or written, E2804 for one that another process writes.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path, self.points, self.seconds = path, dict[str, DesignPoint](), 0.0
        self.notes: dict[str, dict[str, Any]] = {}
        self.models = tuple(header["models"])
        self._lock = threading.Lock()
        first = json.dumps({"format": FORMAT, **header}, sort_keys=True)
        try:
            if path.exists() and not path.is_file():
                what = "a study is kept in a regular file"
                raise UsageError("E2803", what, where=str(path), hint="name another --study")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115  (it stays open)
        except OSError as error:
            raise self._refused(error) from error
        try:
            self._own()
            if self._file.seek(0, os.SEEK_END) > LARGEST:
                raise UsageError("E2802", f"more than {LARGEST:,} bytes are no study", where=str(path), hint=ANOTHER)
            self._file.seek(0)
            data = self._file.read()
            whole = data[: data.rfind(b"\n") + 1]
            lines = whole.splitlines()
            if lines and lines[0].decode(errors="replace") != first:
                raise self._other(lines[0], first)
            self._read(lines[1:])
            if len(whole) < len(data):
                os.truncate(path, len(whole))
            if not lines:
                self._append(first)
        except BaseException:
            self._file.close()
            raise

    def add(self, key: str, values: Values | None, point: DesignPoint, seconds: float) -> None:
        """Note a point, of a choice or (`values` is None, `key` its fingerprint) of a configuration. Another thread may
        do so, too; the same again changes nothing. `UsageError` E2803; the file is then as it was before."""
        seconds = round(seconds, 3)  # as the file has them, so that a study which goes on adds up the same
        record = {"values": values and dict(values), "seconds": seconds, "point": point.record()}
        with self._lock:
            if key not in self.points:
                self._append(json.dumps(record))
                self.points[key] = point
                self.seconds += seconds

    def note(self, key: str, record: Mapping[str, Any]) -> None:
        """Note another result under a key, as `add` does a point."""
        with self._lock:
            if key not in self.notes:
                self._append(json.dumps({"note": key, "record": dict(record)}))
                self.notes[key] = dict(record)

    def close(self) -> None:
        """No more points."""
        self._file.close()

    def _append(self, line: str) -> None:
        size = os.fstat(self._file.fileno()).st_size
        try:
            rest = line.encode() + b"\n"
            while rest:  # unbuffered: what a full disk does not take is not written later
                rest = rest[self._file.write(rest) or 0 :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # else the next reader drops the unfinished line
                os.ftruncate(self._file.fileno(), size)
            raise self._refused(error) from error

    def _read(self, lines: Iterable[bytes]) -> None:
        for number, line in enumerate(lines, 2):
            try:
                record = parse_json(line.decode())
                if "note" in record:
                    self.notes[str(record["note"])] = dict(record["record"])
                    continue
                point, values = DesignPoint.from_record(record["point"]), record["values"]
                if len(point.cycles) not in (0, len(self.models)):
                    raise ValueError(f"cycles of {len(point.cycles)} models, not {len(self.models)}")
                self.points[text_of(restated(values)) if values else point.config.fingerprint] = point
                self.seconds += float(record["seconds"])
            except (ValueError, KeyError, TypeError, AttributeError, OnnxhwError) as error:
                what = f"line {number} is not a point of a study: {reason(error)}"
                raise UsageError("E2802", what, where=str(self.path), hint="remove the line, or the file") from error

    def _own(self) -> None:
        try:
            import fcntl  # not on every system
        except ImportError:
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            what = "another process writes this study"
            raise UsageError(
                "E2804", what, where=str(self.path), hint="wait for it, or name another --study"
            ) from error

    def _other(self, line: bytes, first: str) -> UsageError:
        differs = "it is no study"
        try:
            theirs, ours = parse_json(line.decode()), json.loads(first)
            differs = "other " + ", ".join(name for name in ours if theirs.get(name) != ours[name])
        except (ValueError, AttributeError):
            pass
        return UsageError("E2802", f"not the file of this study: {differs}", where=str(self.path), hint=ANOTHER)

    def _refused(self, error: OSError) -> UsageError:
        what = f"the study cannot be kept: {reason(error)}"
        hint = "make room, or name another file (--study); the same command then goes on with the points that it has"
        return UsageError("E2803", what, where=str(self.path), hint=hint)
