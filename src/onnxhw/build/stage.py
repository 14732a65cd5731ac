"""Progress of the bitstream flow: `FlowEvent`s of a `Stage`."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from .phases import RouteLog

Progress = Callable[["FlowEvent"], None]


@dataclass(frozen=True)
class FlowEvent:
    """Progress: a stage (`flow.ELABORATE`, or of `Family.stages`), seconds since it began, whether it has ended, and
    what there is to say.

    `phase` is what place and route is doing, and how far it is (`RouteLog`).
    """

    stage: str
    seconds: float
    done: bool
    text: str = ""
    phase: str = ""


class Stage:
    """Reports one stage: `tick` and `say` while it runs, an end when it is left. A tick tells the phase of `log`."""

    def __init__(self, progress: Progress | None, name: str, text: str = "") -> None:
        self.progress, self.name, self.text = progress, name, text
        self.log: RouteLog | None = None
        self.start = time.monotonic()

    def __enter__(self) -> "Stage":
        self.tick(0.0)
        return self

    def tick(self, seconds: float) -> None:
        """A tool has run so many seconds."""
        phase = self.log.look() if self.log else ""
        if self.progress:
            self.progress(FlowEvent(self.name, seconds, False, self.text, phase))

    def say(self, phase: str) -> None:
        """Tell what is being done where no log does."""
        if self.progress:
            self.progress(FlowEvent(self.name, time.monotonic() - self.start, False, self.text, phase))

    def __exit__(self, kind: object, *_: object) -> None:
        if self.progress and kind is None:
            self.progress(FlowEvent(self.name, time.monotonic() - self.start, True, self.text))
