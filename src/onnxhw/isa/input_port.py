"""How the bytes of an input, which arrive in a row, come to their places in activation memory.

The host sends the elements of an input once, in the order of their addresses. The input port counts through
`InputRegion`s: rows of runs of bytes that lie side by side, and gaps between them, which it fills with the zero point
or passes over. What it does in each cycle is defined here (`steps`); gateware, device model and predicted cycles
follow it.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LANES = 4
"""Bytes of a word of the stream."""
MOST = 0xFFFF
"""Most runs of a row, and rows."""
LONGEST = 0xFFFFFF
"""Most bytes of a run."""
REGIONS = 16
"""Regions of a table: a packed input is one, another one three at most."""
REGION_WORDS = 7
REGION_STRIDE = 8
"""Words of a region in the table, and from one to the next."""
REGION_CYCLES = REGION_WORDS + 1
"""From the cycle in which a region is taken to that of the next, at least: its words are read one by one."""
PASSAGE = 21
"""Cycles of a latency that are neither the port's nor the run's: 14 from a frame's CRC until its first word is at the
port, 7 from the port's last step to the run's first cycle."""
RESTART = 7
"""Cycles more if the frame is the first one: until the port has the first region."""


@dataclass(frozen=True)
class InputRegion:
    """A part of activation memory; places and lengths are bytes, lane l of word w being byte ``w * W + l``.

    From `first` on come `lead` bytes of a gap, then `rows` rows of `runs` runs of `run` elements each. Between runs lie
    `gap` bytes, between rows `row_gap`, behind the last `tail`. With `fill` gaps are written with it, else passed over.
    `ends`: what is left of the stream's word is dropped, for the input is complete.
    """

    first: int
    run: int
    gap: int = 0
    runs: int = 1
    row_gap: int = 0
    rows: int = 1
    lead: int = 0
    tail: int = 0
    fill: int | None = None
    ends: bool = False

    def to_words(self, word: int, *, final: bool = False) -> tuple[int, ...]:
        """The 32-bit words that tell a device with `word` lanes; `final`: behind it comes the first region.

        Words 0 to 4: first, lead, gap, row_gap, tail, each memory word (bits 15..0) and lanes below one (23..16);
        with `fill` in bits 31..24 of the first, and of the second bit 24 fills, 25 ends, 26 final. Word 5: run; word 6:
        runs (15..0) and rows (31..16). Counts are 1 at least; the device takes a run of 0 for 1, so that the bytes of a
        frame bound its work.
        """
        lengths = self.first, self.lead, self.gap, self.row_gap, self.tail
        words = [length // word | length % word << 16 for length in lengths]
        words[0] |= ((self.fill or 0) & 0xFF) << 24
        words[1] |= (self.fill is not None) << 24 | self.ends << 25 | final << 26
        return (*words, self.run, self.runs | self.rows << 16)

    @classmethod
    def from_words(cls, words: Sequence[int], word: int) -> tuple["InputRegion", bool]:
        """Inverse of `to_words`: the region, and whether it is the final one."""
        first, lead, gap, row_gap, tail = ((each & 0xFFFF) * word + (each >> 16 & 0xFF) for each in words[:5])
        fill, flags = words[0] >> 24, words[1] >> 24
        signed = (fill ^ 0x80) - 0x80 if flags & 1 else None
        run, runs, rows = words[5], words[6] & 0xFFFF, words[6] >> 16
        region = cls(first, run, gap, runs, row_gap, rows, lead, tail, signed, bool(flags & 2))
        return region, bool(flags & 4)

    @property
    def elements(self) -> int:
        """Bytes of the stream that go there."""
        return self.run * self.runs * self.rows

    @property
    def end(self) -> int:
        """The byte behind it."""
        row = self.run * self.runs + self.gap * (self.runs - 1)
        return self.first + self.lead + row * self.rows + self.row_gap * (self.rows - 1) + self.tail


class PortStep(NamedTuple):
    """One cycle of the port: `count` bytes from byte `at` of the memory on, all in one word, are written; 0: none.

    `source`: the byte of the stream that the first of them takes; None: all take the region's `fill`.
    """

    at: int
    count: int  # type: ignore[assignment]  # hides the method of tuples
    source: int | None = None


def steps(regions: Sequence[InputRegion], word: int) -> Iterator[PortStep]:
    """What the port does cycle by cycle, in a memory of `word` lanes, if neither stream nor memory make it wait.

    A region is taken in one cycle, `REGION_CYCLES` after the one before at the earliest; of a gap, the first finds out
    where it ends, and each of the others writes a word or its part, the last maybe none.
    """
    source = 0
    for number, region in enumerate(regions):
        count = 0
        for step in _steps(region, word, source):
            yield step
            count += 1
        source += region.elements
        if region.ends:
            source += -source % LANES
        if number + 1 < len(regions):
            yield from [PortStep(region.end, 0)] * (REGION_CYCLES - count)


def _steps(region: InputRegion, word: int, source: int) -> Iterator[PortStep]:
    """Of one region, whose first element is byte `source` of the stream."""
    at = region.first
    yield PortStep(at, 0)
    at = yield from _gap(region, at, region.lead, word)
    for row in range(region.rows):
        for run in range(region.runs):
            end = at + region.run
            while at < end:
                count = min(LANES - source % LANES, end - at, word - at % word)
                yield PortStep(at, count, source)
                at, source = at + count, source + count
            within = region.gap if run + 1 < region.runs else region.row_gap
            last = run + 1 == region.runs and row + 1 == region.rows
            at = yield from _gap(region, at, region.tail if last else within, word)


def table_words(regions: Sequence[InputRegion], word: int) -> list[int]:
    """The table as words, `REGION_STRIDE` for each region."""
    found: list[int] = []
    for number, region in enumerate(regions, 1):
        found += region.to_words(word, final=number == len(regions))
        found += [0] * (-len(found) % REGION_STRIDE)
    return found


def from_table(words: Sequence[int], word: int) -> list[InputRegion]:
    """Inverse of `table_words`, of a table with anything behind its final region."""
    found = []
    for at in range(0, len(words) - REGION_WORDS + 1, REGION_STRIDE):
        region, final = InputRegion.from_words(words[at : at + REGION_WORDS], word)
        found.append(region)
        if final:
            break
    return found


def _gap(
    region: InputRegion, at: int, size: int, word: int
) -> Generator[PortStep, None, int]:  # returns the byte behind it
    end = at + size
    yield PortStep(at, 0)
    while region.fill is not None and at // word != end // word:
        following = (at // word + 1) * word
        yield PortStep(at, following - at)
        at = following
    yield PortStep(at, end - at if region.fill is not None else 0)
    return end


def stream_words(regions: Sequence[InputRegion]) -> int:
    """Words of the stream that fill the regions."""
    total = 0
    for region in regions:
        total += region.elements
        if region.ends:
            total += -total % LANES
    return -(-total // LANES)


def input_cycles(regions: Sequence[InputRegion], word: int, after: int = 0) -> int:
    """Cycles of the port from the first step that takes a byte of the stream's word `after` to the last step of all:
    what is left to do when the words before it have been taken and all others are there."""
    begun, total = None if after else 0, 0
    for step in steps(regions, word):
        if begun is None and step.source is not None and step.source >= LANES * after:
            begun = total
        total += 1
    return 0 if begun is None else total - begun


def latency(regions: Sequence[InputRegion], word: int, cycles: int, after: int) -> int:
    """Cycles from the one in which the last frame of input is accepted (its CRC is found right) to the last of the run,
    which takes `cycles`, both included: for a device that was idle and had RUN before. `after`: words of the stream
    before that frame. The last step must write nothing, as behind whole words or without `fill`."""
    return PASSAGE + (0 if after else RESTART) + input_cycles(regions, word, after) + cycles
