"""`Folder`: an image, or those of a folder, as samples; decoded by Pillow."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import UsageError
from .formula import IMAGES, Array, Input, Preprocess

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's mode by number of channels."""
HOLD_PIXELS = ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
"""Element types that have every value from 0 to 255."""


class Folder:
    """The images of a folder, in the order of their names; or the one image that `path` is."""

    def __init__(self, path: Path, inputs: Sequence[Input], preprocess: Preprocess) -> None:
        try:
            from PIL import Image
        except ImportError:
            raise UsageError(
                "E2602",
                "images need Pillow, which is not installed",
                where=str(path),
                hint="pip install 'onnxhw[images]'",
            ) from None
        self.open = Image.open
        self.wanted, self.preprocess, self.where = inputs[0], preprocess, str(path)
        there = path.iterdir() if path.is_dir() else [path]
        self.files = sorted(file for file in there if file.suffix.lower() in IMAGES and file.is_file())
        self.rows = inputs[0].rows
        self.count = len(self.files) // self.rows
        shape = inputs[0].shape
        rank = len(shape) if len(inputs) == 1 else 0
        self.channels = 0 if rank != 4 else shape[3] if preprocess.layout == "nhwc" else shape[1]
        if self.channels not in MODES:
            raise UsageError(
                "E2603",
                "images need a model of one input of 1, 3 or 4 channels",
                where=self.where,
                hint="--layout nhwc if the channels are its last axis",
            )
        if self.wanted.dtype not in HOLD_PIXELS:
            what = f"images have values from 0 to 255, which an input of type {self.wanted.dtype} does not"
            raise UsageError("E2603", what, where=self.where, hint="give arrays")
        self.size = shape[1:3] if preprocess.layout == "nhwc" else shape[2:]
        if not self.files:
            raise UsageError("E2603", f"no image is there ({', '.join(IMAGES)})", where=self.where)
        if not self.count:
            what = f"one sample of the model is {self.rows} images, {len(self.files)} are there"
            raise UsageError("E2603", what, where=self.where)

    def one(self, index: int) -> dict[str, Array]:
        """The feeds of one inference."""
        files = self.files[index * self.rows : (index + 1) * self.rows]
        pixels = np.concatenate([self._pixels(file) for file in files]).astype(self.wanted.dtype)
        moved = pixels if self.preprocess.layout == "nhwc" else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        return {self.wanted.name: self.preprocess.apply(moved, self.wanted)}

    def _pixels(self, file: Path) -> Array:
        """``[1, H, W, C]``."""
        height, width = self.size
        try:
            with self.open(file) as opened:
                if opened.mode[0] in "IF":  # which Pillow would cut off at 255
                    raise ValueError("its values have more than 8 bits")
                image = opened.convert(MODES[self.channels])
                if image.size != (width, height):
                    image = image.resize((width, height), 2)  # bilinear
                return np.asarray(image).reshape(1, height, width, self.channels)
        except Exception as error:  # Pillow has many errors for damaged files
            raise UsageError("E2603", f"cannot be decoded: {error}", where=str(file)) from error
