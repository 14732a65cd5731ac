"""What a camera sees, as a program's input, and what the gateware answers: the reference in numpy, and the settings
of a program for `onnxhw.isa.camera`."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError, UsageError
from ..ir.graph import Port
from ..ir.steps import apply
from ..isa.camera import (
    CHANNELS,
    CONSTANT,
    FRAME_HEIGHT,
    FRAME_WIDTH,
    LEAST_BOX,
    MOST_CLASSES,
    CameraSettings,
    Crop,
    average,
    expanded,
)
from ..isa.memory import host_stride
from ..preprocess import Input, Preprocess
from .input_regions import to_stream
from .model import DeviceProgram, Entry
from .storage import ElidedChannels

Frame = npt.NDArray[np.uint16]
"""RGB565 pixels, of `Crop.frame` rows and columns."""
Image = npt.NDArray[np.uint8]
"""``[3, H, W]``."""
KEEPS_ORDER = ("DequantizeLinear", "Softmax", "QuantizeLinear", "Reshape", "ToUint8", "ArgMax")
"""Steps of an output that never put one score above another that was higher. (They may make them equal.)"""
TRIALS = 4
"""Random images on which the table must give what the host gives."""


def image_of(frame: Frame, crop: Crop) -> Image:
    """The image that the gateware makes of a frame."""
    box, bottom, right = crop.box, crop.top + crop.height * crop.box, crop.left + crop.width * crop.box
    inside = frame.astype(np.int64)[crop.top : bottom, crop.left : right]
    colours = np.stack(expanded(inside))
    boxes = colours.reshape(CHANNELS, crop.height, box, crop.width, box).sum(axis=(2, 4))
    return np.asarray(average(boxes, box * box), np.uint8)


def frame_of(image: Image, crop: Crop) -> Frame:
    """A frame that shows the image, each pixel as large as a box, on black: what RGB565 keeps of it."""
    red, green, blue = (channel.astype(np.uint16) for channel in image)
    pixels = (red >> 3) << 11 | (green >> 2) << 5 | blue >> 3
    frame = np.zeros(crop.frame, np.uint16)
    large = pixels.repeat(crop.box, axis=0).repeat(crop.box, axis=1)
    frame[crop.top : crop.top + large.shape[0], crop.left : crop.left + large.shape[1]] = large
    return frame


def input_of(image: Image, settings: CameraSettings) -> npt.NDArray[np.int8]:
    """The int8 input ``(1, 3, H, W)`` that the gateware makes of an image."""
    rows = [np.array(table, np.int8)[channel] for table, channel in zip(settings.table, image, strict=True)]
    return np.stack(rows)[None]


def answer_of(scores: npt.NDArray[np.int8]) -> tuple[int, int]:
    """Class and score that the gateware tells: the highest score, the first class that has it."""
    flat = scores.reshape(-1)
    best = int(flat.argmax())
    return best, int(flat[best])


def line_of(answer: tuple[int, int]) -> bytes:
    """What the gateware sends over the serial line."""
    return b"class %d score %d\r\n" % answer


def settings_of(program: DeviceProgram, preprocess: Preprocess | None = None, where: str = "") -> CameraSettings:
    """What the gateware must know of a program, whose model takes images that `preprocess` prepares.

    `UnsupportedError`: E4180 the model has not one input of one RGB image, E4181 its image is too large or too small
    for the camera's frame, E4182 no table of 256 entries per channel makes its int8 input, E4183 the program takes the
    image in another order than the camera sends it, E4184 the model has not one output of scores, or too many classes.
    """
    port, shape = _image_port(program, where)
    crop = Crop(*shape)
    if crop.box < LEAST_BOX or max(crop.height, crop.width) < 2:
        raise UnsupportedError(
            "E4181", f"images of {shape[0]}x{shape[1]} are not made of the camera's {FRAME_HEIGHT}x{FRAME_WIDTH}",
            where=where, hint=f"2x2 to {FRAME_HEIGHT // LEAST_BOX}x{FRAME_WIDTH // LEAST_BOX} pixels",
        )  # fmt: skip
    entry = program.tensors[port.tensor]
    _require_order(entry, program.config.word, where)
    table = _table(port, entry, preprocess or Preprocess(), where)
    return CameraSettings(crop, table, _classes(program, where))


def _image_port(program: DeviceProgram, where: str) -> tuple[Port, tuple[int, int]]:
    """The input, and its height and width."""
    ports = program.inputs
    shape = program.tensors[ports[0].tensor].shape if len(ports) == 1 else ()
    if len(shape) != 4 or shape[:2] != (1, CHANNELS):
        found = ", ".join(f"{port.name!r} {list(port.shape)}" for port in ports) or "none"
        hint = "a camera is for models of one input [1, 3, height, width]"
        raise UnsupportedError("E4180", f"the model's input is no RGB image: {found}", where=where, hint=hint)
    return ports[0], (shape[2], shape[3])


def _table(port: Port, entry: Entry, preprocess: Preprocess, where: str) -> tuple[tuple[int, ...], ...]:
    """For each channel the int8 of each 8-bit value, as the host prepares it; tried on random images, too."""
    wanted = Input(port.name, port.shape, port.dtype)
    try:
        last = port.shape[1:] == (*entry.shape[2:], CHANNELS)
        plain = (np.full(entry.shape, value, np.uint8) for value in range(256))
        table = np.stack([_prepared(image, port, wanted, preprocess, last)[0, :, 0, 0] for image in plain], axis=1)
        random = np.random.default_rng(0)
        images = [random.integers(0, 256, entry.shape, np.uint8) for _ in range(TRIALS)]
        for image in images:
            expected = np.stack([table[c][image[0, c]] for c in range(CHANNELS)])[None]
            if not np.array_equal(_prepared(image, port, wanted, preprocess, last), expected):
                raise ValueError("its int8 values depend on more than the pixel's")
    except (ValueError, UsageError) as error:
        what = error.what if isinstance(error, UsageError) else str(error)
        hint = "a float32 or uint8 input that is scaled, shifted and quantized alike everywhere"
        raise UnsupportedError("E4182", f"input {port.name!r}: {what}", where=where, hint=hint) from error
    return tuple(tuple(int(value) for value in row) for row in table)


def _prepared(
    image: Image, port: Port, wanted: Input, preprocess: Preprocess, last: bool
) -> npt.NDArray[np.int8]:  # fmt: skip
    """The int8 tensor that the host makes of an image; `last`: the model has its channels last."""
    if port.dtype not in ("float32", "uint8"):
        raise ValueError(f"it takes {port.dtype}, a camera's pixels are 0 to 255")
    moved = image.transpose(0, 2, 3, 1) if last else image
    if moved.shape != port.shape:
        raise ValueError(f"it has shape {list(port.shape)}")
    given = preprocess.apply(np.ascontiguousarray(moved), wanted)
    return np.asarray(apply(port.steps, given), np.int8).reshape(image.shape)


def _require_order(entry: Entry, word: int, where: str) -> None:
    """The stream must have row by row, pixel by pixel, the channels of each."""
    places = np.arange(np.prod(entry.shape))
    image = places.reshape(*entry.shape[2:], CHANNELS).transpose(2, 0, 1)[None]
    size, wide = len(places), 127  # digits of a place in base 127 are int8
    for digit in (image % wide, image // wide % wide, image // wide**2):
        sent = to_stream(entry, digit.astype(np.int8), word)
        if sent[:size] != digit[0].transpose(1, 2, 0).astype(np.int8).tobytes() or len(sent) != -(-size // 4) * 4:
            raise UnsupportedError(
                "E4183", "the program takes its image in another order than row by row", where=where,
                hint="another preset, or a first convolution with a window that is as wide as high",
            )  # fmt: skip


def _classes(program: DeviceProgram, where: str) -> tuple[int, ...]:
    """Where the score of each class is."""
    ports = program.outputs
    for step in ports[0].steps if len(ports) == 1 else ():
        if step["op"] not in KEEPS_ORDER or step.get("last"):
            what = f"the host makes output {ports[0].name!r} by {step['op']}, which may put scores into another order"
            hint = "a camera is for models whose last scores are int8 on the hardware"
            raise UnsupportedError("E4184", what, where=where, hint=hint)
    shape: Sequence[int] = program.tensors[ports[0].tensor].shape if len(ports) == 1 else ()
    if len(shape) != 4 or not 2 <= shape[1] <= MOST_CLASSES or tuple(shape[2:]) != (1, 1):
        listed = ", ".join(f"{port.name!r} {list(port.shape)}" for port in ports)
        hint = f"a camera is for models of one output [1, classes] of 2 to {MOST_CLASSES} classes"
        raise UnsupportedError("E4184", f"the model's output is no list of scores: {listed}", where=where, hint=hint)
    entry, word = program.tensors[ports[0].tensor], program.config.word
    place, storage = entry.place, entry.storage
    found: list[int] = []
    others = iter(storage.values if isinstance(storage, ElidedChannels) else ())
    for number in range(shape[1]):
        at = entry.element((0, number, 0, 0))
        if at is None:
            found.append(CONSTANT | (next(others) & 0xFF))
            continue
        block, lane = divmod(place.lane + at[1], word)
        found.append((place.base + block * place.plane) * host_stride(word) * 4 + lane)
    return tuple(found)
