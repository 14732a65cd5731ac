"""`Preprocess`: ``(x * scale - mean) / std``, and `Input`, what it prepares samples for."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError

Array = npt.NDArray[Any]
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
"""Files that are taken as images, by suffix."""


@dataclass(frozen=True)
class Input:
    """A model input: `shape` with batch 1, numpy's name of its element type.

    `rows`: how many entries of the first axis of what is read are one inference's; more than 1 where a model's first
    dimension is fixed.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    rows: int = 1

    @classmethod
    def of(cls, name: str, shape: Iterable[int | str | None] | None, dtype: str) -> "Input":
        """From a model's declaration; a size that is not known counts as 1."""
        return cls(name, tuple(size if isinstance(size, int) else 1 for size in shape or ()), dtype)


@dataclass(frozen=True)
class Preprocess:
    """``(x * scale - mean) / std``; `layout` (nchw or nhwc) is the model's and says which axis has the channels."""

    scale: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: str = "nchw"

    def __post_init__(self) -> None:
        if self.layout not in ("nchw", "nhwc"):
            raise UsageError("E2608", f"a layout is nchw or nhwc, not {self.layout!r}")
        if not np.isfinite([self.scale, *self.mean, *self.std]).all() or any(value <= 0 for value in self.std):
            raise UsageError("E2608", "--scale and --mean must be finite, --std positive")

    @property
    def plain(self) -> bool:
        """Does it change nothing?"""
        return self.scale == 1.0 and not self.mean and not self.std

    def needed(self, path: Path) -> bool:
        """Is `path` an image or a folder of them, or does anything change its arrays?"""
        return path.is_dir() or path.suffix.lower() in IMAGES or self != Preprocess()

    def check(self, inputs: Iterable[Input]) -> None:
        """`UsageError` E2608 if it does not fit the inputs."""
        for wanted in inputs:
            self.apply(np.zeros(wanted.shape, wanted.dtype), wanted)

    def record(self) -> dict[str, Any]:
        """As JSON has it, empty if nothing was declared."""
        return {} if self == Preprocess() else {**asdict(self), "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_record(cls, record: Any) -> "Preprocess":
        """From what `record` gives; `ValueError` for anything else."""
        if record == {}:
            return cls()
        try:
            mean, std = (tuple(map(float, record[name])) for name in ("mean", "std"))
            return cls(float(record["scale"]), mean, std, record["layout"])
        except (TypeError, KeyError, ValueError, UsageError) as error:
            raise ValueError(f"preprocess must have scale, mean, std and layout, not {record!r}") from error

    def apply(self, x: Array, wanted: Input) -> Array:
        """One sample as the model takes it; `UsageError` E2608 if the constants do not fit its channels."""
        if wanted.dtype != "float32":
            if self.plain:
                return x
            raise UsageError(
                "E2608", f"input {wanted.name!r} is {wanted.dtype}: --scale, --mean and --std are for float32"
            )
        if self.plain:
            return x.astype(np.float32)
        axis = x.ndim - 1 if self.layout == "nhwc" else 1
        mean, std = (self._along(values, x.shape, axis) for values in (self.mean or (0.0,), self.std or (1.0,)))
        return np.asarray((x.astype(np.float32) * np.float32(self.scale) - mean) / std, np.float32)

    def _along(self, values: tuple[float, ...], shape: tuple[int, ...], axis: int) -> npt.NDArray[np.float32]:
        array = np.array(values, np.float32)
        if array.size == 1:
            return array.reshape(())
        if axis >= len(shape) or array.size != shape[axis]:
            channels = shape[axis] if axis < len(shape) else 1
            raise UsageError(
                "E2608",
                f"{array.size} values of --mean or --std do not fit {channels} channels",
                hint="give one value, or one per channel; --layout says which axis has the channels",
            )
        return array.reshape([-1 if index == axis else 1 for index in range(len(shape))])
