"""Instruction fields as slices of a signal, derived from the declarations in `onnxhw.isa`."""

from amaranth import Value

from ..isa.fields import Instruction


class Decoded:
    """The fields of an encoded instruction held in `bits`: as attributes, and by name."""

    def __init__(self, instruction: type[Instruction], bits: Value) -> None:
        self._fields: dict[str, Value] = {}
        for spec in instruction.specs():
            value = bits[spec.offset : spec.offset + spec.bits]
            self._fields[spec.name] = value.as_signed() if spec.signed else value

    def __getitem__(self, name: str) -> Value:
        """The field of that name."""
        return self._fields[name]

    def __getattr__(self, name: str) -> Value:
        try:
            return self.__dict__["_fields"][name]
        except KeyError:
            raise AttributeError(name) from None
