"""The score: how many cases came to what, and where they ran."""

import collections
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from .cases import CONSTANTS, DERIVED, KINDS, QUANTIZED
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

    @property
    def on_hardware(self) -> int:
        """Cases of which at least one node ran on the hardware."""
        return self.hardware + self.mixed


def on_hardware(verdicts: Sequence[Verdict]) -> str:
    """How much of the score is the hardware's, in a sentence."""
    scores = [row for row in score(verdicts) if row.kind in ("all", *DERIVED)]
    parts = (f"{row.on_hardware:,} of {row.total:,} cases ({row.kind})" for row in scores)
    return f"at least one node ran on the hardware in {', '.join(parts)}; the host ran all others"


def score(verdicts: Sequence[Verdict]) -> list[Score]:
    """One row per kind of the suite, their sum as "all", and the derived cases."""
    kinds = {kind: [verdict for verdict in verdicts if verdict.kind == kind] for kind in KINDS}
    rows = {kind: _score(kind, found) for kind, found in kinds.items() if found}
    derived = [rows.pop(kind) for kind in DERIVED if kind in rows]
    return [*rows.values(), _score("all", [v for v in verdicts if v.kind not in DERIVED]), *derived]


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
    placed = [v for v in verdicts if v.where in ("hardware", "mixed") and v.kind != QUANTIZED]
    lines = [
        "# Conformance",
        "",
        f"onnx's own backend test suite, as release {onnx.__version__} has it, through `onnxhw.backend`:",
        "the golden model for what has operations of the hardware, the host for the rest. Written by",
        "`onnxhw conformance --write docs/conformance.md`.",
        "",
        "A case has passed if every output has the expected type and shape, and values within the suite's own",
        "tolerance for it. The outputs of random operators can't be compared by value; their type, shape and range",
        "are. Refused cases say why.",
        "",
        *_table(COLUMNS, rows(verdicts), "lrrrrrrrrrr"),
        "",
        f"What the hardware has to do with it: {on_hardware(verdicts)}.",
        "",
        f"`{CONSTANTS}` and `{QUANTIZED}` are not part of the suite. `{CONSTANTS}`: the node cases again, with all",
        "inputs but the first as initializers, as in a real model; the suite itself gives scales and weights as",
        f"inputs, which hardware cannot have. `{QUANTIZED}`: the float node cases of operators that the hardware",
        "has, with QuantizeLinear and DequantizeLinear around the node; expected is what the host computes of the",
        "same model, and every element must be equal.",
        "",
        "## Not passed",
        "",
        *_table(("case", "kind", "status", "reason"), [(v.name, v.kind, v.status, v.reason) for v in others], "llll"),
        "",
        "## On the hardware",
        "",
        *_table(("case", "kind", "where"), [(v.name, v.kind, v.where) for v in placed], "lll"),
        "",
        "## Quantized operators",
        "",
        f"The `{QUANTIZED}` cases by operator. The host has batches whose samples may meet, ranks and axes that the",
        "hardware has not, float parameters without a proof, and whatever else `onnxhw check` names.",
        "",
        *_table(("operator", "cases", "hardware", "mixed", "host"), by_operator(verdicts), "lrrrr"),
    ]
    return "\n".join(lines) + "\n"


def by_operator(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    """A row per operator of the quantized cases: how many ran where."""
    found: dict[str, collections.Counter[str]] = {}
    for verdict in verdicts:
        if verdict.kind == QUANTIZED:
            found.setdefault(verdict.operator, collections.Counter())[verdict.where] += 1
    return [
        (name, count.total(), count["hardware"], count["mixed"], count["host"]) for name, count in sorted(found.items())
    ]


def _table(columns: Sequence[str], cells: Sequence[Sequence[object]], align: str) -> list[str]:
    if not cells:
        return ["None."]
    rule = ["---:" if letter == "r" else "---" for letter in align]
    texts = [[str(cell).replace("|", "\\|") for cell in row] for row in cells]
    return [f"| {' | '.join(row)} |" for row in [list(columns), rule, *texts]]
