"""`explanation`: differences that the text of an operator settles, each with the quotation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx

from .draw import Draw


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    draw: Draw
    model: onnx.ModelProto
    reason: str
    sides: dict[str, Any]

    def option(self, name: str) -> str:
        """The option that was drawn, or an empty string."""
        return self.draw.options.get(name, "")


@dataclass(frozen=True)
class Explained:
    """`right` and `delivered`: "onnxruntime", "ours", "neither" or "either" (the text is silent)."""

    operators: tuple[str, ...]
    condition: str
    quotation: str
    right: str
    delivered: str
    when: Callable[[Case], bool]

    @property
    def key(self) -> str:
        """Operator and condition."""
        return f"{' '.join(self.operators)}: {self.condition}"


TABLE: tuple[Explained, ...] = ()


def explanation(draw: Draw, model: onnx.ModelProto, reason: str, sides: dict[str, Any]) -> Explained | None:
    """The row that covers a difference."""
    case = Case(draw, model, reason, sides)
    return next((row for row in TABLE if draw.operator.name in row.operators and row.when(case)), None)
