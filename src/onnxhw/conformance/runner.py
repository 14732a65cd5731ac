"""`run`: one case of the suite through `onnxhw.backend`."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import backend
from ..cluster import TaskPool
from ..errors import OnnxhwError
from .cases import SuiteCase, all_cases, load
from .compare import difference, implausible, random

STATUSES = ("passed", "failed", "refused", "random", "not run")

PIECE = 16
"""Cases of one task: about a second."""
RANDOM_REASON = "the outputs are random: type, shape and range of values were compared"


@dataclass(frozen=True)
class Verdict:
    """What came of one case. `where`: hardware, host or mixed (empty if refused); `operator`: of a single node."""

    name: str
    kind: str
    status: str
    where: str = ""
    reason: str = ""
    seconds: float = 0.0
    operator: str = ""

    def record(self) -> dict[str, Any]:
        """For ``--json``, without the time, so that the same software gives the same document."""
        return {key: value for key, value in asdict(self).items() if key != "seconds"}


def run(case: SuiteCase) -> Verdict:
    """One case."""
    start = time.monotonic()

    def verdict(status: str, where: str = "", reason: str = "") -> Verdict:
        return Verdict(case.name, case.kind, status, where, reason, time.monotonic() - start, operator(case))

    where = ""
    try:
        model, data = load(case)
        if not data:
            return verdict("not run", "", "its data are not part of the onnx package")
        prepared = backend.prepare(model)
        where = prepared.where
        for inputs, expected in data:
            outputs = prepared.run(inputs)
            where = prepared.where
            if random(model):
                wrong = implausible(expected, list(outputs))
                return verdict("failed" if wrong else "random", where, wrong or RANDOM_REASON)
            wrong = difference(expected, list(outputs), case.rtol, case.atol)
            if wrong:
                return verdict("failed", where, wrong)
    except OnnxhwError as error:
        return verdict("refused", "", f"{error.code}: {' '.join(error.what.split())}")
    except Exception as error:  # a crash is a wrong answer, and no reason to keep the other cases from running
        return verdict("failed", where, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return verdict("passed", where)


def operator(case: SuiteCase) -> str:
    """The operator of a case of one node, else empty."""
    nodes = [] if case.source.model is None else list(case.source.model.graph.node)
    return str(nodes[0].op_type) if len(nodes) == 1 else ""


def run_by_index(index: int) -> Verdict:
    """`run` for a worker process, which makes its own list of cases."""
    return run(all_cases()[index])


def run_on(workplace: TaskPool, chosen: Sequence[SuiteCase]) -> Iterator[Verdict]:
    """The verdicts of the cases, in order, by the workers of a pool, which make their own list of cases."""
    places = {(case.kind, case.name): index for index, case in enumerate(all_cases())}
    indices = [places[case.kind, case.name] for case in chosen]
    pieces = [indices[first : first + PIECE] for first in range(0, len(indices), PIECE)]
    for wait in [workplace.submit(run_by_indices, piece) for piece in pieces]:
        yield from wait()


def run_by_indices(indices: Sequence[int]) -> list[Verdict]:
    """`run_by_index` of several."""
    return [run_by_index(index) for index in indices]


def run_all(chosen: Sequence[SuiteCase], processes: int = 1) -> Iterator[Verdict]:
    """The verdicts of the cases, in order; in parallel if asked for."""
    if processes <= 1:
        yield from map(run, chosen)
        return
    import multiprocessing

    places = {(case.kind, case.name): index for index, case in enumerate(all_cases())}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(run_by_index, [places[case.kind, case.name] for case in chosen], chunksize=8)
