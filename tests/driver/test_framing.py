"""Frames against published vectors and against each other's inverse."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.driver.framing import Frame, FrameReader, cobs_decode, cobs_encode, crc32c
from onnxhw.errors import LinkError
from onnxhw.isa.link import HEAD_WORDS, Header, Info
from onnxhw.presets import preset


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"123456789", 0xE3069283),
        # RFC 3720, B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc_vectors(data, crc):
    assert crc32c(data) == crc


@given(st.sampled_from([0, 1, 3, 4, 5, 511, 512, 513, 1500]), st.integers(0, 600), st.integers(0, 2**32))
def test_crc_bit_by_bit_and_in_pieces(size, cut, seed):
    data = random.Random(seed).randbytes(size)
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    assert crc32c(data) == value ^ 0xFFFFFFFF
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


LONG = bytes(range(1, 255))


@pytest.mark.parametrize(
    ("plain", "stuffed"),
    [
        (b"", "01"),
        (b"\0", "01 01"),
        (b"\0\0", "01 01 01"),
        (b"\x11\x22\0\x33", "03 11 22 02 33"),
        (b"\x11\x22\x33\x44", "05 11 22 33 44"),
        (b"\x11\0\0\0", "02 11 01 01 01"),
        (LONG, "ff" + LONG.hex()),
        (b"\0" + LONG, "01 ff" + LONG.hex()),
        (LONG + b"\xff", "ff" + LONG.hex() + "02 ff"),
        (LONG + b"\0", "ff" + LONG.hex() + "01 01"),
        (LONG[1:] + b"\0\x01", "fe" + LONG[1:].hex() + "02 01"),
        (LONG + LONG, "ff" + LONG.hex() + "ff" + LONG.hex()),
    ],
)
def test_cobs_vectors(plain, stuffed):
    assert cobs_encode(plain) == bytes.fromhex(stuffed)
    assert cobs_decode(bytes.fromhex(stuffed)) == plain


@given(st.lists(st.one_of(st.binary(max_size=10), st.sampled_from([253, 254, 255, 508]).map(lambda n: b"x" * n))))
def test_cobs_inverse(pieces):
    for data in (b"".join(pieces), b"\0".join(pieces)):
        stuffed = cobs_encode(data)
        assert 0 not in stuffed
        assert cobs_decode(stuffed) == data


@pytest.mark.parametrize("stuffed", ["05 11", "00", "01 00", "ff 01"])
def test_cut_cobs_is_refused(stuffed):
    assert cobs_decode(bytes.fromhex(stuffed)) is None


def test_frames_in_any_portions():
    rng = random.Random(0)
    frames = [Frame(Header(1, i, 2, 3, 1), rng.randbytes(4 * rng.randrange(128))) for i in range(30)]
    line = b"\0\0".join(frame.encode() for frame in frames)
    reader, got = FrameReader(), []
    while line:
        size = rng.randrange(1, 400)
        got += reader.feed(line[:size])
        line = line[size:]
    assert got == frames
    assert reader.damaged == 0


def test_every_flipped_bit_of_a_line_is_found():
    frame = Frame(Header(0x93, 7, 0, 5, 2), b"\0\x01\x02\0\xff\0\0\x03")
    line = frame.encode()
    for bit in range(8 * len(line)):
        spoiled = bytearray(line)
        spoiled[bit // 8] ^= 1 << bit % 8
        reader = FrameReader()
        assert list(reader.feed(bytes(spoiled) + b"\0")) == []
        assert reader.damaged >= 1
        assert list(reader.feed(line)) == [frame]


def test_noise_without_delimiter_does_not_pile_up():
    reader = FrameReader()
    for _ in range(100):
        assert list(reader.feed(b"\x55" * 1000)) == []
    assert len(reader._pending) < 1000


def test_header_layout():
    header = Header(0x23, 0xA5, 2, 0x123456, 0x80, 0x77)
    assert header.pack() == bytes.fromhex("23 a5 02 77 56 34 12 80")
    assert Header.unpack(header.pack()) == header


def test_description_reads_itself_back():
    info = Info.of(preset("ulx3s-85f"), clock_hz=90_000_000, baud=3_000_000, build_id=1 << 63 | 5, standalone=True)
    words = info.to_words()
    assert Info.from_words(words) == info
    head = Info.from_words(words[:HEAD_WORDS])
    assert head.config is None
    assert (head.fingerprint, head.geometry) == (info.fingerprint, (16, 16, 16, 16))
    with pytest.raises(LinkError, match=r"E9105 .*starts with 0x00000000"):
        Info.from_words([0] * HEAD_WORDS)
    words[1] = 9
    with pytest.raises(LinkError, match=r"E9106 .*speaks link protocol 9, this release 6"):
        Info.from_words(words)
