"""What a device can be asked to prove about itself: its description, its line, and its memories."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..isa.memory import Control, Space, host_stride
from ..program.layout import from_host, to_host
from . import external_test
from .device import Device

SEED = 1


@dataclass(frozen=True)
class TestOutcome:
    """One test: its name, whether it went well, and what was found."""

    name: str
    ok: bool
    found: str


def findings(device: Device, progress: Callable[[str], None] = lambda name: None) -> Iterator[TestOutcome]:
    """The tests in order; `progress` hears the name of each before it starts.

    They need no program and leave none: what was loaded is forgotten. A line that fails raises, as everywhere.
    """
    progress("description")
    yield description(device)
    progress("activation memory")
    yield memory(device)
    if device.info.config is not None and device.info.config.external is not None:
        for name in external_test.TESTS:
            progress(name)
            yield external(device, name)
    progress("line")
    yield line(device)


def description(device: Device) -> TestOutcome:
    """The description (a memory of its own) and the core (constants in its logic) name the same configuration."""
    info, client = device.info, device.client
    if info.config is None:
        return TestOutcome("description", False, f"configuration {info.fingerprint} is none of this release")
    low, high = (int(word) for word in client.read(Space.CONTROL, Control.FINGERPRINT_LOW, 2))
    core = f"{high << 32 | low:016x}"
    same = core == info.fingerprint == info.config.fingerprint
    text = f"{info.config.name}, {info.fingerprint}" if same else f"it says {info.fingerprint}, the core is {core}"
    return TestOutcome("description", same, text)


def memory(device: Device) -> TestOutcome:
    """Every bit of activation memory holds 0 and 1, and every address is another word: random numbers, then their
    complement."""
    config = device.info.config
    if config is None:
        return TestOutcome("activation memory", False, "its size is not known")
    device.client.reset()
    words = np.random.default_rng(SEED).integers(0, 256, (config.act_words, config.word)).astype(np.uint8)
    wrong = 0
    for pattern in (words, ~words):
        device.client.write(Space.ACT, 0, to_host(pattern, config.word))
        count = config.act_words * host_stride(config.word)
        wrong += int((from_host(device.client.read(Space.ACT, 0, count), config.word) != pattern).any(1).sum())
    if wrong:
        return TestOutcome("activation memory", False, f"{wrong} of {2 * len(words):,} words come back changed")
    return TestOutcome("activation memory", True, f"{words.size:,} bytes, twice")


def external(device: Device, name: str) -> TestOutcome:
    """One of the tests of external memory."""
    config = device.info.config
    memory = config.external if config else None
    if memory is None:
        return TestOutcome(name, False, "its size is not known")
    wrong = external_test.TESTS[name](device.client, memory)
    return TestOutcome(name, not wrong, wrong or f"{memory.size >> 20} MB, {memory.data_bits} bits")


def line(device: Device) -> TestOutcome:
    """What the line did to the frames so far; faults that were mended are no failure, but tell of a bad cable."""
    seen = device.client.counters
    mended = f"{seen.retries} sent again, {seen.timeouts} timeouts, {seen.refused} found damaged by the device"
    return TestOutcome("line", True, f"{seen.frames:,} frames, {mended}")
