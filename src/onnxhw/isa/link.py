"""The frames between host and board: every number of the link, shared by gateware and driver.

A frame is COBS-coded and ends with a zero byte. Decoded it is a multiple of four bytes, integers
little-endian::

    0  kind     bits 3..0 command, bits 6..4 protocol version, bit 7 set in replies
    1  seq      sequence number; a reply repeats the command's (HELLO and refusals: the number that is due)
    2  space    command: bits 3..0 address space, bits 7..4 step - 1; reply: Status
    3  session  command: the session's number; reply: credit, free bytes of the device's input in units of 16
    4  address  24 bits, in 32-bit host words; HELLO and RUN: a token
    7  count    words that follow (WRITE, COMMIT, replies) or that are asked for, at most MAX_WORDS
    8  payload  count words
    .. crc      CRC-32C of everything before

A READ or WRITE takes the words at address, address + step, ...: a tensor of few channels uses one host word in
several.

With at most 512 bytes of payload all errors of one to five bits in a decoded frame are caught (the CRC has
Hamming distance 6 up to 655 bytes).
"""

import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ..config import HwConfig
from ..errors import LinkError, UsageError
from .input_port import REGION_STRIDE, REGIONS
from .instructions import UNITS
from .memory import Control, Space, host_stride, word_bytes
from .units import ucode_words

VERSION = 6
"""Version of this protocol; another one is refused by both sides."""
MAX_WORDS = 128
"""Payload words of one frame."""
MAX_STEP = 16
"""Host words from one word of a READ or WRITE to the next."""
HEADER_BYTES = 8
CRC_BYTES = 4
SHORTEST = HEADER_BYTES + CRC_BYTES + 2
"""Bytes on the line of a frame without payload: the content, one byte of stuffing and the delimiter."""
RESULT_WORDS = Control.LATENCY + 1
"""Control registers that describe a run: what POLL reads after an inference."""
MOVE_RESULT_WORDS = Control.BUSY_MOVE + 1
"""Those that describe a run with moves."""
STREAM_RESULT_WORDS = Control.CYCLES + 1
"""Those that tell of a run behind another one of the same program whether it ended as it should: the other counters are
the same in each, and made an eighth of what a device answers for 640 bytes of outputs."""
REPLY = 0x80
"""Set in the kind of a reply."""
MAGIC = 0x686E786F
"""First word of the description: "oxnh"."""
SEND_WINDOW = 16
"""Frames that the host may have under way."""
ANSWER_WORDS = 256
"""Words that the answers under way may bring: the device keeps as many, so that a READ sent again brings the same."""
FIFO_BYTES = 4096
"""Bytes of the device's input memory: what the host may send beyond what was acknowledged."""
CREDIT_UNIT = 16
RECENT = 128
"""A sequence number at most this far behind the one that is due was performed before; others are ahead of it."""
USB_BAUD = 12_000_000
"""What a link over USB at full speed counts as, ten bits to a byte: it has 12 Mbit/s, of which at most 19 packets of 64
bytes in a millisecond remain, in both directions together."""
MIN_RATIO = 8
"""Fewest clock cycles per bit of a serial line: each eighth of a bit must be seen."""
SLOWER = 1_000_000, 115_200
"""Rates that every usual adapter has, for lines that do not bear a device's first one."""
REGISTERS = 10
"""Address space of `Register`: the link's own registers, read-only."""


def fastest_rate(clock_hz: float, most: int) -> int:
    """The fastest rate of a serial line, at most `most`, that a clock allows: `most` itself if it can.

    Slower ones are `most` divided by whole numbers, which an adapter that makes `most` divides its own clock to.
    """
    return most // max(1, math.ceil(most * MIN_RATIO / clock_hz))


def line_rates(baud: int) -> tuple[int, ...]:
    """The rates of a serial line whose first one is `baud`, in the order in which breaks choose them."""
    return (baud, *(rate for rate in SLOWER if rate < baud))


