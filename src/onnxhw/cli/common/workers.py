"""What commands that work on a `TaskPool` tell of its workers."""

from ...cluster import TaskPool
from .output import Output


def workers_text(pool: TaskPool) -> str:
    """How many there are: ``2 workers``."""
    return f"{pool.workers} worker{'' if pool.workers == 1 else 's'}"


def tell_workers(output: Output, pool: TaskPool) -> None:
    """Say so if nobody is there to work: a scheduler's workers may come later."""
    if not pool.workers:
        output.message("the scheduler has no workers: it goes on when there are some (dask worker ADDRESS)")
