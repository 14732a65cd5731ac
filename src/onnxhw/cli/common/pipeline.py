"""Steps that several commands share: names to objects, a model to a program."""

from dataclasses import dataclass, replace
from pathlib import Path

from ...board import Board, find
from ...config import HwConfig
from ...errors import UsageError
from ...partition.partitioned import PartitionedModel
from ...preprocess import Preprocess
from ...presets import FILE, SDRAM, SIMULATED, preset
from ...program.parts import Program
from ...program.traffic import Rates
from .inputs import wanted_inputs
from .outdir import refuse_unwritable
from .output import Output
from .placement_options import BY_DEFAULT, PlacementOptions
from .read_options import TRUSTED, ReadOptions


@dataclass(frozen=True)
class BoardTarget:
    """A board and the configuration chosen for it."""

    board: Board
    config: HwConfig

    @property
    def clock_hz(self) -> int:
        """The clock that the core should run at."""
        return self.board.core_hz_of(self.config.name)

    def rates(self, clock_hz: int | None = None, baud: int | None = None) -> Rates | None:
        """Line and clock of the board, or these; None for a preset that no board has: there is no line."""
        if self.config.name in SIMULATED:
            return None
        from ...compiler.cost import line_rate

        clock = clock_hz or self.clock_hz
        return Rates(baud or line_rate(self.board, clock), clock)

    def at(self, clock_hz: int) -> "BoardTarget":
        """The same at another clock: external memory keeps its times, hence other numbers of cycles. E2373 if it
        cannot; E2374 if the board has none."""
        if self.config.external is None:
            return self
        return BoardTarget(self.board, replace(self.config, external=self.board.external_memory(clock_hz)))


def target(board_name: str, preset_name: str | None) -> BoardTarget:
    """The target of ``--board`` and ``--preset``; E2904 if the board does not offer the preset.

    Presets for simulation and configurations in files go with every board. Errors: those of `onnxhw.board.find`, E2371
    for a part of which no bitstream can be made, or that is not as the board's file says, E2310 for a clock that
    cannot be, those of `BoardTarget.at`.
    """
    from ...devices import family_of
    from ...devices.family import check_described

    chosen = find(board_name)
    family = family_of(chosen)
    family.check_part(chosen)
    check_described(chosen, family.parts()[chosen.device])
    family.check_clock(chosen)
    name = preset_name or chosen.preset
    config = preset(name)
    if not chosen.offers(name) and name.removesuffix(SDRAM) not in SIMULATED and not name.endswith(FILE):
        raise UsageError(
            "E2904", f"board {chosen.name} has no preset {name!r}", hint=f"its presets: {', '.join(chosen.presets)}"
        )
    return BoardTarget(chosen, config).at(chosen.core_hz_of(name))


def target_without_memory(board_name: str, preset_name: str | None, what: str, output: Output) -> BoardTarget:
    """As `target`, for what has no external memory, `what` in words: instead of a preset of the board's own that has
    some it is the one without, and that is said."""
    chosen = target(board_name, preset_name)
    name = chosen.config.name.removesuffix(SDRAM)
    if preset_name or name == chosen.config.name:
        return chosen
    output.message(f"{what} has no external memory: --preset {name}, not the board's own {chosen.config.name}")
    return target(board_name, name)


def refuse_simulated(chosen: BoardTarget) -> None:
    """A `UsageError` E2913 if the preset is for simulation only."""
    if (name := chosen.config.name.removesuffix(SDRAM)) in SIMULATED:
        raise UsageError(
            "E2913",
            f"preset {name!r} is for simulation only: {SIMULATED[name]}",
            hint=f"presets of {chosen.board.name}: {', '.join(chosen.board.presets)}",
        )


def refuse_oversized(chosen: BoardTarget) -> None:
    """`DoesNotFitError` E5201 if by estimate the board has no room for the configuration. Presets for simulation go
    with every board."""
    from ...devices import family_of
    from ...devices.family import require_estimated_room

    board, name = chosen.board, chosen.config.name
    if name.removesuffix(SDRAM) in SIMULATED:
        return
    better = board.external_preset + SDRAM if board.external_preset else ""
    hint = "a smaller configuration, or a larger board"
    if chosen.config.external is not None and better and name != better:
        hint = f"--preset {better}, or a larger board"
    guess = family_of(board).estimate(chosen.config)
    require_estimated_room(guess, board, f"preset {name} on board {board.name}", hint)


def default_out(model: Path, config: HwConfig) -> Path:
    """Where a model's files go unless ``-o`` says otherwise."""
    return Path("build") / f"{model.stem}-{config.name}"


def out_folder(out: Path | None, model: Path, config: HwConfig) -> Path:
    """The folder of ``-o``, or `default_out`; E2903 as `refuse_unwritable`."""
    folder = out or default_out(model, config)
    refuse_unwritable(folder)
    return folder


def compile_model(
    path: Path, config: HwConfig, output: Output, reading: ReadOptions = TRUSTED, choice: PlacementOptions = BY_DEFAULT,
    preprocess: Preprocess | None = None,
) -> tuple[PartitionedModel, Program]:  # fmt: skip
    """A model file placed on hardware and host, and its program; says what runs on the host. A `preprocess` that says
    something must be one of its inputs.

    If nothing runs on the hardware: `DoesNotFitError` (E51xx) if that is for size alone, `UnsupportedError` E4003 if an
    input has no static shape, E4002 or E4006 otherwise.
    """
    from ... import compiler

    with output.stage(f"compile {path.name} for {config.name}"):
        placed = compiler.place_and_schedule(
            reading.source(path),
            config,
            limits=reading.allowed,
            shapes=reading.sizes,
            rates=choice.rates,
            prefer=choice.prefer,
            exact_softmax=reading.exact_softmax,
            persist=reading.states,
        )
    placed.require_hardware(config, str(path))
    partitioned, program = placed.model, placed.made
    for diagnostic in partitioned.diagnostics:
        if diagnostic.code in ("W3403", *compiler.LARGE, compiler.SLOW):
            output.message(diagnostic.text())
    rows = [row for row in partitioned.placement if row.where == "host" and row.code]
    if rows:
        output.message(f"{len(rows)} nodes run on the host, for example:")
        for row in [row for row in rows if row.hint][:5] or rows[:5]:
            output.message(f"  {row.node} ({row.op_type}): {row.reason}")
        output.message("  `onnxhw check` lists all")
    if preprocess and preprocess.record():
        preprocess.check(wanted_inputs(program.inputs))
    return partitioned, program
