"""An image in the board's SPI flash, from which a device loads a program at power-up.

The image is what a host would send: `HEADER_BYTES` and then frames of `onnxhw.isa.link`, each with its CRC, HELLO first
and COMMIT last, so that nothing is written that did not arrive whole, and nothing runs that is not complete.
"""

import struct

MAGIC = 0x46484E4F
"""The first word of an image, little-endian: the letters ONHF."""
HEADER = struct.Struct("<II")
"""`MAGIC`, and how many bytes of frames follow."""
HEADER_BYTES = HEADER.size
READ = 0x03
"""The plain read command of every 25-series flash: three bytes of address, then data for as long as the clock runs."""
WAKE = 0xAB
"""Release from power-down; a memory that is awake ignores it."""
WAKE_SECONDS = 100e-6
"""After `WAKE`, generously: data sheets of such memories ask for microseconds to some tens of them (tRES1)."""
SCK_HZ = 25_000_000
"""The fastest clock: half of the 50 MHz that `READ` allows with the ULX3S' memories (boards/ulx3s-85f.toml). A bit of
40 ns has room for the pads and for the memory's time from clock to output; neither was measured on a board."""
ADDRESS_BITS = 24
"""Of `READ`: 16 MB can be reached."""


def half_period(clock_hz: int) -> int:
    """Cycles of the core's clock for which SCK is low, and then high."""
    return max(1, -(-clock_hz // (2 * SCK_HZ)))


def byte_cycles(clock_hz: int) -> int:
    """Cycles of the core's clock from one byte to the next: its bits, and three until it is handed over."""
    return 16 * half_period(clock_hz) + 3


def read_seconds(size: int, clock_hz: int) -> float:
    """How long a device reads so many bytes of flash."""
    return size * byte_cycles(clock_hz) / clock_hz