class Command(IntEnum):
    """What the host asks for. All but HELLO and INFO belong to a session and are performed in order, once."""

    HELLO = 0
    """Begin or resume the session of this number: another one forgets inputs and a RUN that waits for them. The reply
    says which sequence number is due."""
    INFO = 1
    """Read words of the device's description (`Info.to_words`); answered at any time, in any version."""
    READ = 2
    """Read words, `step` apart, of CONTROL, ACT, `REGISTERS`, or EXTERNAL, where there is one."""
    WRITE = 3
    """Write words, `step` apart, to a memory. To any but ACT, INPUT, EXTERNAL and EXTERNAL_INPUT: the device holds no
    complete program until COMMIT. To ACT, INPUT or EXTERNAL_INPUT during a run: performed once the run has done with
    its inputs (`Control.INPUT_FREE`), or has ended. To INPUT: `address` is the word's place in the stream of all
    inputs, the next one or 0, which begins anew. To EXTERNAL or EXTERNAL_INPUT, as a READ of EXTERNAL: during a run it
    waits for slots, 16 or 32 bytes after each refresh, and costs the run no cycle. To EXTERNAL of a device that holds
    an image of external memory: both image and program are forgotten, and it is refused during a run."""
    RUN = 4
    """Start the program, if a complete one is loaded, as soon as its inputs are complete: at once, or when the last
    word of INPUT is in its place. `address` is a token that POLL returns. With external memory `count` 1 starts it at
    once: its inputs lie there."""
    RESET = 5
    """Stop a run, and forget inputs and a RUN that waits for them. `address` bit 0: forget the program, too, and begin
    the CRC of a new one; bit 1: forget the image of external memory, too. A run with moves that is stopped leaves no
    program that could run, because moves change the memories that hold it."""
    COMMIT = 6
    """The program is complete: CRC over what was written (`load_record`), then LOAD_COUNT .. INPUT_FREE, with external
    memory MOVE_COUNT, too. `space` EXTERNAL: the image of external memory is complete; its CRC alone. The CRC of the
    rest of the program begins behind it."""
    POLL = 7
    """Read control registers from RUN on; the reply's address is the token of the last RUN. `address` 1: not before a
    run that is in progress has ended."""


COMMIT_WORDS = 1 + len(UNITS) + 2
"""Payload of COMMIT: the CRC, a count for each unit, BUDGET and INPUT_FREE."""


def commit_words(external: bool) -> int:
    """The same of a device, which may have external memory: MOVE_COUNT, too."""
    return COMMIT_WORDS + external


class Status(IntEnum):
    """How a command ended; in replies. A command that is refused does not use up its sequence number."""

    OK = 0
    BAD_FRAME = 1
    """A frame did not decode, or its CRC or length was wrong; `seq` is the number that is due."""
    BAD_COMMAND = 2
    """The frame is intact, but its command, version, space or length is none of this device's."""
    BUSY = 3
    """A run is in progress and the command needs a memory of the core; nothing done."""
    SEQUENCE = 4
    """Frames before this one are missing; `seq` is the number that is due."""
    NO_SESSION = 5
    """The session is not the device's: it was restarted, or another host has begun one."""
    NOT_LOADED = 6
    """RUN, or WRITE to INPUT, without a complete program."""
    BAD_LOAD = 7
    """COMMIT with a CRC that is not that of what was written."""


class Register(IntEnum):
    """Words of the space `REGISTERS`."""

    FLAGS = 0
    """Bit 0: a complete program is loaded; 1: a RUN waits for its inputs; 2: inputs are complete, and no run has taken
    them; 3: there is a complete image of external memory. Bits 31..16: frames dropped since power-up, modulo 65,536."""
    LOAD_CRC = 1
    """CRC-32C over the records of the words written since RESET, or since the image's COMMIT: with the counts, and
    IMAGE_CRC, it names the program."""
    IMAGE_CRC = 2
    """The same of the image of external memory, since its COMMIT. Of devices that have one, as IMAGE_CRC + 1, which is
    0."""


