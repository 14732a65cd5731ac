"""Refusals that a caller may look into: those of size alone, and several at once."""

from collections.abc import Sequence

from ..errors import UnsupportedError


class TooLargeError(UnsupportedError):
    """An operation that nothing but a size keeps from the hardware.

    `size_code` (E51xx) is the code of the case that nothing else of the model runs on the hardware either.
    """

    def __init__(self, code: str, what: str, size_code: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(code, what, where=where, hint=hint)
        self.size_code = size_code


class UnmappedError(UnsupportedError):
    """E4300: several operations that cannot be mapped, one error each in `causes`."""

    def __init__(self, causes: Sequence[UnsupportedError]) -> None:
        self.causes = tuple(causes)
        lines = "".join(f"\n  {error.text()}" for error in causes)
        super().__init__("E4300", f"{len(causes)} operations cannot be mapped:{lines}")


def combined(refused: Sequence[UnsupportedError]) -> UnsupportedError:
    """One error of the refusals of operations, of which there is one at least."""
    return refused[0] if len(refused) == 1 else UnmappedError(refused)


def causes(error: UnsupportedError) -> tuple[UnsupportedError, ...]:
    """The refusals of single operations that an error stands for."""
    return error.causes if isinstance(error, UnmappedError) else (error,)
