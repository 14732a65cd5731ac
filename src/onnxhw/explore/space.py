"""`SearchSpace`: what is chosen of a configuration for a board, and what follows from it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ..board import Board
from ..config import HwConfig
from ..external import ExternalMemory
from ..presets import SDRAM

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
EXTERNAL: dict[str, tuple[int | str, ...]] = {
    "weight_kib": (8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256),
    "param_depth": (64, 128, 256, 512, 1024),
    "tables": (1, 2, 4, 8),
    "load_ucode": (256, 320, 512, 1024),
    "array_ucode": (256, 512, 1024),
    "depthwise_ucode": (256, 320, 512, 1024),
    "vector_ucode": (256, 512, 1024, 1536),
}
"""What is chosen besides where there is external memory: how a network is cut into segments depends on these memories,
so they bound its cycles. Weights in KiB, for their words are of many sizes; the depths are those of the presets and
powers of two around them."""
ARRAY = ("word", "halved_rows", "cols", "inner_product")
"""The parameters of the array."""
UNUSED = 512
"""Rows of the depthwise unit's sums where there is no such unit, `HwConfig`'s default: one configuration, not three."""
ROOM = 8192
"""Words of memories that bound no schedule while a point is computed (weights 16 times as many): larger than any
program of a network that a device of this size holds. `sizing.fitted` cuts them to what is used."""


@dataclass(frozen=True)
class SearchSpace:
    """Configurations for a board. With `external` each has that memory outside of the device, and all memories on it
    are chosen."""

    board: Board
    external: ExternalMemory | None = None

    @property
    def parameters(self) -> dict[str, tuple[int | str, ...]]:
        """The choices of each parameter."""
        return PARAMETERS if self.external is None else {**PARAMETERS, **EXTERNAL}

    def config(self, values: Values) -> HwConfig:
        """The configuration of a choice; without external memory it has room for any program.

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
            depthwise=number["depthwise"], window_depth=number["window_depth"] if number["depthwise"] else UNUSED,
            unaligned=min(number["unaligned"], word) if rows == word else 0, external=self.external,
        )  # fmt: skip
        if self.external is not None:
            chosen: dict[str, Any] = {name: number[name] for name in EXTERNAL if name != "weight_kib"}
            words = max(1, 1024 * number["weight_kib"] // config.weight_word)
            config = dataclasses.replace(config, weight_depth=words, **chosen)
        return self.with_multipliers(config)

    @staticmethod
    def with_line_buffer(config: HwConfig, longest: int) -> HwConfig:
        """The same with a line buffer of the depthwise unit that is no longer than `longest` columns need, which is 0
        where there is nothing for the unit: a longer one changes no cycle."""
        choices = [n for n in PARAMETERS["depthwise"] if isinstance(n, int) and n >= longest]
        shorter = min([config.depthwise, *choices]) if longest else 0
        if shorter == config.depthwise:
            return config
        return dataclasses.replace(config, depthwise=shorter, window_depth=config.window_depth if shorter else UNUSED)

    @staticmethod
    def with_activations(config: HwConfig, least: int) -> HwConfig:
        """The same with the shallowest activation memory of the choices that is no shallower and has room for `least`
        bytes, if one has: with less it is no solution, whatever else is chosen."""
        deeper = [n for n in PARAMETERS["act_depth"] if isinstance(n, int) and n >= config.act_depth]
        enough = [n for n in deeper if n * config.act_banks * config.word >= least]
        return dataclasses.replace(config, act_depth=min(enough)) if enough else config

    def with_multipliers(self, config: HwConfig) -> HwConfig:
        """The same with as many multipliers of fabric in the array as the device has cells too few."""
        missing = config.array_multipliers + config.lanes * config.requant_dsps - self.board.resources.dsp
        return dataclasses.replace(config, array_fabric=max(0, min(missing, config.array_multipliers)))

    def neighbours(self, values: Values) -> list[Values]:
        """The choices that differ from one in a single parameter, of those that are other configurations each once."""
        found = {self.config(values): values}
        for name, choices in self.parameters.items():
            for choice in choices:
                changed = {**values, name: choice}
                found.setdefault(self.config(changed), changed)
        return list(found.values())[1:]

    def variations(self, values: Values, count: int) -> list[Values]:
        """Other choices with the same array, of four or more changes each, that are other configurations; always the
        same ones."""
        random, others = Random(0), [name for name in self.parameters if name not in ARRAY]
        found = {self.config(values): values}
        for _ in range(count):
            names = random.sample(others, random.randint(4, len(others)))
            varied = {**values, **{name: random.choice(self.parameters[name]) for name in names}}
            found.setdefault(self.config(varied), varied)
        return list(found.values())[1:]

    def with_external(self, config: HwConfig) -> HwConfig:
        """A preset with the external memory of the space, if it has one, by the name of a preset with it."""
        if self.external is None:
            return config
        return config.with_external(f"{config.name}{SDRAM}", self.external)

    def values(self, config: HwConfig) -> dict[str, int | str] | None:
        """The choice that gives a configuration but for the depths that `config` leaves open, or with external memory
        for a part of its weight memory; None if none does."""
        fields = [name for name in self.parameters if name not in ("halved_rows", "weight_kib")]
        found: dict[str, int | str] = {name: getattr(config, name) for name in fields}
        found["halved_rows"] = 0 if config.rows == config.word else 1
        if self.external is not None:
            kib = [n for n in EXTERNAL["weight_kib"] if isinstance(n, int) and 1024 * n <= config.weight_bytes]
            found["weight_kib"] = max(kib, default=0)
        if any(value not in self.parameters[name] for name, value in found.items()):
            return None
        made = self.config(found)
        same = [*fields, "rows", "array_fabric"]
        return found if all(getattr(made, name) == getattr(config, name) for name in same) else None


def restated(values: Values) -> dict[str, int | str]:
    """A choice with each value in its parameter's own type, as read from a file; `KeyError` or `ValueError` if it is
    none."""
    choices = {**PARAMETERS, **EXTERNAL} if any(name in values for name in EXTERNAL) else PARAMETERS
    found = {name: values[name] for name in choices}
    if any(value not in choices[name] for name, value in found.items()):
        raise ValueError("not a choice of the search space")
    return found
