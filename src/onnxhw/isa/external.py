"""Commands of the external memory and the cycles in which its controller gives them: rules that the RTL follows.

Cycles are those in which the controller decides; the pins show a command `onnxhw.external.PREPARE` cycles later. A
request (write or read, an address and a number of columns) is cut into *segments*, each within one row. Two segments
are known: the current one, whose columns are transferred, one per cycle, and the next, whose row is opened meanwhile.

In each cycle, what of this comes first and is allowed:

1. a sequence begins, if a refresh is due (or, with nothing under way, the host asks for one);
2. ACTIVATE or PRECHARGE for the current segment;
3. ACTIVATE or PRECHARGE for the next segment, if it is in another bank;
4. a column of the current segment: READ or WRITE.

A *sequence* precharges all banks as soon as ``ras`` and ``wr`` allow, refreshes ``rp`` cycles later, and is followed
``rfc`` cycles later by the host's slot, whose cycles pass whether it is used or not: cycle 0 ACTIVATE, ``rcd`` the
first of at most 8 columns, `ExternalMemory.slot_precharge` PRECHARGE of all banks, ``rp`` later the slot ends.

Refreshes are due every ``refresh`` cycles.

The start of a run keeps other sequences from beginning while nothing is under way; after `ExternalMemory.sequence`
cycles, when any has ended, its own begins, which refreshes twice, for one that was due meanwhile, too, and sets the
timer: the next one is due ``refresh`` cycles after the second REFRESH. So a run begins `ExternalMemory.start_wait`
cycles after its start, and finds all rows closed and the timer as it always is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ..external import ExternalMemory

INITIAL_REFRESHES = 8
"""After power-up, before the mode register is written (makers ask for 2 to 8)."""
COUNT_BITS = 16
"""Bits of a request's number of columns."""
NEVER = 1 << 62
"""A cycle after all others."""


class SdramCommand(IntEnum):
    """Commands: bit 2 RAS, bit 1 CAS, bit 0 WE."""

    NOP = 0
    READ = 2
    WRITE = 3
    ACTIVATE = 4
    PRECHARGE = 5
    REFRESH = 6
    MODE = 7


ALL = 1 << 10
"""Address bit that makes PRECHARGE one of all banks."""


def mode(external: ExternalMemory) -> int:
    """The mode register: bursts of one column, sequential, the CAS latency."""
    return external.cas_latency << 4


class MemoryRequest(NamedTuple):
    """`columns` columns from `address` on, offered to the controller from `cycle` on."""

    cycle: int
    write: bool
    address: int
    columns: int


class TimedCommand(NamedTuple):
    """A command: `address` is what the pins A show."""

    cycle: int
    op: SdramCommand
    bank: int = 0
    address: int = 0


def place(external: ExternalMemory, address: int) -> tuple[int, int, int]:
    """Row, bank and column of an address in columns."""
    rest, column = divmod(address, external.columns)
    row, bank = divmod(rest, external.banks)
    return row % external.rows, bank, column


@dataclass
class RowSegment:
    """A part of a request within a row. Its request was accepted in cycle `accepted`, it was cut in cycle `cut` and is
    the current one from cycle `begins` on."""

    request: int
    write: bool
    row: int
    bank: int
    column: int
    left: int
    accepted: int = 0
    cut: int = 0
    begins: int = NEVER


@dataclass
class BankState:
    """`row`: the open one, or None. `ready`: from when on a column (a row is open) or ACTIVATE (none is) may come;
    `closes`: from when on PRECHARGE."""

    row: int | None = None
    ready: int = 0
    closes: int = 0


