"""Presets with external memory that a network larger than the chip may be compiled for."""

from ..board import boards
from ..config import HwConfig
from ..presets import SDRAM


def external_presets(config: HwConfig) -> str:
    """In words: those that the files of the boards name that offer a configuration, or of all boards if none does;
    empty if it has external memory already."""
    if config.external is not None:
        return ""
    known = [board for board in boards().values() if board.external_preset]
    offering = [board for board in known if config.name in board.presets] or known
    by_preset: dict[str, list[str]] = {}
    for board in offering:
        by_preset.setdefault(board.external_preset + SDRAM, []).append(board.name)
    return "; ".join(f"preset {name} on {', '.join(names)}" for name, names in by_preset.items())
