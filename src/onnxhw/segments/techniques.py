"""`Techniques`: what makes a linked program fast, each of which can be left out to see what it gives."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Techniques:
    """Which of them a plan and its program use; results are equal without any of them.

    Members
    -------
    depth_first : groups of several operations, whose tensors between them stay on chip (`make_plan`).
    prefetch : what a segment reads comes while others run; without it, when all before it have ended (`link`).
    ring : constants of segments lie one behind the other, and those that are still there are not brought again; without
        it, each segment's begin at the same word (`link`).
    residents : constants stay on chip from one inference to the next (`link`).
    """

    depth_first: bool = True
    prefetch: bool = True
    ring: bool = True
    residents: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What can be left out."""
        return tuple(each.name for each in fields(cls))


ALL = Techniques()
"""None is left out."""
