"""Operators on text. A pattern is the model's, so matching must not take longer than the text is long."""

from collections.abc import Callable, Sequence

import numpy as np

from .adapter import Array, HostOp


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


_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


def string_normalizer(
    x: Array,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: Sequence[str] = (),
) -> Array:
    """StringNormalizer: a row of strings without the stop words, in the case asked for.

    By Unicode's case mappings, whatever `locale` says: they are those of en_US, the default. One empty string if
    nothing is left. `ValueError` for another shape than [C] and [1, C], and for an unknown action.
    """
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ValueError(f"its input must be [C] or [1, C], not {list(x.shape)}")
    if case_change_action not in _CASES:
        raise ValueError(f"case_change_action {case_change_action!r} is none of {', '.join(_CASES)}")
    same: Callable[[str], str] = str if is_case_sensitive else str.lower
    stops = {same(str(word)) for word in stopwords}
    left = [str(word) for word in x.reshape(-1) if same(str(word)) not in stops]
    found = np.array([_CASES[case_change_action](word) for word in left] or [""], object)
    return found if x.ndim == 1 else found[None]


OPERATORS = (
    HostOp("", "RegexFullMatch", regex_full_match, since=20),
    HostOp("", "StringNormalizer", string_normalizer, since=10),
)
