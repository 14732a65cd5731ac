"""`BoardMemory`: the external memory of a board file, with the timing of its data sheets in nanoseconds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .errors import UsageError, short
from .external import COLUMNS, ExternalMemory

KEYS: dict[str, tuple[type, str]] = {
    "resource": (str, "what the platform calls the memory's pins"),
    "source": (str, "the data sheets that the numbers are from, for people"),
    "data_bits": (int, "data pins: 16 or 32"),
    "banks": (int, "banks: 2 or 4"),
    "rows": (int, "rows of a bank"),
    "columns": (int, "columns of a row"),
    "capture": (int, "cycles after the CAS latency in which data is taken: 1, or 2"),
    "tck2_ns": (float, "shortest clock period at CAS latency 2"),
    "tck3_ns": (float, "shortest clock period at CAS latency 3"),
    "tac2_ns": (float, "from the clock to data at CAS latency 2, at most"),
    "tac3_ns": (float, "from the clock to data at CAS latency 3, at most"),
    "toh_ns": (float, "from the clock to the end of data, at least"),
    "tsu_ns": (float, "setup of all inputs (tIS, tSS, tDS)"),
    "th_ns": (float, "hold of all inputs (tIH, tSH, tDH)"),
    "trcd_ns": (float, "from ACTIVATE to a column command"),
    "trp_ns": (float, "from PRECHARGE to the next command of the bank"),
    "tras_ns": (float, "from ACTIVATE to PRECHARGE, at least"),
    "trc_ns": (float, "from ACTIVATE to ACTIVATE of the bank"),
    "trfc_ns": (float, "from REFRESH to the next command (tRFC, or tRC)"),
    "twr_ns": (float, "from the last word written to PRECHARGE (tWR, tRDL, tDPL)"),
    "trrd_ns": (float, "from ACTIVATE to ACTIVATE of another bank"),
    "tmrd_cycles": (int, "cycles from the mode register's command to the next"),
    "retention_ms": (float, "within which as many refreshes as rows must come; 32 where twice as many come in 64"),
    "power_up_us": (float, "for which the clock runs before the first command"),
}
"""Keys of a board file's table ``external``: the types of their values, and what they say."""
LONGEST_NS = 10_000_000.0
"""No time of a data sheet is longer but for `retention_ms` (the power-up has 200 microseconds)."""


@dataclass(frozen=True)
class BoardMemory:
    """An SDR SDRAM on a board: the slowest numbers of all chips that the board may carry.

    Parameters
    ----------
    resource : the platform's resource with the pins, named as amaranth-boards' ``SDRAMResource`` names them.
    source : where the numbers are from.
    data_bits, banks, rows, columns, capture : as of `ExternalMemory`.
    tck2_ns, tck3_ns : shortest period of the clock at CAS latency 2 and 3.
    tac2_ns, tac3_ns, toh_ns : from the clock to data that is there, and as long as it stays.
    tsu_ns, th_ns : setup and hold of all inputs.
    trcd_ns .. trrd_ns, tmrd_cycles : least times between commands.
    retention_ms : within which as many refreshes as `rows` must come: the data sheet's time, or a half of it where that
        asks for twice as many.
    power_up_us : for which the clock must run before the first command.
    """

    resource: str
    source: str
    data_bits: int
    banks: int
    rows: int
    columns: int
    capture: int
    tck2_ns: float
    tck3_ns: float
    tac2_ns: float
    tac3_ns: float
    toh_ns: float
    tsu_ns: float
    th_ns: float
    trcd_ns: float
    trp_ns: float
    tras_ns: float
    trc_ns: float
    trfc_ns: float
    twr_ns: float
    trrd_ns: float
    tmrd_cycles: int
    retention_ms: float
    power_up_us: float

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data_bits // 8 * self.banks * self.rows * self.columns

    def external(self, clock_hz: int) -> ExternalMemory:
        """The memory at a clock, in cycles; `UsageError` E2373 if the clock is too fast for it or so slow that
        refreshes leave no time for anything else."""

        def cycles(nanoseconds: float, least: int = 1) -> int:
            return max(least, math.ceil(Fraction(str(nanoseconds)) * clock_hz / 10**9))

        period = Fraction(10**9, clock_hz)
        if period < Fraction(str(self.tck3_ns)):
            what = f"the external memory takes a clock of {1e3 / self.tck3_ns:.4g} MHz at most, not {clock_hz / 1e6:g}"
            raise UsageError("E2373", what, hint="a lower clock (--freq), or a preset without +sdram")
        latency = 2 if period >= Fraction(str(self.tck2_ns)) else 3
        rp = cycles(self.trp_ns)
        fields = {
            "data_bits": self.data_bits, "banks": self.banks, "rows": self.rows, "columns": self.columns,
            "cas_latency": latency, "rcd": cycles(self.trcd_ns), "rp": rp,
            "ras": max(cycles(self.tras_ns), cycles(self.trc_ns) - rp), "rfc": cycles(self.trfc_ns),
            # Some makers give these two in cycles, too.
            "wr": cycles(self.twr_ns, 2), "rrd": cycles(self.trrd_ns, 2), "mrd": self.tmrd_cycles,
            "turn": latency + 1 + self.capture, "power_up": cycles(1000 * self.power_up_us), "capture": self.capture,
        }  # fmt: skip
        try:
            # A refresh may come late by a sequence that is under way and the precharge before it.
            late = 2 * ExternalMemory(**fields, refresh=(1 << 16) - 1).sequence
            retention = Fraction(str(self.retention_ms)) * clock_hz / 1000
            return ExternalMemory(**fields, refresh=min(math.floor((retention - late) / self.rows), (1 << 16) - 1))
        except UsageError as error:
            hint = "a higher clock (--freq), or a preset without +sdram"
            what = f"the external memory at {clock_hz / 1e6:g} MHz: {error.what}"
            raise UsageError("E2373", what, hint=hint) from error


def require_memory(table: Mapping[str, Any]) -> None:
    """What the values of a board file's table ``external`` must be beyond their types; else `ValueError`."""
    for key in ("resource", "source"):
        if not table.get(key, "sdram"):
            raise ValueError(f"external.{key} must not be empty")
    choices = {"data_bits": (16, 32), "banks": (2, 4), "capture": (1, 2)}
    for key, known in choices.items():
        if table[key] not in known:
            raise ValueError(f"external.{key} must be {known[0]} or {known[1]}, not {short(table[key])}")
    for key, (low, high) in {"rows": (2, 1 << 13), "columns": COLUMNS}.items():
        if table[key] & (table[key] - 1) or not low <= table[key] <= high:
            raise ValueError(f"external.{key} must be a power of two in {low}..{high}, not {short(table[key])}")
    if not 1 <= table["tmrd_cycles"] <= 7:
        raise ValueError(f"external.tmrd_cycles must be 1..7, not {short(table['tmrd_cycles'])}")
    for key, (kind, _) in KEYS.items():
        if kind is float and not 0 < table[key] <= LONGEST_NS:
            raise ValueError(f"external.{key} must be above 0 and at most {LONGEST_NS:g}, not {short(table[key])}")
    if table["tck2_ns"] < table["tck3_ns"]:
        raise ValueError("external.tck2_ns must not be less than tck3_ns: a later answer allows a faster clock")
