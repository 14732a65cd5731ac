"""Steps that several commands share: names to objects, a model to a program."""

from dataclasses import dataclass
from pathlib import Path

from ..board import Board, find
from ..config import HwConfig, preset
from ..errors import UsageError
from ..ir.graph import Graph
from ..program.model import Program
from .output import Output


@dataclass(frozen=True)
class Target:
    """A board and the configuration chosen for it."""

    board: Board
    config: HwConfig


def target(board_name: str, preset_name: str | None) -> Target:
    """The target of ``--board`` and ``--preset``; E2904 if the board does not offer the preset."""
    chosen = find(board_name)
    name = preset_name or chosen.preset
    config = preset(name)
    if name not in chosen.presets:
        raise UsageError(
            "E2904", f"board {chosen.name} has no preset {name!r}", hint=f"its presets: {', '.join(chosen.presets)}"
        )
    return Target(chosen, config)


def default_out(model: Path, config: HwConfig) -> Path:
    """Where a model's files go unless ``-o`` says otherwise."""
    return Path("build") / f"{model.stem}-{config.name}"


def load_model(path: Path, output: Output) -> Graph:
    """The integer graph of a model file."""
    from .. import frontend

    with output.stage(f"read {path.name}"):
        return frontend.load(path)


def compile_graph(graph: Graph, config: HwConfig, output: Output) -> Program:
    """The checked program of a graph."""
    from ..compiler import compile as compile_model

    with output.stage(f"compile for {config.name}"):
        return compile_model(graph, config)
