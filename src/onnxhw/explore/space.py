"""`SearchSpace`: what is chosen of a configuration for a board, and what follows from it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from ..board import Board
from ..config import HwConfig
from ..external import ExternalMemory

Values = Mapping[str, int | str]
"""A choice for each parameter of `PARAMETERS`."""

PARAMETERS: dict[str, tuple[int | str, ...]] = {
    "word": (4, 8, 16, 32),
    "halved_rows": (0, 1),
    "cols": (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32),
    "lanes": (1, 2, 4, 8, 16),
    "load_rows": (1, 2, 4, 8, 16, 32),
    "inner_product": ("plain", "fast"),
    "requant_dsps": (0, 1, 2, 3, 4, 5),
    "acc_bits": (24, 27, 32),
    "act_banks": (2, 3, 4, 5, 6),
    "act_depth": (256, 512, 1024, 2048, 4096, 8192),
    "acc_depth": (64, 128, 256, 512, 1024),
    "depthwise": (0, 16, 32, 64, 128),
    "window_depth": (128, 256, 512),
    "unaligned": (0, 1, 2, 4, 8),
}
"""The choices. Word and depths are powers of two because memories and addresses are; columns are as fine as the
multipliers of small devices want them; a second step of rows (`halved_rows`: R is W / 2) is where a word takes two
cycles; accumulators of less than 24 bits hold no sum of a real network."""
ROOM = 8192
"""Words of memories that bound no schedule while a point is computed (weights 16 times as many): larger than any
program of a network that a device of this size holds. `sizing.fitted` cuts them to what is used."""


@dataclass(frozen=True)
class SearchSpace:
    """Configurations for a board. With `external` each has that memory outside of the device."""

    board: Board
    external: ExternalMemory | None = None

    def config(self, values: Values) -> HwConfig:
        """The configuration of a choice, with room for any program.

        What contradicts itself is repaired, so that every choice is a configuration: lanes divide the word and are at
        most the columns; weights are loaded by at most all rows; the operand is read unaligned only where R is W. Of
        the array's multipliers as many are fabric as the device has too few cells.
        """
        number = {name: value for name, value in values.items() if isinstance(value, int)}
        word, cols = number["word"], number["cols"]
        rows = word >> number["halved_rows"]
        lanes = max(n for n in PARAMETERS["lanes"] if isinstance(n, int) and n <= min(number["lanes"], cols, word))
        config = HwConfig(
            "explored", rows=rows, cols=cols, word=word, lanes=lanes, load_rows=min(number["load_rows"], rows),
            acc_bits=number["acc_bits"], act_banks=number["act_banks"], act_depth=number["act_depth"],
            weight_depth=16 * ROOM, acc_depth=number["acc_depth"], param_depth=ROOM, tables=16,
            load_ucode=ROOM, array_ucode=ROOM, depthwise_ucode=ROOM, vector_ucode=ROOM,
            requant_dsps=number["requant_dsps"], inner_product=str(values["inner_product"]),
            depthwise=number["depthwise"], window_depth=number["window_depth"],
            unaligned=min(number["unaligned"], word) if rows == word else 0, external=self.external,
        )  # fmt: skip
        return self.with_multipliers(config)

    def with_multipliers(self, config: HwConfig) -> HwConfig:
        """The same with as many multipliers of fabric in the array as the device has cells too few."""
        missing = config.array_multipliers + config.lanes * config.requant_dsps - self.board.resources.dsp
        return dataclasses.replace(config, array_fabric=max(0, min(missing, config.array_multipliers)))

    def values(self, config: HwConfig) -> dict[str, int | str] | None:
        """The choice that gives a configuration but for the depths that `config` leaves open; None if none does."""
        found: dict[str, int | str] = {name: getattr(config, name) for name in PARAMETERS if name != "halved_rows"}
        found["halved_rows"] = 0 if config.rows == config.word else 1
        if any(value not in PARAMETERS[name] for name, value in found.items()):
            return None
        made = self.config(found)
        same = (*PARAMETERS, "rows", "array_fabric")
        fields = [name for name in same if name != "halved_rows"]
        return found if all(getattr(made, name) == getattr(config, name) for name in fields) else None


def restated(values: Values) -> dict[str, int | str]:
    """A choice with each value in its parameter's own type, as read from a file; `KeyError` or `ValueError` if it is
    none."""
    found = {name: values[name] for name in PARAMETERS}
    if any(value not in PARAMETERS[name] for name, value in found.items()):
        raise ValueError("not a choice of the search space")
    return found
