"""`ExternalMemory`: an SDR SDRAM on the core's clock, as a configuration has it: geometry, and timing in cycles."""

import dataclasses
from dataclasses import dataclass, replace
from functools import cached_property

from .errors import UsageError

SLOT_COLUMNS = 8
"""Columns that the host's slot behind a refresh transfers at most: 16 or 32 bytes of one row."""
PREPARE = 2
"""Registers between a decision of the controller and the pins: its output registers, and those in the pads."""
COLUMNS = (8, 1024)
"""Fewest and most columns: address bit 10 is no column bit, it asks for a precharge."""
LIMITS = {
    "cas_latency": (2, 3), "rcd": (1, 15), "rp": (1, 15), "ras": (1, 31), "rfc": (1, 63), "wr": (1, 7), "rrd": (1, 7),
    "mrd": (1, 7), "turn": (2, 15), "refresh": (64, (1 << 16) - 1), "power_up": (1, (1 << 20) - 1), "capture": (1, 2),
}  # fmt: skip
"""Least and most of each number of cycles."""


@dataclass(frozen=True)
class ExternalMemory:
    """One SDR SDRAM, or several in parallel.

    Parameters
    ----------
    data_bits : 16 or 32, bits of a column.
    banks, rows, columns : powers of two; an address is row, bank, column, from the highest bits on.
    cas_latency : cycles from a read to its data.
    rcd : from ACTIVATE to a column command of the bank (tRCD).
    rp : from PRECHARGE to the next command of the bank (tRP).
    ras : from ACTIVATE to PRECHARGE (tRAS, and so long that ``ras + rp`` is tRC).
    rfc : from REFRESH to the next command (tRFC).
    wr : from the last word written to PRECHARGE (tWR).
    rrd : from ACTIVATE to ACTIVATE of another bank (tRRD).
    mrd : from the mode register's command to the next (tMRD).
    turn : from a read to a write: ``cas_latency + 1 + capture``, one cycle more than the data takes.
    refresh : from the time at which a refresh is due to the next.
    power_up : for which the clock runs before the first command.
    capture : cycles after `cas_latency` at whose beginning the pads take the data (a value of the board).
    """

    data_bits: int
    banks: int
    rows: int
    columns: int
    cas_latency: int
    rcd: int
    rp: int
    ras: int
    rfc: int
    wr: int
    rrd: int
    mrd: int
    turn: int
    refresh: int
    power_up: int
    capture: int = 1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is not int:
                _refuse(f"{field.name} must be an integer, not {value!r}")
            low, high = LIMITS.get(field.name, (1, 1 << 16))
            if not low <= value <= high:
                _refuse(f"{field.name} must be {low}..{high}, not {value}")
        if self.data_bits not in (16, 32):
            _refuse(f"data_bits must be 16 or 32, not {self.data_bits}")
        if self.banks not in (2, 4):
            _refuse(f"banks must be 2 or 4, not {self.banks}")
        for name, low, high in (("rows", 2, 1 << 13), ("columns", *COLUMNS)):
            value = getattr(self, name)
            if value & (value - 1) or not low <= value <= high:
                _refuse(f"{name} must be a power of two in {low}..{high}, not {value}")
        if self.rp + self.rfc + self.rcd + 2 < self.turn:
            _refuse(f"turn must be at most rp + rfc + rcd + 2 = {self.rp + self.rfc + self.rcd + 2}, not {self.turn}")
        if self.refresh < 2 * self.sequence:
            _refuse(f"refresh must be at least {2 * self.sequence} cycles, not {self.refresh}")

    # -- geometry ------------------------------------------------------------------------------
    @property
    def column_bits(self) -> int:
        """Address bits of a column."""
        return self.columns.bit_length() - 1

    @property
    def bank_bits(self) -> int:
        """Address bits of a bank."""
        return self.banks.bit_length() - 1

    @property
    def row_bits(self) -> int:
        """Address bits of a row."""
        return self.rows.bit_length() - 1

    @cached_property
    def address_bits(self) -> int:
        """Bits of an address in columns."""
        return self.row_bits + self.bank_bits + self.column_bits

    @property
    def address_pins(self) -> int:
        """Pins A0 .. of the memory: enough for a row, and A10."""
        return max(self.row_bits, 11)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data_bits // 8 << self.address_bits

    @property
    def host_words(self) -> int:
        """32-bit words."""
        return self.size // 4

    # -- derived timing ------------------------------------------------------------------------
    @property
    def read_latency(self) -> int:
        """Cycles from the decision to read to the word at the controller's input."""
        return PREPARE + self.cas_latency + self.capture

    @property
    def slot_precharge(self) -> int:
        """Cycle of the host's slot in which it precharges."""
        return max(self.rcd + SLOT_COLUMNS - 1 + self.wr, self.ras)

    @property
    def slot(self) -> int:
        """Cycles of the host's slot."""
        return self.slot_precharge + self.rp

    @cached_property
    def sequence(self) -> int:
        """Most cycles from the one in which a refresh is begun to the first one after the slot."""
        return 1 + max(self.ras, self.wr) + self.rp + self.rfc + self.slot

    @property
    def start_wait(self) -> int:
        """Cycles from the start of a run to the first one after its sequence, once the memory is initialised: what has
        just begun may end, and then two refreshes come."""
        return self.sequence + 1 + self.rp + 2 * self.rfc + self.slot


ULX3S = ExternalMemory(
    data_bits=16, banks=4, rows=8192, columns=512, cas_latency=2, rcd=3, rp=3, ras=5, rfc=7, wr=2, rrd=2, mrd=2, turn=4,
    refresh=781, power_up=20_000,
)  # fmt: skip
"""What the board files of the ULX3S give at 100 MHz."""
ULX3S_125 = replace(ULX3S, cas_latency=3, ras=6, rfc=9, wr=3, turn=5, refresh=976, power_up=25_000)
"""The same at 125 MHz."""


def _refuse(why: str) -> None:
    raise UsageError("E2170", why, where="external memory")