class SdramTiming:
    """The commands for any lists of requests, and their cycles.

    Cycle 0 is the first one after initialisation: no row is open, the first refresh is due in cycle `refresh`.

    Parameters
    ----------
    requests : in order of their cycles.
    host : requests of at most 8 columns in one row; a slot serves the first one that is left, if it was offered in the
        slot's first cycle or before.
    running : during a run the host waits for slots of refreshes that are due.
    start : cycle in which the start of a run is asked for, or None.
    """

    def __init__(
        self, external: ExternalMemory, requests: Sequence[MemoryRequest], host: Sequence[MemoryRequest] = (), *,
        running: bool = True, start: int | None = None,
    ) -> None:  # fmt: skip
        self.external, self.requests, self.host = external, requests, list(host)
        self.running, self.start = running, start
        self.cycle = 0
        self.due = external.refresh
        self.started: int | None = None
        """First cycle after the sequence of the run's start."""
        self.finished: list[int] = []
        """Cycle of the last column of each segment."""
        self._banks = [BankState() for _ in range(external.banks)]
        self._activates = self._writes = 0
        self._every: int | None = None
        """Of the requests of a transfer: cycles from one that was taken to the next one's offer."""
        self._segments = self._cut()
        self._last: RowSegment | None = None
        self._current = self._prepare(-1)
        if self._current:
            self._current.begins = self._current.cut + 2
        self._next = self._prepare(self._current.begins if self._current else 0)

    # -- a run's transfers, one after the other ------------------------------------------------

    def run_began(self, late: int) -> None:
        """Cycle 0 is `late` cycles after the end of the sequence that a run begins with: all rows are closed, nothing
        is under way."""
        self.due = self.external.refresh - self.external.rfc - self.external.slot - late

    def transfer(self, write: bool, start: int, every: int, addresses: Sequence[int], columns: int) -> int:
        """The cycle of the last column of requests of `columns` columns each, from these addresses on.

        The first one is offered in cycle `start`, when none is under way, each of the others `every` cycles after the
        one before was taken.
        """
        self.requests = [MemoryRequest(start, write, address, columns) for address in addresses]
        self._every, self._segments, self._last = every, self._cut(), None
        self._current = self._prepare(-1)
        assert self._current is not None
        self._current.begins = self._current.cut + 2
        self._next = self._prepare(self._current.begins)
        while self._busy():
            for _ in self._step(NEVER):
                pass
        last = self.finished[-1]
        self.finished.clear()
        return last

    def _busy(self) -> bool:
        return self._current is not None

    # -- commands ------------------------------------------------------------------------------

    def commands(self, until: int) -> Iterator[TimedCommand]:
        """All commands in cycles below `until`, in order."""
        while self.cycle < until:
            for given in self._step(until):
                if given.cycle < until:
                    yield given

    # -- the way of a request ------------------------------------------------------------------

    def _cut(self) -> Iterator[RowSegment]:
        for number, (_, write, address, left) in enumerate(self.requests):
            while left:
                row, bank, column = place(self.external, address)
                length = min(left, self.external.columns - column)
                yield RowSegment(number, write, row, bank, column, length)
                address, left = address + length, left - length

    def _prepare(self, begins: int) -> RowSegment | None:
        """The segment after `_last`, which is the current one from cycle `begins` on."""
        segment, last = next(self._segments, None), self._last
        if segment is None:
            return None
        if last and last.request == segment.request:
            segment.accepted, segment.cut = last.accepted, begins
        else:
            offered = self.requests[segment.request].cycle
            if self._every is not None and last:
                offered = last.accepted + self._every
            segment.accepted = max(offered, last.cut + 1 if last else 0)
            segment.cut = max(segment.accepted + 1, begins)
        self._last = segment
        return segment

    def _finish(self, cycle: int) -> None:
        """The current segment's last column is in this cycle."""
        self.finished.append(cycle)
        self._current = self._next
        if self._current:
            self._current.begins = max(self._current.cut + 1, cycle) + 1
            self._next = self._prepare(self._current.begins)

    # -- what comes next -----------------------------------------------------------------------

    def _step(self, until: int) -> Iterator[TimedCommand]:
        """The next command or commands; at least one cycle passes."""
        begin = self._sequence_begins()
        now, then = self._row(self._current, self._current), self._row(self._next, self._current)
        first = min(now, then, begin)
        column = self._column()
        if column < first:
            yield from self._columns(column, min(first, until))
        elif begin == first:
            if begin >= until:
                self.cycle = until
            else:
                yield from self._sequence(begin)
        else:
            yield self._open(self._current if now <= then else self._next, first)

    def _sequence_begins(self) -> int:
        """The first cycle in which a sequence may begin."""
        if self.start is None and not self.host:
            return max(self.due, self.cycle)
        idle = NEVER if self._current is None else self._current.accepted
        start = NEVER if self.start is None else self.start
        begin = max(self.due, self.cycle)
        if start < begin <= idle:
            begin = idle + 1
        asked = max(self.host[0].cycle, self.cycle) if self.host and not self.running else NEVER
        if asked <= min(start, idle):
            begin = min(begin, asked)
        of_start = max(start + self.external.sequence, self.cycle)
        return min(begin, of_start) if of_start <= idle else begin

    def _row(self, segment: RowSegment | None, current: RowSegment | None) -> int:
        """When ACTIVATE or PRECHARGE may come for a segment that is current or next; `NEVER` if none does."""
        if segment is None or current is None or (segment is not current and segment.bank == current.bank):
            return NEVER
        bank = self._banks[segment.bank]
        if bank.row == segment.row:
            return NEVER
        allowed = max(bank.ready, self._activates) if bank.row is None else bank.closes
        return max(allowed, current.begins, segment.cut + 1, self.cycle)

    def _open(self, segment: RowSegment | None, cycle: int) -> TimedCommand:
        assert segment is not None
        bank, timing = self._banks[segment.bank], self.external
        self.cycle = cycle + 1
        if bank.row is not None:
            bank.row, bank.ready = None, cycle + timing.rp
            return TimedCommand(cycle, SdramCommand.PRECHARGE, segment.bank, 0)
        bank.row, bank.ready, bank.closes = segment.row, cycle + timing.rcd, cycle + timing.ras
        self._activates = cycle + timing.rrd
        return TimedCommand(cycle, SdramCommand.ACTIVATE, segment.bank, segment.row)

    def _column(self) -> int:
        """When the current segment's next column may come; `NEVER` if its row is not open."""
        segment = self._current
        if segment is None or self._banks[segment.bank].row != segment.row:
            return NEVER
        turn = self._writes if segment.write else 0
        return max(self.cycle, segment.begins, self._banks[segment.bank].ready, turn)

    def _columns(self, cycle: int, end: int) -> Iterator[TimedCommand]:
        """Columns of the current segment from a cycle on, before `end`."""
        segment = self._current
        assert segment is not None
        bank, op = self._banks[segment.bank], SdramCommand.WRITE if segment.write else SdramCommand.READ
        count = max(1, min(segment.left, end - cycle))
        if self._every is None:  # nobody looks at the commands of a transfer
            for n in range(count):
                yield TimedCommand(cycle + n, op, segment.bank, segment.column + n)
        last = cycle + count - 1
        segment.column, segment.left = segment.column + count, segment.left - count
        self._moved(bank, segment.write, last)
        self.cycle = last + 1
        if not segment.left:
            self._finish(last)

    def _moved(self, bank: BankState, write: bool, last: int) -> None:
        """What a column in cycle `last` keeps from coming soon."""
        if write:
            bank.closes = max(bank.closes, last + self.external.wr)
        else:
            self._writes = last + self.external.turn

    def _sequence(self, begin: int) -> Iterator[TimedCommand]:
        timing = self.external
        of_start = self.start is not None and begin > self.start and self._idle(begin)
        if self.due <= begin:
            self.due += timing.refresh
        precharge = max(begin + 1, *(bank.closes for bank in self._banks))
        refresh = precharge + timing.rp
        yield TimedCommand(precharge, SdramCommand.PRECHARGE, 0, ALL)
        yield TimedCommand(refresh, SdramCommand.REFRESH)
        if of_start:
            refresh += timing.rfc
            yield TimedCommand(refresh, SdramCommand.REFRESH)
            self.due = refresh + timing.refresh
        slot = refresh + timing.rfc
        if self.host and self.host[0].cycle <= slot:
            _, write, address, count = self.host.pop(0)
            row, number, column = place(timing, address)
            yield TimedCommand(slot, SdramCommand.ACTIVATE, number, row)
            for n in range(count):
                yield TimedCommand(
                    slot + timing.rcd + n, SdramCommand.WRITE if write else SdramCommand.READ, number, column + n
                )
            if not write:
                self._writes = slot + timing.rcd + count - 1 + timing.turn
        yield TimedCommand(slot + timing.slot_precharge, SdramCommand.PRECHARGE, 0, ALL)
        self.cycle = slot + timing.slot
        for bank in self._banks:
            bank.row, bank.ready, bank.closes = None, self.cycle, self.cycle
        if of_start:
            self.started, self.start = self.cycle, None

    def _idle(self, cycle: int) -> bool:
        """No request is under way."""
        return self._current is None or cycle <= self._current.accepted
