"""`Findings`: what the rules of the specification say about a model, collected so that everything is named at once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx

from ...diagnostics import Diagnostic, Severity
from ...errors import InvalidModelError, OnnxhwError, UnsupportedError

MOST = 200
"""Most findings of one code that are kept; the rest is counted."""
LISTED = 20
"""Most errors in the text of one exception."""


@dataclass
class Findings:
    """Diagnostics in the order of discovery; at most `MOST` of a code."""

    found: list[Diagnostic] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def _add(self, code: str, severity: Severity, where: str, what: str, hint: str) -> None:
        self._counts[code] += 1
        if self._counts[code] <= MOST:
            self.found.append(Diagnostic(code, severity, where, what, hint))

    def error(self, code: str, where: str, what: str, hint: str = "") -> None:
        """A statement of the specification that does not hold."""
        self._add(code, "error", where, what, hint)

    def warning(self, code: str, where: str, what: str, hint: str = "") -> None:
        """Allowed, or broken by every exporter, but worth a word."""
        self._add(code, "warning", where, what, hint)

    def info(self, code: str, where: str, what: str, hint: str = "") -> None:
        """Said for completeness."""
        self._add(code, "info", where, what, hint)

    @property
    def total(self) -> int:
        """How many there are, those that were not kept too."""
        return self._counts.total()

    @property
    def refused(self) -> bool:
        """Is there an error?"""
        return any(diagnostic.severity == "error" for diagnostic in self.found)


class _SeveralError(OnnxhwError):
    def __init__(self, diagnostics: Sequence[Diagnostic], where: str = "") -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(diagnostics[0].code, _text(diagnostics), where=where, hint=_hint(diagnostics))


class SpecificationError(_SeveralError, InvalidModelError):
    """Errors of a model against the specification, all of them in `diagnostics`; the code is the first one's."""


class UnknownVersionError(_SeveralError, UnsupportedError):
    """A model of a version that this release does not know; like `SpecificationError`."""


def raise_errors(diagnostics: Sequence[Diagnostic], where: str) -> None:
    """Raise all errors together, if there are any; the message lists `LISTED` of them."""
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    invalid = [diagnostic for diagnostic in errors if diagnostic.code.startswith("E3")]
    if invalid:
        raise SpecificationError(invalid, where)
    if errors:
        raise UnknownVersionError(errors, where)


def _text(errors: Sequence[Diagnostic]) -> str:
    if len(errors) == 1:
        return f"{errors[0].where}: {errors[0].what}" if errors[0].where else errors[0].what
    lines = [f"\n  {error.code} {error.where}: {error.what}" for error in errors[:LISTED]]
    more = f"\n  and {len(errors) - LISTED} more" if len(errors) > LISTED else ""
    return f"{len(errors)} errors:{''.join(lines)}{more}"


def _hint(errors: Sequence[Diagnostic]) -> str:
    hints = {error.hint for error in errors} - {""}
    return hints.pop() if len(hints) == 1 else ""


def label(node: onnx.NodeProto) -> str:
    """How a node is called in a message."""
    name = node.name or (node.output[0] if node.output else "")
    return f"node {name!r} ({node.op_type})"
