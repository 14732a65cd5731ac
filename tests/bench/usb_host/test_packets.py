"""Packets of USB against the numbers that the USB-IF publishes, and back."""

import random
from itertools import pairwise

import numpy as np
import pytest
from usb_host.packets import (
    OWN_TICKS,
    TICKS,
    Packet,
    Pid,
    WireError,
    bits_of,
    crc16,
    data,
    handshake,
    read,
    token,
    unpack,
    waveform,
)

DRIVEN = 4


def sent(text: str) -> int:
    """Bits in the order in which they are sent, as a number whose lowest bit is the first."""
    return int(text[::-1], 2)


def residue(bits: list[int], width: int, generator: int) -> int:
    """The remainder that a receiver is left with (USB 2.0, 8.3.5): all bits with the CRC, in the order of the line."""
    state = (1 << width) - 1
    for bit in bits:
        out = state >> width - 1 ^ bit
        state = (state << 1 ^ (generator if out else 0)) & (1 << width) - 1
    return state


def bits_in_order(packet: bytes) -> list[int]:
    return [byte >> i & 1 for byte in packet for i in range(8)]


def test_crcs_leave_the_residues_of_the_specification() -> None:
    """01100 for tokens (8.3.5.1), 1000000000001101 for data (8.3.5.2)."""
    for number in range(2048):
        assert residue(bits_in_order(token(Pid.SOF, number)[1:]), 5, 0b00101) == 0b01100
    assert token(Pid.SETUP, 0).hex() == "2d0010"  # address 0, endpoint 0: what every enumeration begins with
    rng = random.Random(2)
    for length in (0, 1, 2, 8, 63, 64):
        packet = data(Pid.DATA0, rng.randbytes(length))
        assert residue(bits_in_order(packet[1:]), 16, 0x8005) == 0b1000000000001101


@pytest.mark.parametrize(
    ("content", "bits"), [("00010203", "1111011101011110"), ("23456789", "0111000000111000"), ("", "0" * 16)]
)
def test_crc16_of_the_published_examples(content: str, bits: str) -> None:
    """The same, the examples of data; of no data the CRC is 0."""
    assert crc16(bytes.fromhex(content)) == sent(bits)


def from_device(packet: bytes) -> bytes:
    """What a trace has of a packet that the device sends, with quiet ticks around it."""
    levels = np.repeat(np.array(bits_of(packet), np.uint8) | DRIVEN, OWN_TICKS).tobytes()
    return bytes([1]) * 23 + levels + bytes([1])


def test_packets_come_back() -> None:
    rng = random.Random(0)
    contents = [b"", bytes(64), b"\xff" * 64, *(rng.randbytes(rng.randrange(65)) for _ in range(200))]
    for content in contents:
        for pid in (Pid.DATA0, Pid.DATA1):
            assert read(from_device(data(pid, content))) == (23, Packet(pid, content))
    for pid in (Pid.ACK, Pid.NAK, Pid.STALL):
        assert read(from_device(handshake(pid))) == (23, Packet(pid))


def test_stuffing_never_leaves_seven_equal_levels() -> None:
    for content in (b"\xff" * 64, bytes(range(64)), b"\x7e\x7f\x80\xfe"):
        levels = bits_of(data(Pid.DATA0, content))
        longest = run = 1
        for last, level in pairwise(levels):
            run = run + 1 if level == last else 1
            longest = max(longest, run)
        assert longest <= 7
    assert len(bits_of(data(Pid.DATA0, b"\xff" * 6))) > len(bits_of(data(Pid.DATA0, bytes(6))))


def test_every_damaged_bit_is_seen() -> None:
    """Of a data packet each bit inverted, alone and with its neighbour: no packet, or the same one."""
    packet = data(Pid.DATA1, random.Random(1).randbytes(20))
    right = unpack(packet)
    for at in range(8 * len(packet)):
        for width in (1, 2):
            number = int.from_bytes(packet, "little") ^ ((1 << width) - 1) << at
            broken = (number & (1 << 8 * len(packet)) - 1).to_bytes(len(packet), "little")
            if broken == packet:
                continue
            with pytest.raises(WireError):
                unpack(broken)
    trace = bytearray(from_device(packet))
    for at in range(23, len(trace) - 1):
        hit = bytes(trace[:at] + bytes([trace[at] ^ 3]) + trace[at + 1 :])
        try:
            found = read(hit)[1]
        except WireError:
            continue
        assert found == right


def test_the_host_sends_at_its_own_clock() -> None:
    """The device's clock is 0.16 % fast, so a packet of the host takes more of its ticks than its own would."""
    packet = token(Pid.SOF, 0x123)
    levels = waveform(packet)
    assert len(levels) == round(TICKS * len(bits_of(packet)))
    assert 1.001 < TICKS / OWN_TICKS < 1.0025
    assert all(level & DRIVEN for level in levels)
