"""Frames encoded together: the same bytes as `Frame.encode` gives, at a fraction of the time per frame."""

from collections.abc import Sequence

import numpy as np

from .framing import Frame

LONG = 255
"""A distance between zeros from which a COBS piece has to be split."""


def encode_frames(frames: Sequence[Frame]) -> list[bytes]:
    """``[frame.encode() for frame in frames]``."""
    if len(frames) == 1:
        return [frames[0].encode()]
    # Each frame between a mark in front, where its first code will be, and the delimiter.
    bodies = [b"\0" + frame.plain() + b"\0" for frame in frames]
    line = np.frombuffer(bytearray().join(bodies), np.uint8)
    zeros = np.flatnonzero(line == 0)
    steps = np.diff(zeros)
    line[zeros[:-1]] = steps
    data, found, end = line.tobytes(), [], 0
    for body in bodies:
        start, end = end, end + len(body)
        found.append(data[start : end - 1] + b"\0")
    for mark in zeros[:-1][steps >= LONG].tolist():
        index = int(np.searchsorted(np.cumsum([len(body) for body in bodies]), mark, side="right"))
        found[index] = frames[index].encode()
    return found
