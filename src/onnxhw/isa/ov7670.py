"""The camera OV7670: what is written to its registers, and its timing.

Facts are of OmniVision's data sheet (OV7670/OV7171, version 1.4) and of its SCCB specification (version 2.1); where the
data sheet calls a register reserved, the value is the one that public register tables for this format commonly have.
"""

from typing import NamedTuple

DEVICE = 0x42
"""Its SCCB address for writing, as eight bits."""
SCCB_HZ = 200_000
"""Rate of SIO_C: half of what the specification allows."""
XCLK_MOST, XCLK_LEAST = 25_000_000, 10_000_000
"""Usual and slowest input clock; the data sheet allows 10 to 48 MHz with a duty of 45 to 55 %."""
PCLK_DIVISION = 2
"""Periods of XCLK per byte, as `REGISTERS` set it."""
RESET_US = 2_000
"""RESET# is low for so long from power-up; 1 ms is asked for."""
SETTLE_US = 2_000
"""Behind RESET# and the reset by register: 1 ms is asked for."""
LINES, LINE_BYTES = 255, 1568
"""Rows of a frame and bytes of a row with those in which nothing is sent, at QVGA: a frame is 510 rows of the sensor
of 784 pixels each, 2 bytes a pixel; every second row is sent, every second pixel of it, at half the rate."""
VSYNC_LINES, FIRST_LINE = 1.5, 10
"""VSYNC lasts 3 rows of the sensor, and the first row that is sent begins 17 rows behind it."""
SETUP_NS, HOLD_NS = 15, 8
"""Data are valid before and after PCLK rises, at least."""


class RegisterWrite(NamedTuple):
    """A register, its value, and why."""

    register: int
    value: int
    why: str


RESET = RegisterWrite(0x12, 0x80, "COM7: all registers as at power-up; then comes a pause")
REGISTERS = (
    RESET,
    RegisterWrite(0x11, 0x40, "CLKRC: the input clock as it is, not divided"),
    RegisterWrite(0x6B, 0x0A, "DBLV: no PLL"),
    RegisterWrite(0x12, 0x04, "COM7: VGA, RGB"),
    RegisterWrite(0x40, 0xD0, "COM15: RGB565, values 0 to 255"),
    RegisterWrite(0x8C, 0x00, "RGB444: off"),
    RegisterWrite(0x3A, 0x04, "TSLB: order of bytes as in the data sheet's figure of RGB565, red first"),
    RegisterWrite(0x04, 0x00, "COM1: no CCIR656"),
    RegisterWrite(0x15, 0x00, "COM10: PCLK runs always, data change when it falls; HREF and VSYNC active high"),
    RegisterWrite(0x0C, 0x04, "COM3: scaling down is on"),
    RegisterWrite(0x3E, 0x19, "COM14: scaled PCLK, half the rate, set by hand"),
    RegisterWrite(0x72, 0x11, "SCALING_DCWCTR: every second row and pixel"),
    RegisterWrite(0x73, 0xF1, "SCALING_PCLK_DIV: half the rate in the scaler, too"),
    RegisterWrite(0xA2, 0x02, "SCALING_PCLK_DELAY: as at power-up"),
    RegisterWrite(0x17, 0x16, "HSTART: the first pixel, high bits"),
    RegisterWrite(0x18, 0x04, "HSTOP: behind the last one, modulo the row"),
    RegisterWrite(0x32, 0x24, "HREF: low bits of both, 4 each"),
    RegisterWrite(0x19, 0x02, "VSTART: the first row, high bits"),
    RegisterWrite(0x1A, 0x7A, "VSTOP: behind the last one"),
    RegisterWrite(0x03, 0x0A, "VREF: low bits of both, 2 each"),
    RegisterWrite(0x13, 0xE7, "COM8: automatic gain, exposure and white balance"),
    RegisterWrite(0x14, 0x18, "COM9: gain of 4 at most"),
    RegisterWrite(0x3D, 0xC0, "COM13: gamma and automatic saturation"),
    RegisterWrite(0x4F, 0xB3, "MTX1: colour matrix for RGB, here and below"),
    RegisterWrite(0x50, 0xB3, "MTX2"),
    RegisterWrite(0x51, 0x00, "MTX3"),
    RegisterWrite(0x52, 0x3D, "MTX4"),
    RegisterWrite(0x53, 0xA7, "MTX5"),
    RegisterWrite(0x54, 0xE4, "MTX6"),
    RegisterWrite(0x58, 0x9E, "MTXS: signs of the matrix"),
    RegisterWrite(0xB0, 0x84, "reserved, and without it colours are wrong"),
)
"""QVGA, RGB565, PCLK at half of XCLK: in this order."""
