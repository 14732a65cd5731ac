"""How an instruction is declared: fields with widths, from which everything else is derived.

An instruction is a frozen dataclass whose fields are made by `unsigned`, `signed` or `flag`
(`onnxhw.isa.instructions` has them all). Its docstring is the loop it performs. Encoding packs the fields, those of
`Instruction.LEADING` first and the others in the order of declaration, least significant bit first, into 32-bit words.
Widths never depend on the configuration, so a program can be disassembled without one.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InternalError, UsageError

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

WORD_BITS = 32


def unsigned(
    bits: int, doc: str, default: int = 0, *, setting: bool = False, least: int = 0, base: bool = False
) -> Any:
    """A field of the values ``0 .. 2**bits - 1``; a `setting` holds still while an instruction runs.

    An instruction with less than `least` can be encoded and means nothing. A `base` is where an access begins: one that
    is too large tells of a memory that is full, not of an operation that is too large.
    """
    meta = {"bits": bits, "signed": False, "doc": doc, "setting": setting, "least": least, "base": base}
    return dataclasses.field(default=default, metadata=meta)


def signed(bits: int, doc: str, default: int = 0, *, setting: bool = False) -> Any:
    """A two's complement field of the values ``-2**(bits-1) .. 2**(bits-1) - 1``; `setting` as of `unsigned`."""
    meta = {"bits": bits, "signed": True, "doc": doc, "setting": setting, "least": -(1 << (bits - 1)), "base": False}
    return dataclasses.field(default=default, metadata=meta)


def flag(doc: str, *, setting: bool = False) -> Any:
    """A one-bit field."""
    return unsigned(1, doc, setting=setting)


@dataclass(frozen=True)
class FieldSpec:
    """One field as declared: name, place (bit offset), width, sign, meaning, and what `unsigned` says of it."""

    name: str
    offset: int
    bits: int
    signed: bool
    doc: str
    setting: bool
    least: int
    base: bool

    def pack(self, value: int, owner: str) -> int:
        """The field's bits; an `InternalError` if the value does not fit."""
        low, high = (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)
        if not low <= value <= high:
            raise InternalError("E1101", f"{owner}.{self.name} must be {low}..{high}, not {value}")
        return value & ((1 << self.bits) - 1)

    def unpack(self, word: int) -> int:
        """The value of the field in an encoded instruction."""
        value = (word >> self.offset) & ((1 << self.bits) - 1)
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value


@dataclass(frozen=True)
class Instruction:
    """Base of the instructions; a subclass declares its fields and its `UNIT`.

    `LEADING` are the fields that change most from one instruction to the next: they share words, for only words that
    change are stored (`onnxhw.isa.microcode`).
    """

    UNIT: ClassVar[str]
    LEADING: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @cache
    def specs(cls) -> tuple[FieldSpec, ...]:
        """The fields in encoding order."""
        out, offset = [], 0
        places = {name: place for place, name in enumerate(cls.LEADING)}
        for field in sorted(dataclasses.fields(cls), key=lambda field: places.get(field.name, len(places))):
            out.append(FieldSpec(field.name, offset, **field.metadata))
            offset += out[-1].bits
        return tuple(out)

    @classmethod
    @cache
    def touched(cls) -> tuple[int, ...]:
        """Of each field in the order of declaration, which is that of an instruction's `__dict__`, a mask of the words
        that it lies in."""
        found = {}
        for spec in cls.specs():
            first, last = spec.offset // WORD_BITS, (spec.offset + spec.bits - 1) // WORD_BITS
            found[spec.name] = (2 << last) - (1 << first)
        return tuple(found[field.name] for field in dataclasses.fields(cls))

    @classmethod
    @cache
    def _places(cls) -> tuple[tuple[str, int, int, int, int], ...]:
        """Of each field its name, place, least and largest value, and as many bits: what `encode` needs."""
        ends = ((-(1 << spec.bits - 1), (1 << spec.bits - 1) - 1) if spec.signed else (0, (1 << spec.bits) - 1)
                for spec in cls.specs())  # fmt: skip
        pairs = zip(cls.specs(), ends, strict=True)
        return tuple((spec.name, spec.offset, *limits, (1 << spec.bits) - 1) for spec, limits in pairs)

    @classmethod
    def bits(cls) -> int:
        """Sum of the field widths."""
        return sum(spec.bits for spec in cls.specs())

    @classmethod
    @cache
    def words(cls) -> int:
        """32-bit words of microcode that one instruction takes."""
        return -(-cls.bits() // WORD_BITS)

    def but(self, **fields: int) -> "Self":
        """A copy with other values in `fields`: what `dataclasses.replace` makes, without its checks."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made

    def too_small(self) -> FieldSpec | None:
        """The first field below its `least`: the instruction means nothing."""
        fields = self.__dict__
        return next((spec for spec in self.specs() if fields[spec.name] < spec.least), None)

    def encode(self) -> list[int]:
        """The instruction's 32-bit words, least significant first."""
        value, fields = 0, self.__dict__
        for name, offset, low, high, bits in self._places():
            field = int(fields[name])
            if not low <= field <= high:
                next(spec for spec in self.specs() if spec.name == name).pack(field, type(self).__name__)
            value |= (field & bits) << offset
        return [(value >> (WORD_BITS * i)) & 0xFFFFFFFF for i in range(self.words())]

    @classmethod
    def decode(cls, words: list[int]) -> "Self":
        """Inverse of `encode`."""
        if len(words) != cls.words():
            raise InternalError("E1102", f"{cls.__name__} takes {cls.words()} words, not {len(words)}")
        value = sum(word << (WORD_BITS * i) for i, word in enumerate(words))
        return cls(**{spec.name: spec.unpack(value) for spec in cls.specs()})

    def text(self) -> str:
        """Assembler text: the unit and every field that is not its default."""
        parts = [self.UNIT]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                parts.append(f"{field.name}={value}")
        return " ".join(parts)

    @classmethod
    def parse(cls, text: str) -> "Self":
        """Inverse of `text`; a `UsageError` names what it cannot read."""
        unit, *parts = text.split()
        names = {field.name for field in dataclasses.fields(cls)}
        values: dict[str, int] = {}
        for part in parts:
            name, _, value = part.partition("=")
            if name not in names:
                raise UsageError("E2110", f"{unit} has no field {name!r}", hint=f"fields: {', '.join(sorted(names))}")
            try:
                values[name] = int(value, 0)
            except ValueError:
                raise UsageError("E2111", f"{unit}.{name} must be an integer, not {value!r}") from None
        return cls(**values)
