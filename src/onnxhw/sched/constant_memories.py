"""The read-only memory images a program brings along: weights, parameters, tables. Equal pieces are stored once."""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..fixed import SHIFT_MIN, Scale
from ..ir.graph import Array8

UNUSED = Scale(0, SHIFT_MIN)
"""The parameter of a lane whose result nobody reads."""


class ConstantMemories:
    """Grows while layers are lowered; capacity is judged once, at the end, when all needs are known.

    Members
    -------
    weight_use : weight words that each layer added, by name.
    param_use : parameter rows that each layer added.
    multiplied : weights of the model's channels that each convolution streams, per pixel of its result.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.weight_use: dict[str, int] = {}
        self.param_use: dict[str, int] = {}
        self.multiplied: dict[str, int] = {}
        self._weights: list[npt.NDArray[np.uint8]] = []
        self._weight_words = 0
        self._weight_at: dict[bytes, int] = {}
        self._params: list[tuple[int, ...]] = []
        self._param_at: dict[tuple[int, ...], int] = {}
        self._tables: list[Array8] = []

    def weights(self, layer: str, tiles: Array8) -> int:
        """First word of weight tiles int8 ``[n, R, C]``, in the order in which the array takes them."""
        data = tiles.tobytes()
        if data not in self._weight_at:
            words = tiles.view(np.uint8).reshape(-1, self.config.weight_word)
            self._weight_at[data] = self._weight_words
            self._weights.append(words)
            self._weight_words += len(words)
            self.weight_use[layer] = self.weight_use.get(layer, 0) + len(words)
        return self._weight_at[data]

    def params(self, layer: str, scales: list[Scale]) -> int:
        """First parameter row of a run of scales; those that miss in its last row are never used."""
        lanes = self.config.lanes
        packed = tuple(scale.pack() for scale in scales + [UNUSED] * (-len(scales) % lanes))
        if packed not in self._param_at:
            self._param_at[packed] = len(self._params)
            self._params += [packed[first : first + lanes] for first in range(0, len(packed), lanes)]
            self.param_use[layer] = self.param_use.get(layer, 0) + len(packed) // lanes
        return self._param_at[packed]

    def scalar(self, layer: str, scale: Scale) -> int:
        """The parameter row that holds one scale for all lanes."""
        return self.params(layer, [scale] * self.config.lanes)

    def table(self, entries: Array8) -> int:
        """Index of an int8 ``[256]`` table."""
        for index, known in enumerate(self._tables):
            if np.array_equal(known, entries):
                return index
        self._tables.append(entries.astype(np.int8))
        return len(self._tables) - 1

    @property
    def weight_words(self) -> int:
        """Words of the weight image."""
        return self._weight_words

    @property
    def weight_pieces(self) -> list[npt.NDArray[np.uint8]]:
        """The parts of the weight image, one behind the other: the tiles of a load lie in one of them."""
        return list(self._weights)

    @property
    def weight_image(self) -> npt.NDArray[np.uint8]:
        """uint8 ``[words, k * C]``."""
        return np.concatenate(self._weights) if self._weights else np.zeros((0, self.config.weight_word), np.uint8)

    @property
    def param_image(self) -> npt.NDArray[np.uint64]:
        """uint64 ``[rows, Q]``."""
        return np.array(self._params, np.uint64).reshape(-1, self.config.lanes)

    @property
    def table_image(self) -> Array8:
        """int8 ``[n, 256]``."""
        return np.array(self._tables, np.int8).reshape(-1, 256)
