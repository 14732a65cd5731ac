"""Frames as bytes: COBS and CRC-32C. The layout of a frame is in `onnxhw.isa.link`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..isa.link import CRC_BYTES, HEADER_BYTES, Header

SHORT = 40
"""Bytes up to which a loop is quicker than numpy: most replies."""
BLOCK = 512
"""Bytes whose CRC is made of one look-up each, all at once."""


@lru_cache(maxsize=1)
def byte_tables() -> npt.NDArray[np.uint32]:
    """What a byte adds to the CRC of a block when that many bytes follow it in the block: ``[BLOCK, 256]``."""
    value: npt.NDArray[np.uint32] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = (value >> 1 ^ (value & 1) * np.uint32(0x82F63B78)).astype(np.uint32)
    first, tables = value, np.empty((BLOCK, 256), np.uint32)
    for at in range(BLOCK):
        tables[at] = value
        value = value >> 8 ^ first[value & 0xFF]
    return tables


@lru_cache(maxsize=1)
def _byte_table() -> list[int]:
    """What a byte adds to the CRC when none follows it."""
    found: list[int] = byte_tables()[0].tolist()
    return found


def crc32c(data: bytes, before: int = 0) -> int:
    """CRC-32C (Castagnoli), as in iSCSI: ``crc32c(b"123456789") == 0xE3069283``.

    `before` is the CRC of bytes that came before. The CRC is linear: the state is added to the first four bytes
    of a block, and every byte adds a number of its own.
    """
    tables, state = byte_tables(), before ^ 0xFFFFFFFF
    if len(data) <= SHORT:
        table = _byte_table()
        for value in data:
            state = state >> 8 ^ table[(state ^ value) & 0xFF]
        return state ^ 0xFFFFFFFF
    for start in range(0, len(data), BLOCK):
        block = np.frombuffer(data, np.uint8, min(BLOCK, len(data) - start), start)
        size = len(block)
        mixed = block.copy()
        first = min(4, size)
        mixed[:first] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8, first)
        parts = tables[_BACKWARDS[BLOCK - size :], mixed]
        state = (state >> 8 * first) ^ int(np.bitwise_xor.reduce(parts))
    return state ^ 0xFFFFFFFF


_BACKWARDS = np.arange(BLOCK - 1, -1, -1)


def cobs_encode(data: bytes) -> bytes:
    """The stuffed form of `data`, without zero bytes and without the delimiter."""
    plain = np.frombuffer(data, np.uint8)
    marks = np.concatenate(([0], np.flatnonzero(plain == 0) + 1, [len(plain) + 1]))
    steps = np.diff(marks)
    if steps.max() < 255:  # no piece is long: every zero, and one in front, becomes the distance to the next
        stuffed = np.concatenate(([0], plain)).astype(np.uint8)
        stuffed[marks[:-1]] = steps
        return stuffed.tobytes()
    out = bytearray()
    *pieces, last = data.split(b"\0")
    for piece in [*pieces, last]:
        at = 0
        while len(piece) - at >= 254:
            out += b"\xff" + piece[at : at + 254]
            at += 254
        out.append(len(piece) - at + 1)
        out += piece[at:]
    if last and len(last) % 254 == 0:
        out.pop()  # a full piece at the end needs no empty one behind it
    return bytes(out)


def cobs_decode(data: bytes) -> bytes | None:
    """Inverse of `cobs_encode`; None if `data` is cut short or holds a zero byte."""
    if 0 in data:
        return None
    if 0xFF not in data:  # every code becomes the zero that it stands for
        whole, at, end = bytearray(data), 0, len(data)
        while at < end:
            whole[at], at = 0, at + data[at]
        return bytes(whole[1:]) if at == end else None
    out, at = bytearray(), 0
    while at < len(data):
        code = data[at]
        piece = data[at + 1 : at + code]
        if len(piece) != code - 1:
            return None
        out += piece
        at += code
        if code != 0xFF and at < len(data):
            out.append(0)
    return bytes(out)


@dataclass(frozen=True)
class Frame:
    """A decoded frame with a right CRC and length."""

    header: Header
    payload: bytes = b""

    def encode(self) -> bytes:
        """The bytes for the line, the delimiter at the end included."""
        body = self.header.pack() + self.payload
        return cobs_encode(body + crc32c(body).to_bytes(CRC_BYTES, "little")) + b"\0"

    @classmethod
    def decode(cls, stuffed: bytes) -> "Frame | None":
        """The frame between two delimiters, or None if it is damaged."""
        body = cobs_decode(stuffed)
        if body is None or len(body) < HEADER_BYTES + CRC_BYTES:
            return None
        if crc32c(body[:-CRC_BYTES]) != int.from_bytes(body[-CRC_BYTES:], "little"):
            return None
        return cls(Header.unpack(body), body[HEADER_BYTES:-CRC_BYTES])


LONGEST = HEADER_BYTES + 512 + CRC_BYTES + 4
"""Bytes of the longest stuffed frame; more without a delimiter is noise."""


class FrameReader:
    """Frames out of a stream of bytes that arrive in any portions."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self.damaged = 0
        """Pieces between delimiters that were no frames."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The whole frames that these bytes complete."""
        self._pending += data
        *pieces, rest = bytes(self._pending).split(b"\0")
        self._pending = bytearray(rest[-LONGEST:] if len(rest) > LONGEST else rest)
        for piece in pieces:
            frame = Frame.decode(piece) if piece else None
            if frame is not None:
                yield frame
            elif piece:
                self.damaged += 1
