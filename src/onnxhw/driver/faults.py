"""The faults of a link as exception classes, so that a program can tell them apart without reading codes."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LinkError


class NoPermissionError(LinkError):
    """The user may not open the port; the hint names the group that may."""


class PortBusyError(LinkError):
    """Another program has the port open, or another client the simulated board."""


class UnpluggedError(LinkError):
    """The port was there and has failed, or the other end has closed the connection."""


class NoAnswerError(LinkError):
    """Nothing answers as a device of ours."""


class WrongBitstreamError(LinkError):
    """The board holds another design, another configuration, or a bitstream of another release."""


class StaleBitstreamError(WrongBitstreamError):
    """The configuration is the program's, but the board was built from something else than the directory's."""


class WrongProgramError(LinkError):
    """The device holds another program than the one that should run, or a damaged copy of it."""


class SessionLostError(LinkError):
    """The device was restarted, or another program has taken the line: what was loaded may be gone."""


class StateUnknownError(LinkError):
    """A run has failed, and nobody knows how many runs the program's states have seen."""


KINDS: dict[str, type[LinkError]] = {
    "E9103": NoAnswerError,
    "E9105": WrongBitstreamError,
    "E9106": WrongBitstreamError,
    "E9107": WrongBitstreamError,
    "E9109": WrongProgramError,
    "E9120": SessionLostError,
    "E9121": WrongProgramError,
    "E9122": WrongProgramError,
    "E9124": StateUnknownError,
}
"""The class of each fault that is raised with a code only."""


@contextmanager
def typed(where: str) -> Iterator[None]:
    """Inside the block a `LinkError` becomes one of the classes above, with `where` as its place if it has none."""
    try:
        yield
    except LinkError as error:
        kind = KINDS.get(error.code, type(error))
        if kind is type(error) and error.where:
            raise
        raise kind(error.code, error.what, where=error.where or where, hint=error.hint) from error
