"""Every exception a user can meet: a code, what, where, why, and what to do.

A message reads ``E4001 unsupported: node 'conv3' (Conv): group=3 ... Hint: ...``. The class of
an error decides the exit status of the command line (see ``docs/errors.md``); the code names the
case and never changes its meaning.
"""

import re
from typing import NoReturn


def short(value: object, most: int = 60) -> str:
    """A user's value for a message: as Python writes it, its middle left out beyond `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 22]}...{text[-19:]}"


LONGEST_WORD = 255
"""Characters of the longest word of a message: a name in a file may be as long."""
LONGEST = 16_000
"""Characters of the longest message: the end of a tool's output, or all blockers of a model, are some thousands."""


def _shortened(text: str) -> str:
    """A message in which whatever came from a file can neither fill the screen nor command the terminal: long words and
    texts lose their middle, and characters that do not print are written as Python writes them."""
    text = re.sub(r"[^\n\t]", lambda one: one[0] if one[0].isprintable() else ascii(one[0])[1:-1], text)
    text = re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: f"{word[0][:120]}...{word[0][-40:]}", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2000]} ... {text[-1900:]}"


class OnnxhwError(Exception):
    """Base of all errors that are a user's to mend.

    Parameters
    ----------
    code : stable identifier, ``E`` and four digits; the first digit is the exit status.
    what : one sentence, what went wrong.
    where : file, node, layer or field, if known.
    hint : what to do about it, if known.
    """

    exit_status = 1
    kind = "error"

    def __init__(self, code: str, what: str, *, where: str = "", hint: str = "") -> None:
        self.code, self.what, self.where, self.hint = code, _shortened(what), _shortened(where), _shortened(hint)
        super().__init__(self.text())

    def text(self) -> str:
        """The message in one paragraph."""
        where = f"{self.where}: " if self.where else ""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{self.code} {self.kind}: {where}{self.what}{hint}"

    def record(self) -> dict[str, str]:
        """The same facts for ``--json``."""
        return {
            "code": self.code,
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "hint": self.hint,
        }


class OnnxhwWarning(UserWarning):
    """Something that a user should know and that stops nothing; `code` as of `OnnxhwError`."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        super().__init__(f"{code} {what}")


class DeclaredShapeWarning(OnnxhwWarning):
    """W3391: a result has another shape than the model declares, and inference knows nothing that confirms it."""


class LineRateWarning(OnnxhwWarning):
    """W9158: a device's serial line is slower than the device can, for it does not answer at its first rate."""


class InternalError(OnnxhwError):
    """A bug of ours: an invariant of the compiler does not hold."""

    exit_status = 1
    kind = "internal error"


def assert_never(value: NoReturn) -> NoReturn:
    """`typing.assert_never` of Python 3.11: where mypy can see a way to get here, a case is missing."""
    raise InternalError("E1390", f"{type(value).__name__} is not provided for")


class UsageError(OnnxhwError):
    """A wrong flag, name, path or configuration."""

    exit_status = 2
    kind = "usage"


class InvalidModelError(OnnxhwError):
    """The file is not a valid ONNX model."""

    exit_status = 3
    kind = "invalid model"


class UnsupportedError(OnnxhwError):
    """A valid model that this release cannot map; every blocker is listed.

    `operation`: the name of the operation of the integer graph that cannot be mapped; "" if the error is about no one.
    """

    exit_status = 4
    kind = "unsupported"

    def __init__(self, code: str, what: str, *, where: str = "", hint: str = "", operation: str = "") -> None:
        super().__init__(code, what, where=where, hint=hint)
        self.operation = operation


class DoesNotFitError(OnnxhwError):
    """The model or the configuration is larger than the board; `share`: by what part of what there is, at most 1, which
    it also is where that is not known."""

    exit_status = 5
    kind = "does not fit"

    def __init__(self, code: str, what: str, *, where: str = "", hint: str = "", share: float = 1.0) -> None:
        super().__init__(code, what, where=where, hint=hint)
        self.share = min(share, 1.0)


class TimingError(OnnxhwError):
    """The routed design does not reach the clock."""

    exit_status = 6
    kind = "timing not met"


class ToolError(OnnxhwError):
    """An external tool is missing or failed."""

    exit_status = 7
    kind = "tool"


class MismatchError(OnnxhwError):
    """Two rungs of the exactness ladder differ."""

    exit_status = 8
    kind = "mismatch"


class LinkError(OnnxhwError):
    """The board does not answer, or answers wrongly."""

    exit_status = 9
    kind = "link"
