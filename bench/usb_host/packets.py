"""Packets of USB at full speed as levels of D+ and D-, and back (USB 2.0, chapters 7.1 and 8.3).

A packet is SYNC, a packet id, content, then SE0 for two bits and J for one. A 0 is a change of level (NRZI), and after
six ones a 0 is stuffed. Written from the specification, without a look at the gateware.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import groupby

import numpy as np

from .model import DM, DP, DRIVEN, TICK_HZ

BIT_HZ = 12_000_000
"""Full speed."""
TICKS = TICK_HZ / BIT_HZ
"""Ticks of the device's clock in a bit of the host."""
OWN_TICKS = 4
"""Ticks in a bit of the device."""


class Pid(IntEnum):
    """Packet ids, without their complement."""

    OUT, IN, SOF, SETUP = 0b0001, 0b1001, 0b0101, 0b1101
    DATA0, DATA1 = 0b0011, 0b1011
    ACK, NAK, STALL = 0b0010, 0b1010, 0b1110


class WireError(Exception):
    """Levels that are no packet; the text says why. A host takes no notice of such a packet."""


@dataclass(frozen=True)
class Packet:
    """A packet of the device: DATA0 or DATA1 with its data, or a handshake."""

    pid: Pid
    data: bytes = b""


def crc5(number: int) -> int:
    """CRC of the 11 bits of a token, first bit lowest, as it is sent: generator x^5 + x^2 + 1."""
    state = 0b11111
    for i in range(11):
        state = state >> 1 ^ (0b10100 if (state ^ number >> i) & 1 else 0)
    return state ^ 0b11111


@lru_cache(maxsize=1)
def _table() -> list[int]:
    """A byte's part of the CRC with generator x^16 + x^15 + x^2 + 1, first bit lowest."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xA001 if byte & 1 else 0)
        table.append(byte)
    return table


def crc16(data: bytes) -> int:
    """CRC of a data packet's bytes, as it is sent."""
    state, table = 0xFFFF, _table()
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state ^ 0xFFFF


def token(pid: Pid, number: int) -> bytes:
    """The bytes of a token for 11 bits: address and endpoint, or the frame's number."""
    return bytes([pid | (~pid & 15) << 4]) + (number | crc5(number) << 11).to_bytes(2, "little")


def data(pid: Pid, content: bytes) -> bytes:
    """The bytes of a data packet."""
    return bytes([pid | (~pid & 15) << 4]) + content + crc16(content).to_bytes(2, "little")


def handshake(pid: Pid) -> bytes:
    """The byte of a handshake."""
    return bytes([pid | (~pid & 15) << 4])


def bits_of(packet: bytes) -> list[int]:
    """Levels of a packet, one per bit, with SYNC and end: `DP` is J, `DM` is K, 0 is SE0."""
    bits = np.unpackbits(np.frombuffer(b"\x80" + packet, np.uint8), bitorder="little").tolist()
    levels, level, ones = [], DP, 0
    for bit in bits:
        if bit:
            ones += 1
        else:
            level, ones = DP + DM - level, 0
        levels.append(level)
        if ones == 6:
            level, ones = DP + DM - level, 0
            levels.append(level)
    return [*levels, 0, 0, DP]


def waveform(packet: bytes, start: float = 0.0) -> bytes:
    """The levels that a host drives, tick by tick; the first bit begins at `start` (in ticks, a fraction of one)."""
    levels = np.array(bits_of(packet), np.uint8) | DRIVEN
    edges = np.round(start + TICKS * np.arange(len(levels) + 1)).astype(np.int64)
    return np.repeat(levels, np.diff(edges)).tobytes()


def read(trace: bytes) -> tuple[int, Packet]:
    """The device's packet in a trace and the tick in which it begins; `WireError` without one, or if it is no
    packet."""
    driven = np.frombuffer(trace, np.uint8) & DRIVEN
    found = np.flatnonzero(driven)
    if not len(found):
        raise WireError("no answer")
    first, end = int(found[0]), int(found[-1]) + 1
    if len(found) != end - first:
        raise WireError("the device lets go of the bus within a packet")
    levels: list[int] = []
    for level, run in groupby(value & (DP | DM) for value in trace[first:end]):
        length = sum(1 for _ in run)
        count = round(length / OWN_TICKS)
        if abs(length - OWN_TICKS * count) > 1 or not count:
            raise WireError(f"a level of {length} ticks")
        levels += [level] * count
    return first, unpack(_bytes_of(levels))


def _bytes_of(levels: list[int]) -> bytes:
    """The bytes behind SYNC; `WireError`."""
    # A device may drive J before SYNC; the end is SE0, SE0, J.
    while levels and levels[0] == DP:
        levels = levels[1:]
    if levels[-3:] != [0, 0, DP] or any(level not in (DP, DM) for level in levels[:-3]):
        raise WireError(f"no end of packet: {levels[-4:]}")
    bits, last, ones = [], DP, 0
    for level in levels[:-3]:
        bit = int(level == last)
        last = level
        if ones == 6:
            if bit:
                raise WireError("seven ones")
            ones = 0
            continue
        ones = ones + 1 if bit else 0
        bits.append(bit)
    if bits[:8] != [0, 0, 0, 0, 0, 0, 0, 1] or len(bits) % 8:
        raise WireError(f"{len(bits)} bits, beginning with {bits[:8]}")
    return np.packbits(np.array(bits[8:], np.uint8), bitorder="little").tobytes()


def unpack(content: bytes) -> Packet:
    """The packet of its bytes; `WireError` for a wrong id, length or CRC."""
    number = content[0] & 15 if content else 0
    if not content or content[0] >> 4 != ~number & 15 or number not in (*_DATA, *_HANDSHAKES):
        raise WireError(f"packet id {content[:1].hex() or 'missing'}")
    pid = Pid(number)
    if pid in _HANDSHAKES:
        if len(content) != 1:
            raise WireError(f"a handshake of {len(content)} bytes")
        return Packet(pid)
    if len(content) < 3 or crc16(content[1:-2]) != int.from_bytes(content[-2:], "little"):
        raise WireError("the CRC of a data packet is wrong")
    return Packet(pid, content[1:-2])


_DATA = (Pid.DATA0, Pid.DATA1)
_HANDSHAKES = (Pid.ACK, Pid.NAK, Pid.STALL)
