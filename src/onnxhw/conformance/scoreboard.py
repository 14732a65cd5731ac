"""The score: how many cases came to what, and where they ran."""

import collections
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from .cases import DERIVED, KINDS
from .runner import STATUSES, Verdict


@dataclass(frozen=True)
class Score:
    """How many cases of a kind came to what, and where those that ran did."""

    kind: str
    total: int
    passed: int
    failed: int
    refused: int
    random: int
    not_run: int
    hardware: int
    mixed: int
    host: int

    @property
    def share(self) -> float:
        """Passed cases in per cent."""
        return 100 * self.passed / self.total if self.total else 0.0


def score(verdicts: Sequence[Verdict]) -> list[Score]:
    """One row per kind of the suite, their sum as "all", and the derived cases."""
    kinds = {kind: [verdict for verdict in verdicts if verdict.kind == kind] for kind in KINDS}
    rows = {kind: _score(kind, found) for kind, found in kinds.items() if found}
    derived = [rows.pop(DERIVED)] if DERIVED in rows else []
    return [*rows.values(), _score("all", [v for v in verdicts if v.kind != DERIVED]), *derived]


def _score(kind: str, verdicts: list[Verdict]) -> Score:
    status = collections.Counter(verdict.status for verdict in verdicts)
    where = collections.Counter(verdict.where for verdict in verdicts)
    return Score(
        kind,
        len(verdicts),
        passed=status["passed"],
        failed=status["failed"],
        refused=status["refused"],
        random=status["random"],
        not_run=status["not run"],
        hardware=where["hardware"],
        mixed=where["mixed"],
        host=where["host"],
    )


COLUMNS = ("kind", "cases", *STATUSES, "passed %", "hardware", "mixed", "host")


def rows(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    """The score as rows under `COLUMNS`."""
    return [
        (row.kind, row.total, row.passed, row.failed, row.refused, row.random, row.not_run, f"{row.share:.2f}",
         row.hardware, row.mixed, row.host)
        for row in score(verdicts)
    ]  # fmt: skip


def board(verdicts: Sequence[Verdict]) -> str:
    """The score board in Markdown; the same software gives the same text."""
    others = [verdict for verdict in verdicts if verdict.status != "passed"]
    placed = [verdict for verdict in verdicts if verdict.where in ("hardware", "mixed")]
    lines = [
        "# Conformance",
        "",
        f"onnx's own backend test suite, as release {onnx.__version__} has it, through `onnxhw.backend`:",
        "the golden model for what the frontend maps to the hardware, the host for the rest. Written by",
        "`onnxhw conformance --write docs/conformance.md`.",
        "",
        "A case has passed if every output has the expected type and shape, and values within the suite's own",
        "tolerance for it. The outputs of random operators can't be compared by value; their type, shape and range",
        "are. Refused cases say why.",
        "",
        *_table(COLUMNS, rows(verdicts), "lrrrrrrrrrr"),
        "",
        f"`{DERIVED}` is not part of the suite: it's the node cases again, with all inputs but the first as",
        "initializers, as in a real model. The suite itself gives scales and weights as inputs, which hardware",
        "cannot have.",
        "",
        "## Not passed",
        "",
        *_table(("case", "kind", "status", "reason"), [(v.name, v.kind, v.status, v.reason) for v in others], "llll"),
        "",
        "## On the hardware",
        "",
        *_table(("case", "kind", "where"), [(v.name, v.kind, v.where) for v in placed], "lll"),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], cells: Sequence[Sequence[object]], align: str) -> list[str]:
    if not cells:
        return ["None."]
    rule = ["---:" if letter == "r" else "---" for letter in align]
    texts = [[str(cell).replace("|", "\\|") for cell in row] for row in cells]
    return [f"| {' | '.join(row)} |" for row in [list(columns), rule, *texts]]
