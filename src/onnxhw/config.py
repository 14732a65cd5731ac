"""`HwConfig`: the parameters of one accelerator, validated at birth, with a fingerprint.

A bitstream belongs to an `HwConfig` (and a board and a clock), never to a model. Everything that
the instruction set, the scheduler and the RTL must agree on is a field or a derived property here.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import UsageError
from .external import ExternalMemory
from .files import parse_json

FORMAT = 5
"""Version of the meaning of the fields, and of the instructions; part of the fingerprint."""

WINDOW = 3
"""Rows and columns of the depthwise unit's window."""
EBR_BITS = 36
"""Bits of a block RAM's widest word."""
LEAST = {"requant_dsps": 0, "depthwise": 0, "array_fabric": 0, "unaligned": 0, "early_completion": 0}
"""Least values of fields for which 0 means something."""
EARLY_BITS = 4
"""Bits of the field `early` of the instructions that have one."""
ADDRESS_BITS = {
    "act_words": 16, "weight_depth": 20, "acc_depth": 15, "window_depth": 15, "param_depth": 16, "load_ucode": 14,
    "array_ucode": 14, "depthwise_ucode": 14, "vector_ucode": 14, "move_ucode": 14,
}  # fmt: skip
"""Bits of the addresses of memories, by what says how many words each has."""


def bits_for(n: int) -> int:
    """Number of bits that hold the values ``0 .. n - 1`` (at least one)."""
    return max(1, (n - 1).bit_length())


