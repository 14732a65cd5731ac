"""`FlowProgress`: the bitstream flow's progress, with the phase of place and route and how long it may take."""

from typing import Any

from ...board import Board
from ...build import duration, flow
from ...build.bitstream import Bitstream
from ...build.stage import FlowEvent
from ...config import HwConfig
from ...devices import family_of
from ...presets import preset
from .output import Output

QUICK = "mini"
"""The preset to try things with: the smallest."""


class FlowProgress:
    """Shows the flow's progress: a bar on a terminal; otherwise a line at each phase, and now and then."""

    EVERY = 30.0
    """Seconds between two signs of life where there is no terminal."""

    def __init__(self, output: Output, config: HwConfig, board: Board) -> None:
        self.output, self.config, self.board = output, config, board
        self.bar: Any = None
        self.task: Any = None
        self.told, self.phase = 0.0, ""
        self.seconds: dict[str, float] = {}
        """Of the stages that have ended; of place and route, its last run's."""
        self.expected = duration.expected(config, board)

    def __enter__(self) -> "FlowProgress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True, highlight=False)
        if console.is_terminal and self.output.verbosity >= 0:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20))
            self.bar = Progress(*columns, console=console, transient=True)
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, event: FlowEvent) -> None:
        name = f"{event.stage} {event.text}".strip()
        if event.done:
            self.seconds[event.stage] = event.seconds
            self._clear()
            self.output.message(f"{name:<44} {event.seconds:7.1f} s")
            return
        if event.seconds == 0.0:
            self.told, self.phase = 0.0, ""
            if event.stage == flow.ELABORATE:
                self.output.message(self.outlook())
        if self.bar:
            self._show(name, event)
        elif event.phase.partition(":")[0] != self.phase or event.seconds >= self.told + self.EVERY:
            self.told, self.phase = event.seconds, event.phase.partition(":")[0]
            doing = f", {event.phase}" if event.phase else ""
            self.output.message(f"{name}{doing} ... {event.seconds:.0f} s so far{self._of(event.stage)}")

    def outlook(self) -> str:
        """What is said before a run: how long it may take, and the quick preset."""
        what = f"a bitstream of {self.config.name} for {self.board.name} takes {self.expected.text}"
        if self.config.name == QUICK or QUICK not in self.board.presets:
            return what
        return f"{what}; of --preset {QUICK} {duration.expected(preset(QUICK), self.board).text}"

    def note(self, built: Bitstream) -> None:
        """Keep the seconds of a run, for the estimates of later ones."""
        if not built.cached and family_of(self.board).stages[1] in self.seconds:
            duration.store(self.config.name, self.board.name, self.seconds)

    def _of(self, stage: str) -> str:
        """How long a stage takes, where an earlier run has shown it."""
        seconds = self.expected.stages.get(stage, 0.0)
        return f" of {duration.duration_text(seconds)}, about" if seconds >= 1 else ""

    def _show(self, name: str, event: FlowEvent) -> None:
        seconds = self.expected.stages.get(event.stage)
        if self.task is None:
            self.task = self.bar.add_task("", total=seconds)
        doing = f", {event.phase}" if event.phase else ""
        text = f"{name}{doing} ... {event.seconds:.0f} s{self._of(event.stage)}"
        # Full only at the end: no estimate is so good.
        self.bar.update(self.task, description=text, completed=min(event.seconds, 0.98 * (seconds or 0.0)))

    def _clear(self) -> None:
        if self.bar and self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None
