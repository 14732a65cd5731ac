"""What a command prints: data on stdout, messages on stderr; as JSON or for people."""

import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ...errors import OnnxhwError, OnnxhwWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


@dataclass(frozen=True)
class _Elapsed:
    """A line that tells how long a stage has taken, whenever rich draws it."""

    name: str
    start: float

    def __rich__(self) -> "Text":
        from rich.text import Text

        return Text(f"{self.name} ... {time.monotonic() - self.start:.0f} s")


@dataclass
class Output:
    """Where a run's words go; options of the command line set the fields.

    `verbosity`: -1 quiet (errors only), 0 stages, 1 details and tracebacks.
    """

    json: bool = False
    verbosity: int = 0
    found: dict[str, Any] = field(default_factory=dict)
    """What a command that fails has found nevertheless; printed with the error by ``--json``."""
    live: "Console | None" = field(default=None, init=False)
    """The terminal, while a stage has a line of its own there."""

    def data(self, record: Any) -> None:
        """A command's result as one JSON document on stdout, with ``--json``; else `line` and `table` tell people."""
        if self.json:
            click.echo(_document(record))

    def line(self, text: str = "") -> None:
        """A line of a command's result for people, on stdout; nothing with ``--json`` or if quiet."""
        if not self.json and self.verbosity >= 0:
            click.echo(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
        """A table on stdout, numbers right-aligned; nothing with ``--json`` or if quiet."""
        if self.json or self.verbosity < 0:
            return
        from rich import box
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for i, column in enumerate(columns):
            numeric = any(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell_text(cell)) for cell in row))
        console = Console(file=sys.stdout, highlight=False)
        if console.is_terminal:
            console.print(table)
            return
        console.width = 240  # a pipe has no width: do not fold there, and leave no spaces at the ends of lines
        with console.capture() as text:
            console.print(table)
        for line in text.get().splitlines():
            click.echo(line.rstrip())

    def message(self, text: str) -> None:
        """A message on stderr, unless quiet; above the line of a stage that shows one."""
        if self.verbosity >= 0:
            if self.live:
                self.live.print(text, markup=False, soft_wrap=True)
            else:
                click.echo(text, err=True)

    def detail(self, text: str) -> None:
        """A message on stderr, with ``-v`` only."""
        if self.verbosity > 0:
            click.echo(text, err=True)

    @contextmanager
    def warned(self) -> Iterator[None]:
        """Within it, a warning of ours is a message."""
        with warnings.catch_warnings():
            usual = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
                if issubclass(category, OnnxhwWarning):
                    self.message(f"warning: {message}")
                else:
                    usual(message, category, *more, **named)

            warnings.showwarning = show
            yield

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One line per stage of long work, with the time it took; on a terminal one that shows the time so far.

        Of a stage within a stage, the outer one's is shown meanwhile.
        """
        if self.verbosity < 0:
            yield
            return
        from rich.console import Console

        console = self.live or Console(stderr=True, highlight=False)
        start = time.monotonic()
        if console.is_terminal and self.verbosity == 0 and not self.live:
            with console.status(_Elapsed(name, start)):
                self.live = console
                try:
                    yield
                finally:
                    self.live = None
        else:
            yield
        console.print(f"{name:<44} {time.monotonic() - start:7.1f} s", markup=False)

    def error(self, error: OnnxhwError) -> None:
        """The error on stderr, and with ``--json`` its record on stdout as ``{"error": {...}}`` (and `found`)."""
        self.data({**self.found, "error": {**error.record(), "exit_status": error.exit_status}})
        where = f"{error.where}: " if error.where else ""
        head = click.style(f"{error.code} {error.kind}:", fg="red", bold=True)
        click.echo(f"{head} {where}{error.what}", err=True)
        if error.hint:
            click.echo(f"  {click.style('hint:', fg='cyan')} {error.hint}", err=True)


def _document(record: Any) -> str:
    """JSON with a line for each entry of the outermost object, and for each object of a list there.

    Python's encoder is fast only for what stands in one line.
    """
    encode = json.JSONEncoder().encode
    if not isinstance(record, dict) or not record:
        return encode(record)
    lines = []
    for key, value in record.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        text = "[\n    " + ",\n    ".join(map(encode, value)) + "\n  ]" if rows else encode(value)
        lines.append(f"  {encode(str(key))}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def cell_text(cell: object) -> str:
    """A table cell: thousands separated, missing values as a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


pass_output = click.make_pass_decorator(Output)
