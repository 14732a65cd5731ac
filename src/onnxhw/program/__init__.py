"""The compiled program: what the scheduler emits and every engine, report and driver reads."""

from .asm import assemble, disassemble
from .container import load, save
from .layout import Place, from_host, to_host
from .model import DeviceProgram, Entry, Layer
from .parts import Program
from .result import Result

__all__ = [
    "DeviceProgram",
    "Entry",
    "Layer",
    "Place",
    "Program",
    "Result",
    "assemble",
    "disassemble",
    "from_host",
    "load",
    "save",
    "to_host",
]
