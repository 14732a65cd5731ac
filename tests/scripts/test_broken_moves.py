"""Linked programs broken on purpose."""

from collections import Counter

import broken_moves
import pytest


@pytest.mark.parametrize("networks", [broken_moves.NETWORKS, broken_moves.STREAMING], ids=["plain", "states"])
def test_none_is_taken_that_depends_on_the_order(networks: dict) -> None:
    found = [broken_moves.broken(seed, networks=tuple(networks)) for seed in range(24)]
    verdicts = Counter(verdict.split()[0] for _, verdict in found)
    assert verdicts["unsafe"] == 0
    assert verdicts["refused"] >= 12
    assert len({way for way, _ in found}) >= 6
    others = {way for way, verdict in found if verdict == "another"}
    assert others.isdisjoint({"lower_wait", "lower_reads", "without_refill"})
