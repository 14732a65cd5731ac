"""What a cycle count takes for granted: a clock, and channels that are constant with the weights, so not computed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..program.model import DeviceProgram
from ..program.storage import ElidedChannels

UNROUTED_HZ = 100_000_000
"""The clock at which latencies are given of what has neither a routed design nor a board."""


def constant_channels(programs: Sequence[DeviceProgram]) -> dict[str, int]:
    """Channels that are not computed because they are constant, `left_out`, and all that operations make, `of`."""
    made = [entry for program in programs for entry in program.tensors.values() if entry.op]
    gone = sum(len(entry.storage.values) for entry in made if isinstance(entry.storage, ElidedChannels))
    return {"left_out": gone, "of": sum(entry.shape[1] for entry in made)}


def sentences(constant: Mapping[str, int]) -> list[str]:
    """The same for people."""
    gone, total = constant["left_out"], constant["of"]
    return [f"{gone:,} of {total:,} channels are constant with these weights and not computed"] if gone else []


def premises(programs: Sequence[DeviceProgram]) -> dict[str, Any]:
    """The same for ``--json``; there are no `patches`: the host unfolds no input."""
    return {"patches": [], "constant_channels": constant_channels(programs)}