LOADED, ARMED, COMPLETE, IMAGE = 1, 2, 4, 8
"""Bits of `Register.FLAGS`."""


def load_record(space: int, address: int, payload: bytes) -> bytes:
    """What a WRITE to a program's memory adds to the CRC: where to (with the step, as in the header), and the words."""
    return struct.pack("<I", address | space << 24) + payload


_HEADER = struct.Struct("<BBBBI")


class Header(NamedTuple):
    """The first eight bytes of a frame; in replies `space` is the status and `session` the credit."""

    kind: int
    seq: int
    space: int
    address: int
    count: int  # type: ignore[assignment]  # hides the method of tuples
    session: int = 0

    def pack(self) -> bytes:
        """The eight bytes."""
        return _HEADER.pack(self.kind, self.seq, self.space, self.session, self.address | self.count << 24)

    @classmethod
    def unpack(cls, data: bytes) -> "Header":
        """Inverse of `pack`; `data` has at least eight bytes."""
        kind, seq, space, session, rest = _HEADER.unpack_from(data)
        return cls(kind, seq, space, rest & 0xFFFFFF, rest >> 24, session)


def command_kind(command: Command) -> int:
    """The kind byte of a command of this version."""
    return command | VERSION << 4


WITH_EXTERNAL = Space.EXTERNAL, Space.MOVE_UCODE, Space.EXTERNAL_INPUT
"""Spaces that WRITE reaches of a device with external memory alone."""
SIZED = tuple(space for space in Space if space not in (Space.CONTROL, Space.INPUT, *WITH_EXTERNAL))
"""Spaces whose sizes are in the description, in the order of their numbers; what only external memory brings is told by
the configuration."""
WRITABLE = (*SIZED, Space.INPUT)
"""Spaces that WRITE reaches of every device."""
HEAD_WORDS = 11 + len(SIZED)
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
    sizes: tuple[int, ...] = (0,) * len(SIZED)
    """Host words of each memory, in the order of `SIZED`."""
    usb: bool = False
    """The link is USB; `baud` is then `USB_BAUD`."""

    @classmethod
    def of(
        cls,
        config: HwConfig,
        *,
        clock_hz: int,
        baud: int,
        build_id: int = 0,
        standalone: bool = False,
        usb: bool = False,
    ) -> "Info":
        """The description of a device of that configuration."""
        geometry = (config.rows, config.cols, config.word, config.lanes)
        depths = [config.act_words, config.weight_depth, config.param_depth, 256 * config.tables]
        depths += [*(ucode_words(config, unit) for unit in UNITS), REGIONS * REGION_STRIDE]
        sizes = tuple(n * host_stride(word_bytes(config, space)) for n, space in zip(depths, SIZED, strict=True))
        mark = config.fingerprint
        return cls(mark, geometry, clock_hz, baud, config, build_id, standalone, sizes=sizes, usb=usb)

    @property
    def external(self) -> bool:
        """Whether there is external memory, space EXTERNAL."""
        return self.config is not None and self.config.external is not None

    def to_words(self) -> list[int]:
        """The 32-bit words: head, then the configuration as JSON text, zero-padded."""
        text = self.config.to_json().encode() if self.config else b""
        mark, low = int(self.fingerprint, 16), 0xFFFFFFFF
        rows, cols, word, lanes = self.geometry
        head = [MAGIC, self.protocol, mark & low, mark >> 32, rows | cols << 8 | word << 16 | lanes << 24]
        head += [self.clock_hz, self.baud, self.standalone | self.usb << 1, self.build_id & low, self.build_id >> 32,
        len(text)]
        head += self.sizes
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
        sizes = tuple(words[HEAD_WORDS - len(SIZED) : HEAD_WORDS])
        build_id, standalone, usb = words[9] << 32 | words[8], bool(words[7] & 1), bool(words[7] & 2)
        return cls(mark, geometry, words[5], words[6], config, build_id, standalone, words[1], sizes, usb)