@dataclass(frozen=True)
class HwConfig:
    """One accelerator.

    Parameters
    ----------
    name : the preset's name; not part of the fingerprint.
    rows : R, array rows: input channels reduced per cycle.
    cols : C, array columns: output channels per cycle.
    word : W, channels (bytes) of one activation word; R <= W.
    lanes : Q, requantizer lanes; Q divides W and Q <= C.
    load_rows : k, array rows of weights loaded per cycle; k divides R. A weight word is k*C bytes.
    acc_bits : width of an accumulator (the array's own sums are exact in 16 + log2 R bits).
    act_banks, act_depth : activation memory: banks and words per bank (power of two).
    weight_depth : weight words.
    acc_depth : accumulator rows (C accumulators each) per bank; there are two banks.
    param_depth : rows of Q requantization parameters (one per output channel, 64 bits each).
    tables : number of 256-entry int8 tables.
    load_ucode, array_ucode, depthwise_ucode, vector_ucode : 32-bit words of microcode per unit.
    multiplier : "dsp" (the device's multiplier cell with all its registers) or "fabric", in the array.
    requant_dsps : how many of the 5 multipliers of a requantizer lane are the device's cells; the others are fabric.
    array_fabric : how many of the array's multipliers are fabric where `multiplier` is "dsp": those of the activation
        products first, then the columns' from the last on.
    inner_product : "plain" (a multiplier per product) or "fast" (one for two products and R / 2 more; R is even).
    depthwise : words of the depthwise unit's line buffer, hence its longest padded row; 0: there is no such unit (nor
        its microcode).
    window_depth : rows of the depthwise unit's sums (D each, of `sum_bits`).
    unaligned : the array may read its operands' bytes from any multiple of so many bytes on in bank 0
        (`isa.instructions.Array`); it divides W, a power of two, and R is W. 0: it reads words as they lie. Presets
        take the fewest bytes that cost no block RAM, being what one holds of a word anyway; `mini` pays two for one.
    early_completion : by how many cycles at most an array or vector instruction may be counted as completed before its
        last effect can be seen (`isa.early_instructions`), 0: none may. Chains of dense layers take fewer cycles so:
        AD 1,445 on `ulx3s-85f-dense`, not 1,628. There is none beside external memory: of moves it is not proved.
    external : memory outside of the device, if there is any.
    move_ucode : words of microcode of the unit that copies from and to it, where there is one.
    """

    name: str
    rows: int
    cols: int
    word: int
    lanes: int
    load_rows: int = 1
    acc_bits: int = 32
    act_banks: int = 4
    act_depth: int = 512
    weight_depth: int = 512
    acc_depth: int = 512
    param_depth: int = 512
    tables: int = 4
    load_ucode: int = 512
    array_ucode: int = 512
    depthwise_ucode: int = 512
    vector_ucode: int = 512
    multiplier: str = "dsp"
    requant_dsps: int = 5
    array_fabric: int = 0
    inner_product: str = "plain"
    depthwise: int = 0
    window_depth: int = 512
    unaligned: int = 0
    early_completion: int = 0
    external: ExternalMemory | None = None
    move_ucode: int = 512

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = LEAST.get(field.name, 1)
            if field.type in (int, "int") and (type(value) is not int or value < least):
                self._refuse(f"{field.name} must be an integer of at least {least}, not {value!r}")
            if field.type in (str, "str") and type(value) is not str:
                self._refuse(f"{field.name} must be text, not {value!r}")
        if type(memory := getattr(self, "external")) not in (ExternalMemory, type(None)):  # noqa: B009  (for mypy it is)
            self._refuse(f"external must be an external memory or nothing, not {memory!r}")
        for wrong, why in self._rules():
            if wrong:
                self._refuse(why)

    def _rules(self) -> tuple[tuple[object, str], ...]:
        """What must not hold of the fields together, in the order in which it is looked at, and what is then said."""
        sizes = f"{self.rows}, {self.cols}, {self.word}"
        fabric = self.array_multipliers if self.multiplier == "dsp" else 0
        square = self.rows == self.word and not self.word & (self.word - 1)
        return (
            (self.rows > self.word, f"rows must be at most word ({self.word}), not {self.rows}"),
            (max(self.rows, self.cols, self.word) > 64, f"rows, cols and word must be at most 64, not {sizes}"),
            (self.word % self.lanes, f"lanes must divide word ({self.word}), not {self.lanes}"),
            (self.lanes > self.cols, f"lanes must be at most cols ({self.cols}), not {self.lanes}"),
            (self.rows % self.load_rows, f"load_rows must divide rows ({self.rows}), not {self.load_rows}"),
            (not 20 <= self.acc_bits <= 32, f"acc_bits must be 20..32, not {self.acc_bits}"),
            (self.acc_bits < self.psum_bits,
             f"acc_bits must be at least {self.psum_bits} for {self.rows} rows, not {self.acc_bits}"),
            (self.act_depth & (self.act_depth - 1), f"act_depth must be a power of two, not {self.act_depth}"),
            *((getattr(self, name) > 1 << bits, f"{name} must be at most {1 << bits}, not {getattr(self, name)}")
              for name, bits in ADDRESS_BITS.items()),
            (self.tables > 16, f"tables must be at most 16, not {self.tables}"),
            (self.requant_dsps > 5, f"requant_dsps must be 0..5, not {self.requant_dsps}"),
            (self.depthwise and not WINDOW <= self.depthwise < 1 << 12,
             f"depthwise must be 0 or {WINDOW}..{(1 << 12) - 1}, not {self.depthwise}"),
            (self.multiplier not in ("dsp", "fabric"),
             f"multiplier must be 'dsp' or 'fabric', not {self.multiplier!r}"),
            (self.inner_product not in ("plain", "fast"),
             f"inner_product must be 'plain' or 'fast', not {self.inner_product!r}"),
            (self.array_fabric > fabric,
             f"array_fabric must be at most the array's multiplier cells, not {self.array_fabric}"),
            (self.unaligned and (self.word % self.unaligned or not square),
             f"unaligned must divide word, a power of two and equal to rows ({self.rows}), not {self.unaligned} with "
             f"word {self.word}"),
            (self.early_completion >> EARLY_BITS,
             f"early_completion must be at most {(1 << EARLY_BITS) - 1}, not {self.early_completion}"),
            (self.early_completion and self.external, "early_completion must be 0 with external memory"),
            (self.rows % self.element_rows, f"rows must be even where inner_product is 'fast', not {self.rows}"),
        )  # fmt: skip

    def _refuse(self, why: str) -> None:
        raise UsageError("E2101", why, where=f"HwConfig {self.name!r}")

    # -- derived -------------------------------------------------------------------------------
    @cached_property
    def act_words(self) -> int:
        """Activation words over all banks."""
        return self.act_banks * self.act_depth

    @property
    def unaligned_words(self) -> int:
        """Words from 0 on that the array can read unaligned: of bank 0, as far as 16 bits of byte address reach."""
        return min(self.act_depth, (1 << 16) // self.word) if self.unaligned else 0

    @property
    def slices(self) -> int:
        """Parts of an activation word that have read addresses of their own in bank 0."""
        return self.word // self.unaligned if self.unaligned else 1

    @property
    def act_bytes(self) -> int:
        """Bytes of activation memory."""
        return self.act_words * self.word

    @cached_property
    def weight_word(self) -> int:
        """Bytes of one weight word: ``load_rows * cols``."""
        return self.load_rows * self.cols

    @property
    def weight_bytes(self) -> int:
        """Bytes of weight memory."""
        return self.weight_depth * self.weight_word

    @cached_property
    def tile_words(self) -> int:
        """Weight words of one R x C weight tile."""
        return self.rows // self.load_rows

    @property
    def fast(self) -> bool:
        """Whether a multiplier makes two products (see `isa.instructions.Array`)."""
        return self.inner_product == "fast"

    @property
    def element_rows(self) -> int:
        """Array rows of one processing element, hence of one multiplier."""
        return 2 if self.fast else 1

    @property
    def array_multipliers(self) -> int:
        """Multipliers of the array."""
        return self.rows // self.element_rows * (self.cols + (1 if self.fast else 0))

    @property
    def array_dsps(self) -> int:
        """Multipliers of the array that are the device's cells."""
        return self.array_multipliers - self.array_fabric if self.multiplier == "dsp" else 0

    def array_style(self, element: int, column: int) -> str:
        """What the multiplier of an element of the array is made of; column -1 is that of the activation products."""
        columns_before = self.cols - column - (0 if self.fast else 1) if column >= 0 else 0
        place = element + self.rows // self.element_rows * columns_before
        return self.multiplier if place >= self.array_fabric else "fabric"

    @property
    def drain_rows(self) -> int:
        """Rows of the largest accumulator memory."""
        return max(self.acc_depth, self.window_depth if self.depthwise else 0)

    @property
    def psum_bits(self) -> int:
        """Width in which a sum of R int8 x int8 products is exact, also with R / 2 products of weights added."""
        return 16 + bits_for(self.rows)

    @property
    def window_bits(self) -> int:
        """Width in which a sum of 3 x 3 int8 x int8 products is exact."""
        return 16 + bits_for(WINDOW**2)

    @property
    def sum_bits(self) -> int:
        """Width of the depthwise unit's sums: `acc_bits`, or what block RAMs of 36 bits for `window_bits` hold."""
        lanes = self.depthwise_lanes
        return min(self.acc_bits, -(-self.window_bits * lanes // EBR_BITS) * EBR_BITS // lanes)

    @property
    def param_reads(self) -> int:
        """Cycles in which a parameter row is read, half of it in each: a word has one group, which keeps its row."""
        return 2 if self.lanes == self.word else 1

    @cached_property
    def depthwise_lanes(self) -> int:
        """D, channels of the depthwise unit: the largest divisor of W in whole lane groups that the columns hold."""
        return max(d for d in range(self.lanes, self.used_cols + 1, self.lanes) if self.word % d == 0)

    @cached_property
    def depthwise_words(self) -> int:
        """Weight words of one depthwise tile, 3 x 3 x D bytes."""
        return -(-(WINDOW**2) * self.depthwise_lanes // self.weight_word)

    @property
    def row_groups(self) -> int:
        """Array-row groups of one activation word: ``ceil(W / R)``."""
        return -(-self.word // self.rows)

    @cached_property
    def lane_groups(self) -> int:
        """Lane groups of one activation word: ``W / Q``."""
        return self.word // self.lanes

    @property
    def col_groups(self) -> int:
        """Lane groups of one accumulator row: ``C // Q`` (the drain serves ``C // Q * Q`` columns)."""
        return self.cols // self.lanes

    @cached_property
    def used_cols(self) -> int:
        """Columns that the drain can serve: ``C // Q * Q``."""
        return self.col_groups * self.lanes

    @property
    def macs_per_cycle(self) -> int:
        """Peak multiply-accumulates per cycle."""
        return self.rows * self.cols

    def with_external(self, name: str, memory: ExternalMemory) -> "HwConfig":
        """The same with external memory, and without what there is not beside it."""
        return dataclasses.replace(self, name=name, external=memory, early_completion=0)

    # -- identity ------------------------------------------------------------------------------
    def _record(self) -> dict[str, Any]:
        """All fields as plain data; without external memory, or early completion, there is nothing about it."""
        record = {"format": FORMAT, **dataclasses.asdict(self)}
        if self.external is None:
            del record["external"], record["move_ucode"]
        if not self.early_completion:
            del record["early_completion"]
        return record

    def to_json(self) -> str:
        """Canonical text of all fields; `from_json` reads it back."""
        return json.dumps(self._record(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "HwConfig":
        """Read the text of `to_json`; refuses unknown fields and other formats."""
        try:
            record: dict[str, Any] = parse_json(text)
            version = record.pop("format")
            if version != FORMAT:
                raise UsageError("E2102", f"configuration format must be {FORMAT}, not {version}")
            if "external" in record:
                record["external"] = ExternalMemory(**record["external"])
            return cls(**record)
        except KeyError as error:
            raise UsageError("E2103", f"not a hardware configuration: it has no {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError("E2103", f"not a hardware configuration: {error}") from error

    @property
    def fingerprint(self) -> str:
        """16 hex digits over everything but the name: equal if and only if programs are interchangeable."""
        record = self._record()
        del record["name"]
        text = json.dumps(record, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
