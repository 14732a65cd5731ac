"""What was tried: a summary, JSON, and a Markdown table."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from .compare import bound
from .explained import TABLE
from .registry import Operator

VERDICTS = ("equal", "explained", "one side", "product refuses", "refused by both", "wrong")
Results = dict[str, list[dict[str, Any]]]


def totals(results: Results) -> Counter[str]:
    """Models by verdict."""
    return Counter(row["verdict"] for rows in results.values() for row in rows)


def covered(rows: list[dict[str, Any]]) -> dict[str, tuple[list[str], list[str]]]:
    """By choice: the options that some side computed, and those that none did."""
    existing: dict[str, dict[str, None]] = defaultdict(dict)
    seen: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, labels in row["existing"].items():
            existing[name].update(dict.fromkeys(labels))
        if any(side == "computed" for side in row["sides"].values()):
            for name, label in row["options"].items():
                seen[name].add(label)
    return {name: ([one for one in labels if one in seen[name]], [one for one in labels if one not in seen[name]])
            for name, labels in existing.items()}  # fmt: skip


def unused(operator: Operator, rows: list[dict[str, Any]]) -> list[str]:
    """Attributes of the schema that no model had set."""
    return sorted(set(operator.schema.attributes) - {name for row in rows for name in row["attributes"]})


def summary(operators: list[Operator], results: Results, left: dict[str, str]) -> tuple[str, int]:
    """The figures in lines, and the number of models that came out wrong."""
    counts = totals(results)
    lines = [f"operators {len({(one.domain, one.name) for one in operators})}, versions {len(operators)}"]
    lines.append(", ".join([f"models {counts.total()}", *(f"{name} {counts[name]}" for name in VERDICTS)]))
    options = [covered(rows) for rows in results.values()]
    had = sum(len(yes) for one in options for yes, _ in one.values())
    missed = sum(len(no) for one in options for _, no in one.values())
    lines.append(f"options of choices: {had + missed}, computed {had}, computed by no side {missed}")
    for key, rows in results.items():
        wrong = Counter(row["reason"][:150] for row in rows if row["verdict"] == "wrong")
        lines += [f"  wrong {key}: {count} x {reason}" for reason, count in wrong.most_common(4)]
    return "\n".join(lines), counts["wrong"]


def write_json(path: Path, operators: list[Operator], results: Results, left: dict[str, str]) -> None:
    """Figures, coverage by operator, and every model that was not equal."""
    rows = []
    for one in operators:
        found = results[one.key]
        counts = Counter(row["verdict"] for row in found)
        rows.append({"operator": one.key, "bound": bound(one.name), **{name: counts[name] for name in VERDICTS},
                     "covered": {name: {"computed": yes, "by no side": no}
                                 for name, (yes, no) in covered(found).items()},
                     "attributes not tried": unused(one, found),
                     "others": [{k: v for k, v in row.items() if k not in ("existing", "attributes")} for row in found
                                if row["verdict"] not in ("equal", "refused by both")]})  # fmt: skip
    table = [{"operators": row.operators, "condition": row.condition, "quotation": row.quotation, "body": row.body,
              "remark": row.remark, "right": row.right, "delivered": row.delivered} for row in TABLE]  # fmt: skip
    content = {"totals": totals(results), "explained": table, "not tried": left, "operators": rows}
    path.write_text(json.dumps(content, indent=1, default=str), encoding="utf-8")


def markdown(operators: list[Operator], results: Results, left: dict[str, str], command: str) -> str:
    """The coverage table, the explained differences, the operators left out; `command` is what made the results."""
    counts = totals(results)
    lines = ["# The host's operators, compared with each other", "",
             f"Made by `{command}` with onnxruntime {onnxruntime.__version__}",
             f"and onnx {onnx.__version__}. Every version of every operator of ai.onnx and ai.onnx.ml that onnxruntime "
             "implements runs in",
             "random models: the product's answer, onnxruntime's, and that of onnx's reference evaluator with our "
             "operators are compared.", "",
             "| models | " + " | ".join(VERDICTS) + " |", "|" + "---|" * (len(VERDICTS) + 1),
             f"| {counts.total()} | " + " | ".join(str(counts[name]) for name in VERDICTS) + " |", "",
             "*one side*: only one of the two computes it, and the product's answer is that. *product refuses*: "
             "`check`",
             "refuses what one of them computes. *refused by both*: no side computes it.", "",
             "| operator | versions | models | equal | explained | one side | product refuses | refused by both | "
             "wrong | "
             "options computed | by no side |", "|" + "---|" * 11]  # fmt: skip
    groups: dict[tuple[str, str], list[Operator]] = defaultdict(list)
    for one in operators:
        groups[one.domain, one.name].append(one)
    for (domain, name), versions in groups.items():
        rows = [row for one in versions for row in results[one.key]]
        own = Counter(row["verdict"] for row in rows)
        parts = [covered(results[one.key]) for one in versions]
        yes = sum(len(a) for part in parts for a, _ in part.values())
        no = Counter(f"{choice}={label}" for part in parts for choice, (_, b) in part.items() for label in b)
        never = {f"{name} (no model)" for one in versions for name in unused(one, results[one.key])}
        missed = ", ".join([*sorted(no), *sorted(never)])
        cells = [f"{domain + '.' if domain else ''}{name}", ", ".join(str(one.since) for one in versions), len(rows),
                 *(own[v] for v in VERDICTS), yes, missed.replace("|", "/")]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        "## Differences that the text explains",
        "",
        "| operators | condition | the text | right | delivered |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {' '.join(r.operators)} | {r.condition} | {r.evidence} | {r.right} | {r.delivered} |".replace("\n", " ")
        for r in TABLE
    ]
    lines += ["", "The quotations for differences where the product follows the text and the kernel does not are in",
              "`hostops/operators/deviations.py`."]
    lines += ["", "## Not tried", ""]
    lines += [f"- {name}: {why}" for name, why in sorted(left.items())]
    return "\n".join(lines) + "\n"
