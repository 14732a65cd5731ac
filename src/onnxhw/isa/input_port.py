"""How the bytes of an input, which arrive in a row, come to their places in activation memory.

The host sends the elements of an input once, in the order of their addresses. The input port counts through `Region`s:
rows of runs of bytes that lie side by side, and gaps between them, which it fills with the zero point or passes over.
What it does in each cycle is defined here (`steps`); gateware, device model and predicted cycles follow it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LANES = 4
"""Bytes of a word of the stream."""


@dataclass(frozen=True)
class Region:
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

    @property
    def elements(self) -> int:
        """Bytes of the stream that go there."""
        return self.run * self.runs * self.rows

    @property
    def end(self) -> int:
        """The byte behind it."""
        row = self.run * self.runs + self.gap * (self.runs - 1)
        return self.first + self.lead + row * self.rows + self.row_gap * (self.rows - 1) + self.tail


class Step(NamedTuple):
    """One cycle of the port: `count` bytes from byte `at` of the memory on, all in one word, are written; 0: none.

    `source`: the byte of the stream that the first of them takes; None: all take the region's `fill`.
    """

    at: int
    count: int
    source: int | None = None


def steps(regions: Sequence[Region], word: int) -> Iterator[Step]:
    """What the port does cycle by cycle, in a memory of `word` lanes, if neither stream nor memory make it wait.

    A region is taken in one cycle; of a gap, the first finds out where it ends, and each of the others writes a word or
    its part, the last maybe none.
    """
    source = 0
    for region in regions:
        at = region.first
        yield Step(at, 0)
        at = yield from _gap(region, at, region.lead, word)
        for row in range(region.rows):
            for run in range(region.runs):
                end = at + region.run
                while at < end:
                    count = min(LANES - source % LANES, end - at, word - at % word)
                    yield Step(at, count, source)
                    at, source = at + count, source + count
                within = region.gap if run + 1 < region.runs else region.row_gap
                last = run + 1 == region.runs and row + 1 == region.rows
                at = yield from _gap(region, at, region.tail if last else within, word)
        if region.ends:
            source += -source % LANES


def _gap(region: Region, at: int, size: int, word: int) -> Iterator[Step]:  # returns the byte behind it
    end = at + size
    yield Step(at, 0)
    while region.fill is not None and at // word != end // word:
        following = (at // word + 1) * word
        yield Step(at, following - at)
        at = following
    yield Step(at, end - at if region.fill is not None else 0)
    return end


def stream_words(regions: Sequence[Region]) -> int:
    """Words of the stream that fill the regions."""
    total = 0
    for region in regions:
        total += region.elements
        if region.ends:
            total += -total % LANES
    return -(-total // LANES)


def input_cycles(regions: Sequence[Region], word: int, after: int = 0) -> int:
    """Cycles of the port from the first step that takes a byte of the stream's word `after` to the last step of all:
    what is left to do when the words before it have been taken and all others are there."""
    begun, total = 0, 0
    for step in steps(regions, word):
        if step.source is not None and step.source < LANES * after:
            begun = total + 1
        total += 1
    waits = 0
    if after:  # steps without a byte that follow the last word before are done while the next frame travels
        for number, step in enumerate(steps(regions, word)):
            if number >= begun and step.source is not None:
                break
            waits += number >= begun
    return total - begun - waits
