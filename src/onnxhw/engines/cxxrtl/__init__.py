"""CXXRTL: designs in Amaranth compiled to native code; the core, or anything with ports."""

from .build import Library, build, elaborate
from .design import Design
from .engine import CxxrtlEngine

__all__ = ["CxxrtlEngine", "Design", "Library", "build", "elaborate"]
