"""The compiled program: what the scheduler emits and every engine, report and driver reads."""

from .asm import assemble, disassemble
from .container import load, save
from .layout import Place, from_host, to_host
from .model import Entry, Layer, Program
from .result import Result

__all__ = [
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
