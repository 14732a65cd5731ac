"""What a camera's gateware does with a frame, and the memory that tells it which model it is for.

A frame has `FRAME_HEIGHT` rows of `FRAME_WIDTH` pixels, RGB565. The crop in its middle is as many boxes of
``box x box`` pixels as the model's image has pixels. A pixel of the image is, channel by channel, the average of its
box's 8-bit values, rounded half up; a table of 256 entries per channel makes the model's int8 of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FRAME_WIDTH, FRAME_HEIGHT = 320, 240
"""QVGA."""
CHANNELS = 3
"""Red, green, blue."""
LEAST_BOX = 2
"""A smaller box would be complete before the one before it has been divided and looked up."""
MOST_BOX = 64
"""Sums of a box have `SUM_BITS`."""
SUM_BITS = 20
MOST_CLASSES = 240
HEAD_WORDS = 5
"""Words of the settings before the classes."""
CLASSES = 16
"""The first class's word in the settings."""
TABLE = 256
"""Where in the settings the table begins: 64 words per channel, four entries each."""
SETTINGS_WORDS = 512
SETTINGS = "sensor"
"""Name of the memory that a bitstream for a sensor replaces."""
CONSTANT = 1 << 31
"""Bit of a class's word: its score is no byte of memory but the word's low eight bits."""


def expanded(pixel: Any) -> tuple[Any, Any, Any]:
    """Red, green and blue of 8 bits of an RGB565 pixel (an integer, or an array of them): the high bits again behind
    the low ones, so that the brightest is 255."""
    red, green, blue = pixel >> 11, pixel >> 5 & 0x3F, pixel & 0x1F
    return red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2


def average(total: Any, count: int) -> Any:
    """``total / count``, rounded half up; of an integer or an array of them."""
    return (2 * total + count) // (2 * count)


@dataclass(frozen=True)
class Crop:
    """The middle of a frame (of another size in tests) as `height` rows of `width` boxes of ``box x box`` pixels."""

    height: int
    width: int
    frame: tuple[int, int] = (FRAME_HEIGHT, FRAME_WIDTH)

    @property
    def box(self) -> int:
        """The largest box of which so many fit, at most `MOST_BOX`; less than `LEAST_BOX`: the image is too large."""
        return min(self.frame[0] // self.height, self.frame[1] // self.width, MOST_BOX)

    @property
    def top(self) -> int:
        """Rows of the frame above the crop."""
        return (self.frame[0] - self.height * self.box) // 2

    @property
    def left(self) -> int:
        """Pixels of a row left of it."""
        return (self.frame[1] - self.width * self.box) // 2


@dataclass(frozen=True)
class CameraSettings:
    """What a camera's gateware must know of a program.

    `table`: for each channel the int8 of each average. `classes`: for each class the byte of activation memory, as the
    host port counts them, that has its score, or (`CONSTANT`) the score itself.
    """

    crop: Crop
    table: tuple[tuple[int, ...], ...]
    classes: tuple[int, ...]

    def words(self) -> tuple[int, ...]:
        """Contents of the memory: 1 and the number of classes, the crop, twice the pixels of a box; from `CLASSES` on
        the classes, from `TABLE` on the table, the entry of the smallest average lowest."""
        crop, words = self.crop, [0] * SETTINGS_WORDS
        words[:HEAD_WORDS] = [
            1 | len(self.classes) << 16,
            crop.width | crop.height << 16,
            crop.left | crop.top << 16,
            crop.box,
            2 * crop.box**2,
        ]
        words[CLASSES : CLASSES + len(self.classes)] = self.classes
        for channel, entries in enumerate(self.table):
            for index in range(0, 256, 4):
                words[TABLE + 64 * channel + index // 4] = _packed(entries[index : index + 4])
        return tuple(words)


def _packed(entries: Sequence[int]) -> int:
    return int.from_bytes(bytes(entry & 0xFF for entry in entries), "little")
