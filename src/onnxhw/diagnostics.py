"""`Diagnostic`: one finding about a model; errors refuse it, warnings and notes go along with it.

A code reads like an error's (`docs/errors.md`): ``E3203`` for what is refused, ``W3202`` for what the specification
allows but deserves a word. Diagnostics cross process borders as records.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Diagnostic:
    """What was found, how bad it is, where, and what to do about it.

    code : ``E`` (error) or ``W`` (warning, info) and four digits.
    severity : "error" refuses the model; "warning" and "info" do not.
    where : model, node, tensor or field.
    what : one sentence.
    hint : what to do about it, if known.
    """

    code: str
    severity: Severity
    where: str
    what: str
    hint: str = ""

    def text(self) -> str:
        """The finding in one line."""
        where = f"{self.where}: " if self.where else ""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{self.code} {self.severity}: {where}{self.what}{hint}"

    def record(self) -> dict[str, str]:
        """The same facts for ``--json``."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where,
            "what": self.what,
            "hint": self.hint,
        }

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "Diagnostic":
        """The inverse of `record`."""
        found = record["severity"]
        severity: Severity = "error" if found == "error" else "info" if found == "info" else "warning"
        return cls(record["code"], severity, record["where"], record["what"], record.get("hint", ""))
