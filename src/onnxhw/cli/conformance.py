"""``onnxhw conformance``."""

import logging
from pathlib import Path

import click

from .common.options import common, examples
from .common.output import Output, pass_output


@click.command(
    "conformance",
    help="Run onnx's own backend test suite and print the score.\n\n"
    + examples("""
  onnxhw conformance
  onnxhw conformance --filter qlinear
  onnxhw conformance --processes 4 --json
  onnxhw conformance --write docs/conformance.md
"""),
    epilog="Exit status 8 if an answer is wrong.",
)
@click.option("-f", "--filter", "pattern", metavar="REGEX", help="Only cases whose name matches.")
@click.option("-n", "--processes", type=click.IntRange(1), default=1, show_default=True, help="Cases at the same time.")
@click.option("--scheduler", default="", metavar="ADDRESS",
              help="A Dask scheduler (tcp://HOST:8786) whose workers run the cases.")  # fmt: skip
@click.option("-w", "--write", type=click.Path(path_type=Path, dir_okay=False), help="Also write the score board.")
@common
@pass_output
def command(output: Output, pattern: str | None, processes: int, scheduler: str, write: Path | None) -> int:
    from .. import conformance
    from ..cluster import pool
    from ..errors import UsageError
    from .common.workers import tell_workers

    logger = logging.getLogger("onnxhw")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the suite's models have NaN on purpose
    try:
        with output.stage("collecting cases"):
            chosen = conformance.select(pattern)
        with output.stage(f"{len(chosen)} cases"):
            if scheduler:
                with pool(scheduler=scheduler) as workplace:
                    tell_workers(output, workplace)
                    verdicts = list(conformance.run_on(workplace, chosen))
            else:
                verdicts = list(conformance.run_all(chosen, processes))
    finally:
        logger.setLevel(level)
    failed = [verdict for verdict in verdicts if verdict.status == "failed"]
    rows = conformance.score(verdicts)
    scores = [vars(row) | {"share": row.share, "on_hardware": row.on_hardware} for row in rows]
    output.data({"score": scores, "cases": [verdict.record() for verdict in verdicts]})
    output.table(conformance.COLUMNS, conformance.rows(verdicts))
    output.line(conformance.on_hardware(verdicts))
    for verdict in verdicts:
        if verdict.status != "passed":
            output.line(f"{verdict.status:8} {verdict.name} ({verdict.kind}): {verdict.reason}")
    if write is not None:
        try:
            write.write_text(conformance.board(verdicts), encoding="utf-8")
        except OSError as error:
            raise UsageError("E2722", f"{write} cannot be written: {error.strerror}") from None
    return 8 if failed else 0
