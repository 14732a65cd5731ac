"""When a `Move` has ended: its unit's pipeline around the controller's rules (`onnxhw.isa.external`).

With ``t`` the issue, ``RL`` the controller's read latency and ``c`` the cycle of the last column::

    first request offered   t + BEGIN (load), t + BEGIN + TO_BUFFER (store)
    next request offered    OFFER after the one before was taken
    done                    c + RL + WRITTEN (load), c + STORED (store)
"""

from ..config import HwConfig
from .external import SdramTiming
from .external_instructions import ADDRESS, Move

BEGIN = 2
"""Cycles from the issue to the first request, or to a store's first read: the fields are taken over, and the address
has a register."""
OFFER = 2
"""Cycles from the cycle in which a request is taken to the next one's offer: the address, and its register."""
TO_BUFFER = 5
"""Cycles by which a store reads ahead: operand read, choice of the host word and the buffer's write. So a word is there
in the cycle of its first column, which is later than that of the offer."""
WRITTEN = 4
"""Cycles from a load's last column at the controller's input until an instruction that reads the word may issue: the
word, the unit's two registers, the way of the host's writes, and the memory."""
STORED = 2
"""Cycles from a store's last column to its completion."""
RUN_BEGINS = 2
"""Cycles from the end of the start's sequence to the run's cycle 0: `running` rises, and the units leave reset."""
COUNTED = 1
"""Those to the first one that the run counts, in which `running` has risen."""


def started(config: HwConfig) -> int:
    """Cycles from the one in which the start of a run with moves is asked for to the first that the run counts."""
    assert config.external is not None
    return config.external.start_wait + COUNTED


def columns_per_word(config: HwConfig) -> int:
    """Columns of external memory of one 32-bit word."""
    assert config.external is not None
    return 32 // config.external.data_bits


class MoveTiming:
    """The controller over a run, whose moves come one after the other."""

    def __init__(self, config: HwConfig) -> None:
        assert config.external is not None
        self.external, self.columns = config.external, columns_per_word(config)
        self._timing = SdramTiming(config.external, ())
        self._timing.run_began(RUN_BEGINS)

    def done(self, move: Move, issue: int) -> int:
        """The cycle in which its completion can be seen, if it issues in that cycle."""
        words = (1 << self.external.address_bits) // self.columns
        addresses = [
            (move.external + block * move.e_block + run * move.e_run & ADDRESS) % words * self.columns
            for block in range(move.block_n)
            for run in range(move.run_n)
        ]
        start = issue + BEGIN + (TO_BUFFER if move.store else 0)
        last = self._timing.transfer(bool(move.store), start, OFFER, addresses, move.word_n * self.columns)
        return last + (STORED if move.store else self.external.read_latency + WRITTEN)
