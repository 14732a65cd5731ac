"""The frames between host and board: every number of the link, shared by gateware and driver.

A frame is COBS-coded and ends with a zero byte. Decoded it is a multiple of four bytes, integers
little-endian::

    0  kind     bits 3..0 command, bits 6..4 protocol version, bit 7 set in replies
    1  seq      a reply repeats the command's
    2  space    command: address space; reply: Status
    3  credit   0 (kept for flow control of a window of frames)
    4  address  24 bits, in 32-bit host words
    7  count    words that follow (WRITE, replies) or that are asked for (READ, INFO), at most MAX_WORDS
    8  payload  count words, in WRITE and in the replies of READ and INFO
    .. crc      CRC-32C of everything before

With at most 512 bytes of payload all errors of one to five bits in a decoded frame are caught (the CRC has
Hamming distance 6 up to 655 bytes).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from ..config import HwConfig
from ..errors import LinkError, UsageError

VERSION = 1
"""Version of this protocol; another one is refused by both sides."""
MAX_WORDS = 128
"""Payload words of one frame."""
HEADER_BYTES = 8
CRC_BYTES = 4
REPLY = 0x80
"""Set in the kind of a reply."""
MAGIC = 0x686E786F
"""First word of the description: "oxnh"."""


class Command(IntEnum):
    """What the host asks for."""

    INFO = 1
    """Read words of the device's description (`Info.to_words`); ends a sequence of repeats."""
    READ = 2
    """Read words of a space."""
    WRITE = 3
    """Write words to a space. The same frame sent again is acknowledged and not performed again."""


class Status(IntEnum):
    """How a command ended; in replies."""

    OK = 0
    BAD_FRAME = 1
    """A frame did not decode, or its CRC or length was wrong: seq and address of this reply are 0."""
    BAD_COMMAND = 2
    """The frame is intact, but its command, version, space or length is none of this device's."""
    BUSY = 3
    """A memory was asked for while a run is in progress; only CONTROL answers then."""


@dataclass(frozen=True)
class Header:
    """The first eight bytes of a frame; `space` is the status in replies."""

    kind: int
    seq: int
    space: int
    address: int
    count: int

    def pack(self) -> bytes:
        """The eight bytes."""
        return struct.pack("<BBBBI", self.kind, self.seq, self.space, 0, self.address | self.count << 24)

    @classmethod
    def unpack(cls, data: bytes) -> "Header":
        """Inverse of `pack`; `data` has at least eight bytes."""
        kind, seq, space, _, rest = struct.unpack_from("<BBBBI", data)
        return cls(kind, seq, space, rest & 0xFFFFFF, rest >> 24)


def command_kind(command: Command) -> int:
    """The kind byte of a command of this version."""
    return command | VERSION << 4


HEAD_WORDS = 16
"""Words of the description before the configuration's text."""


@dataclass(frozen=True)
class Info:
    """What a device says about itself: the words of its read-only memory.

    `config` is None if the device was built from a configuration this release cannot read. `build_id` is 64
    bits that name the build, 0 if it has none. `standalone` tells that a program is baked into its memories.
    """

    fingerprint: str
    geometry: tuple[int, int, int, int]
    clock_hz: int
    baud: int
    config: HwConfig | None
    build_id: int = 0
    standalone: bool = False
    protocol: int = VERSION

    @classmethod
    def of(cls, config: HwConfig, *, clock_hz: int, baud: int, build_id: int = 0, standalone: bool = False) -> "Info":
        """The description of a device of that configuration."""
        geometry = (config.rows, config.cols, config.word, config.lanes)
        return cls(config.fingerprint, geometry, clock_hz, baud, config, build_id, standalone)

    def to_words(self) -> list[int]:
        """The 32-bit words: head, then the configuration as JSON text, zero-padded."""
        text = self.config.to_json().encode() if self.config else b""
        mark, low = int(self.fingerprint, 16), 0xFFFFFFFF
        rows, cols, word, lanes = self.geometry
        head = [MAGIC, self.protocol, mark & low, mark >> 32, rows | cols << 8 | word << 16 | lanes << 24]
        head += [self.clock_hz, self.baud, int(self.standalone), self.build_id & low, self.build_id >> 32, len(text)]
        head += [0] * (HEAD_WORDS - len(head))
        text += bytes(-len(text) % 4)
        return head + list(struct.unpack(f"<{len(text) // 4}I", text))

    @staticmethod
    def text_words(head: list[int]) -> int:
        """How many words follow the head; `LinkError` E9105 or E9106 if it is no device of ours."""
        if head[0] != MAGIC:
            raise LinkError(
                "E9105",
                f"the device's description starts with 0x{head[0]:08x}, not 0x{MAGIC:08x}",
                hint="another design is on the board: program it with an onnxhw bitstream",
            )
        if head[1] != VERSION:
            raise LinkError(
                "E9106",
                f"the device speaks link protocol {head[1]}, this release {VERSION}",
                hint="build and program the bitstream again with this release",
            )
        return -(-head[10] // 4)

    @classmethod
    def from_words(cls, words: list[int]) -> "Info":
        """Inverse of `to_words`; of the head alone all but `config`."""
        rest = words[HEAD_WORDS : HEAD_WORDS + cls.text_words(words)]
        text = struct.pack(f"<{len(rest)}I", *rest)[: words[10]]
        try:
            config = HwConfig.from_json(text.decode())
        except (UsageError, UnicodeDecodeError):
            config = None
        shape = words[4]
        geometry = (shape & 255, shape >> 8 & 255, shape >> 16 & 255, shape >> 24)
        mark = f"{words[3] << 32 | words[2]:016x}"
        return cls(mark, geometry, words[5], words[6], config, words[9] << 32 | words[8], bool(words[7] & 1), words[1])
