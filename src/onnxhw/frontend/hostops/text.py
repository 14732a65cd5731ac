"""Operators on text. A pattern is the model's, so matching must not take longer than the text is long."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .adapter import HostOp

Array = npt.NDArray[Any]


def regex_full_match(x: Array, pattern: str | None = None) -> Array:
    """RegexFullMatch: which elements the pattern matches as a whole.

    By RE2, whose syntax ONNX prescribes, in time linear in the text. Python's own `re` backtracks: ``(a+)+b`` takes it
    twice as long for each letter more. `ValueError` for what is no pattern, or needs more than RE2's 8 MiB.
    """
    import re2  # only here: few models need it

    if x.dtype.kind not in "UO":
        raise TypeError(f"its input must be text, not {x.dtype}")
    options = re2.Options()
    options.log_errors = False
    try:
        matcher = re2.compile(pattern or "", options)
    except re2.error as error:
        raise ValueError(f"{pattern!r} is no pattern of RE2: {error.args[0].decode()}") from error
    matches = [matcher.fullmatch(str(text)) is not None for text in x.ravel()]
    return np.array(matches, np.bool_).reshape(x.shape)


OPERATORS = (HostOp("", "RegexFullMatch", regex_full_match, since=20),)
