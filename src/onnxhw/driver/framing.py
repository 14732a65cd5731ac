"""Frames as bytes: COBS and CRC-32C. The layout of a frame is in `onnxhw.isa.link`."""

from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

from ..isa.link import CRC_BYTES, HEADER_BYTES, Header


def crc32c(data: bytes, before: int = 0) -> int:
    """CRC-32C (Castagnoli), as in iSCSI: ``crc32c(b"123456789") == 0xE3069283``; `before`: that of bytes before."""
    found: int = google_crc32c.extend(before, data)
    return found


def cobs_encode(data: bytes) -> bytes:
    """The stuffed form of `data`, without zero bytes and without the delimiter."""
    if len(data) < 254:  # no piece can be long
        return b"".join(bytes((len(piece) + 1,)) + piece for piece in data.split(b"\0"))
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
            code = data[at]
            whole[at] = 0
            at += code
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


class Frame(NamedTuple):
    """A decoded frame with a right CRC and length."""

    header: Header
    payload: bytes = b""

    def encode(self) -> bytes:
        """The bytes for the line, the delimiter at the end included."""
        return cobs_encode(self.plain()) + b"\0"

    def plain(self) -> bytes:
        """The bytes before they are stuffed, the CRC at the end."""
        body = self.header.pack() + self.payload
        return body + crc32c(body).to_bytes(CRC_BYTES, "little")

    @classmethod
    def decode(cls, stuffed: bytes) -> "Frame | None":
        """The frame between two delimiters, or None if it is damaged."""
        body = cobs_decode(stuffed)
        if body is None or len(body) < HEADER_BYTES + CRC_BYTES:
            return None
        if crc32c(body) != WHOLE:
            return None
        return cls(Header.unpack(body), body[HEADER_BYTES:-CRC_BYTES])


WHOLE = 0x48674BC7
"""CRC-32C of anything with its own CRC behind it."""
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
