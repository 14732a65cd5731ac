"""The timings of boards' SDRAM beside a second opinion: those that litedram has for memories of that geometry."""

from math import ceil
from typing import NamedTuple

import pytest

from onnxhw.board import boards
from onnxhw.board_memory import BoardMemory

MEMORIES = {name: board.external for name, board in boards().items() if board.external}


class Timings(NamedTuple):
    """Nanoseconds; None where litedram has none."""

    rp: float
    rcd: float
    wr: float
    rfc: float
    rrd: float | None
    ras: float | None


LITEDRAM = {
    (8192, 512): {
        "IS42S16160": Timings(20, 20, 20, 70, None, None),
        "MT48LC16M16": Timings(20, 20, 15, 66, 15, 44),
        "AS4C16M16": Timings(18, 18, 12, 60, None, None),
        "W9825G6KH6": Timings(15, 15, 15, 60, 10, 42),
    },
    (2048, 256): {"M12L64322A": Timings(15, 15, 15, 55, 10, 40)},
}
"""By rows and columns the modules of four banks in litedram/modules.py (commit 01355ff)."""
REFRESHES = {(8192, 512): 8192, (2048, 256): 4096}
"""In 64 ms."""


@pytest.mark.parametrize("mhz", [50, 75, 100, 110, 125, 133])
@pytest.mark.parametrize("name", MEMORIES)
def test_nothing_is_shorter_than_litedram_has_it(name: str, mhz: int) -> None:
    memory = MEMORIES[name]
    assert isinstance(memory, BoardMemory)
    geometry, ours = (memory.rows, memory.columns), memory.external(mhz * 10**6)
    assert memory.banks == 4
    for theirs in LITEDRAM[geometry].values():
        for field, nanoseconds in theirs._asdict().items():
            if nanoseconds is not None:
                assert getattr(ours, field) >= ceil(nanoseconds * mhz / 1000), field
        if theirs.ras is not None:
            assert ours.ras + ours.rp >= ceil((theirs.ras + theirs.rp) * mhz / 1000)
    assert ours.refresh <= 64_000 * mhz / REFRESHES[geometry]
