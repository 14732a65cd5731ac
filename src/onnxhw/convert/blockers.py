"""What this release cannot map, collected so that every blocker is named at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UnsupportedError

Excluded = Mapping[str, tuple[str, str]]
"""Nodes by label that shall run on the host: why, and what to do ("" if nothing)."""


class BlockedError(Exception):
    """Raised while one node is converted: why it cannot be, and what to do. Never leaves `convert`."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@dataclass(frozen=True)
class Blocker:
    """One node that cannot be mapped: its name, operator, why, and what to do."""

    node: str
    op_type: str
    reason: str
    hint: str = ""

    def text(self) -> str:
        """One line."""
        hint = f" (hint: {self.hint})" if self.hint else ""
        return f"node {self.node!r} ({self.op_type}): {self.reason}{hint}"


class UnsupportedNodesError(UnsupportedError):
    """E4001: the list of all blockers, also as `blockers`."""

    def __init__(self, blockers: list[Blocker], where: str = "") -> None:
        self.blockers = tuple(blockers)
        count = f"{len(blockers)} node{'s' if len(blockers) > 1 else ''} cannot run on this release"
        lines = "".join(f"\n  {blocker.text()}" for blocker in blockers)
        super().__init__("E4001", f"{count}:{lines}", where=where)
