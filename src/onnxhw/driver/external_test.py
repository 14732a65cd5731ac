"""What a device can be asked to prove about its external memory, through its link."""

import time

import numpy as np
import numpy.typing as npt

from ..external import ExternalMemory
from ..isa.link import Command
from ..isa.memory import Space
from .client import Client
from .inferences import pieces, reads

Words = npt.NDArray[np.uint32]
SEED = 2
ROWS = 256
"""Rows, spread over all, that the test of retention writes: what a serial line carries in a second."""
WAIT = 1.0
"""Seconds without an access: many times the 64 ms in which a row must be refreshed."""


def data_lines(client: Client, external: ExternalMemory) -> str:
    """Each data line alone high, and alone low: which words came back changed, empty if none."""
    ones = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    return _compare(client, [(0, np.concatenate([ones, ~ones]))])


def address_lines(client: Client, external: ExternalMemory) -> str:
    """Another word at address 0 and at each power of two: no line of column, bank or row stands still or follows
    another."""
    size = external.host_words
    places = [0, *(1 << bit for bit in range(size.bit_length() - 1))]
    found = ""
    for flip in (0, 0xFFFFFFFF):
        found = found or _compare(
            client, [(place, _words([place * 0x9E3779B1 + 1 & 0xFFFFFFFF ^ flip])) for place in places]
        )
    return found


def banks(client: Client, external: ExternalMemory) -> str:
    """All columns of a row in every bank, of all banks before any is read."""
    per_row = external.columns * external.data_bits // 32
    random = np.random.default_rng(SEED)
    row = external.rows // 2 - 1
    count = min(per_row, 64)
    starts = [(row * external.banks + bank) * per_row for bank in range(external.banks)]
    ends = [start + per_row - count for start in starts]
    return _compare(
        client, [(start, random.integers(0, 1 << 32, count).astype(np.uint32)) for start in (*starts, *ends)]
    )


def retention(client: Client, external: ExternalMemory, wait: float = WAIT) -> str:
    """A word in each of `ROWS` rows of all banks, read after `wait` seconds."""
    random = np.random.default_rng(SEED + 1)
    per_row = external.columns * external.data_bits // 32
    pages = external.rows * external.banks
    chosen = np.unique(random.integers(0, pages, ROWS))
    written = [(int(page) * per_row, _words([int(random.integers(0, 1 << 32))])) for page in chosen]
    _write(client, written)
    time.sleep(wait)
    return _wrong(client, written)


TESTS = {
    "external data lines": data_lines, "external address lines": address_lines, "external banks": banks,
    "external retention": retention,
}  # fmt: skip


def _words(values: list[int]) -> Words:
    return np.array(values, np.uint32)


def _compare(client: Client, written: list[tuple[int, Words]]) -> str:
    """Write all, then read all."""
    _write(client, written)
    return _wrong(client, written)


def _write(client: Client, written: list[tuple[int, Words]]) -> None:
    """All of it, without waiting for each answer."""
    frames = (pieces(Space.EXTERNAL, place, words.astype("<u4").tobytes(), 1) for place, words in written)
    client.link.perform([request for each in frames for request in each])


def _wrong(client: Client, written: list[tuple[int, Words]]) -> str:
    """Words that differ from what was written: how many, which data lines, and the first address; empty if none."""
    lines, wrong, first = 0, 0, -1
    asked = [request for place, words in written for request in reads(Command.READ, Space.EXTERNAL, place, len(words))]
    answers = client.link.perform(asked)
    read = np.frombuffer(b"".join(answer.payload for answer in answers), "<u4")
    at = 0
    for place, words in written:
        found, at = read[at : at + len(words)], at + len(words)
        differ = np.flatnonzero(found != words)
        if len(differ):
            first = place + int(differ[0]) if first < 0 else first
            wrong += len(differ)
            lines |= int(np.bitwise_or.reduce(found ^ words))
    total = sum(len(words) for _, words in written)
    return f"{wrong} of {total} words changed, bits {lines:08x}, first at word 0x{first:06x}" if wrong else ""
