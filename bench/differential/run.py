"""`run`: models of each operator, in a process of its own, on all sides."""

import copy
import hashlib
import json
import logging
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .compare import difference, unit_of
from .draw import Draw
from .explained import explanation
from .formulas import formula
from .operators import GENERATORS
from .operators.containers import RANDOM
from .registry import Operator
from .sides import BY_VALUES, Outcome, ort, ours, product

PATIENCE = 60.0
"""Seconds without a result after which a process is taken for hung."""
MOST = 3
"""Times the number of models asked for that are tried so that every option is computed once."""


@dataclass
class Result:
    """One model: its verdict, why, and the options that it took."""

    operator: str
    index: int
    verdict: str
    reason: str = ""
    explained: str = ""
    options: dict[str, str] = field(default_factory=dict)
    existing: dict[str, list[str]] = field(default_factory=dict)
    attributes: list[str] = field(default_factory=list)
    sides: dict[str, str] = field(default_factory=dict)


def seed_of(operator: Operator, seed: int, index: int) -> list[int]:
    """The seed of a model."""
    digest = hashlib.sha256(operator.key.encode()).digest()
    return [seed, int.from_bytes(digest[:4], "little"), index]


def trial(operator: Operator, seed: int, index: int, counts: Counter[tuple[str, str]]) -> tuple[Draw, onnx.ModelProto]:
    """The model of an index, drawn upon the counts of the options so far."""
    draw = Draw(operator, seed_of(operator, seed, index), counts)
    GENERATORS[operator.name](draw)
    return draw, draw.model()


def judge(draw: Draw, model: onnx.ModelProto, index: int, begin: Callable[[str], None] = lambda side: None) -> Result:
    """Run a model on all sides, onnxruntime alone last, and compare; `begin` is told which side runs."""
    sides = {}
    for side, compute in (("product", product), ("ours", ours), ("onnxruntime", ort)):
        begin(side)
        sides[side] = compute(model, copy.deepcopy(draw.feeds))
    result = Result(
        draw.operator.key, index, "", options=draw.options, existing=draw.existing, attributes=list(draw.attributes)
    )
    result.sides = {name: "computed" if side.values is not None else side.reason for name, side in sides.items()}
    scale = _scale(draw)
    name = draw.operator.name
    result.verdict, result.reason = _verdict(name, sides, scale)
    answer, known = sides["product"], formula(draw)
    single = (scale[0], max(scale[1], 2.0**-23))  # the kernels compute in float32
    other = "" if known is None or answer.values is None else difference(name, answer.values, known, *single)
    if other:
        result.verdict, result.reason = "wrong", f"product and formula: {other}"
    if result.verdict in ("wrong", "differ") and answer.values is not None:
        found = explanation(draw, model, result.reason, sides, known is not None and not other)
        if found is not None and (not other or found.right == "neither"):
            names = ["onnxruntime", "ours"] if found.delivered == "either" else [found.delivered]
            delivered = [sides[one] for one in names if sides[one].values is not None]
            if any(_compare(name, answer, one, scale) == "" for one in delivered):
                result.verdict, result.explained = "explained", found.key
    if result.verdict == "differ":
        result.verdict = "wrong"
    return result


def _verdict(name: str, sides: dict[str, Outcome], scale: tuple[float, float]) -> tuple[str, str]:
    answer, first, second = sides["product"], sides["onnxruntime"], sides["ours"]
    computed = [side for side in (first, second) if side.values is not None]
    if answer.values is None:
        if not answer.checked and answer.code not in BY_VALUES:
            return "wrong", f"checked, then refused: {answer.reason}"
        if computed:
            return "product refuses", answer.reason
        return "refused by both", answer.reason
    if name in RANDOM:
        seen = {str([(v.dtype, v.shape) for v in map(np.asarray, side.values or ())]) for side in (answer, *computed)}
        return ("equal", "") if len(seen) == 1 else ("wrong", f"types and shapes {seen}")
    if not computed:
        return "one side", "only the product computes it"
    if len(computed) == 2 and (text := _compare(name, first, second, scale)):
        return "differ", f"onnxruntime and ours: {text}"
    for side, label in ((first, "onnxruntime"), (second, "ours")):
        if side.values is not None and (text := _compare(name, answer, side, scale)):
            return "wrong", f"product and {label}: {text}"
    if len(computed) == 1:
        return "one side", (second if first.values is not None else first).reason
    return "equal", ""


def _compare(name: str, first: Outcome, second: Outcome, scale: tuple[float, float]) -> str:
    return difference(name, first.values, second.values, *scale)


def _scale(draw: Draw) -> tuple[float, float]:
    """The largest magnitude of a product of two operands, or of a float attribute; the coarsest unit."""
    arrays = [v for v in draw.feeds.values() if isinstance(v, np.ndarray)]
    arrays += [np.asarray(numpy_helper.to_array(c)) for c in draw.constants]
    largest = [1.0, *(abs(v) for v in draw.attributes.values() if isinstance(v, float))]
    unit = max([0.0, *(unit_of(array.dtype) for array in arrays)])
    for array in arrays:
        if array.dtype.kind in "fiu":
            finite = np.abs(array.astype(np.float64))
            largest.append(float(finite[np.isfinite(finite)].max(initial=0.0)))
    return float(np.prod(sorted(largest)[-2:])) if max(largest) < 1e6 else max(largest), unit


def _child(operator: Operator, seed: int, models: int, path: Path, done: list[dict[str, Any]]) -> None:
    logging.disable(logging.WARNING)
    counts: Counter[tuple[str, str]] = Counter()
    computed: set[tuple[str, str]] = set()
    existing: set[tuple[str, str]] = set()
    with path.open("a", encoding="utf-8") as file:
        for index in range(models * MOST):
            if index >= models and existing <= computed:
                break
            draw, model = trial(operator, seed, index, counts)
            counts.update(draw.options.items())
            existing |= {(name, label) for name, labels in draw.existing.items() for label in labels}
            if index < len(done):
                row = done[index]
            else:

                def begin(side: str, index: int = index, options: dict[str, str] = draw.options) -> None:
                    file.write(json.dumps({"start": index, "options": options, "side": side}) + "\n")
                    file.flush()

                row = asdict(judge(draw, model, index, begin))
                file.write(json.dumps(row, default=str) + "\n")
                file.flush()
            if row["verdict"] in ("equal", "explained", "one side", "wrong"):
                computed |= set(draw.options.items())


@dataclass
class _Running:
    """A process, and when its file last grew."""

    operator: Operator
    process: Any
    size: int = -1
    since: float = 0.0


def run(chosen: list[Operator], seed: int, models: int, folder: Path, jobs: int) -> dict[str, list[dict[str, Any]]]:
    """All results by operator; what was written before is not run again; crashes and hangs are results."""
    waiting, running, results = list(reversed(chosen)), list[_Running](), dict[str, list[dict[str, Any]]]()
    path = {one.key: folder / f"{one.key}.{seed}.jsonl" for one in chosen}
    while waiting or running:
        while waiting and len(running) < jobs:
            operator = waiting.pop()
            done = _read(path[operator.key])[0]
            process = multiprocessing.get_context("fork").Process(
                target=_child, args=(operator, seed, models, path[operator.key], done))  # fmt: skip
            process.start()
            running.append(_Running(operator, process, since=time.monotonic()))
        time.sleep(0.02)
        for one in list(running):
            if _watched(one, path[one.operator.key]):
                continue
            running.remove(one)
            rows, started = _read(path[one.operator.key])
            if one.process.exitcode == 0:
                results[one.operator.key] = rows
            elif started is None or one.process.exitcode == 1:  # an exception of ours, not of what is tried
                raise RuntimeError(f"{one.operator.key}: the generator or the comparison failed")
            else:
                row = _crash(one.operator, started)
                with path[one.operator.key].open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
                waiting.append(one.operator)
    return {one.key: results[one.key] for one in chosen}


def _crash(operator: Operator, started: dict[str, Any]) -> Result:
    """The result of a model that ended the process, or hung: wrong unless it was onnxruntime's turn."""
    verdict = "explained" if started["side"] == "onnxruntime" else "wrong"
    reason = f"the process crashed or hung: {started['side']}"
    return Result(
        operator.key, started["start"], verdict, reason, "onnxruntime ends the process", options=started["options"]
    )


def _watched(one: _Running, path: Path) -> bool:
    """Whether the process runs; one without a result for too long is ended."""
    if not one.process.is_alive():
        return False
    size = path.stat().st_size if path.exists() else 0
    if size != one.size:
        one.size, one.since = size, time.monotonic()
    elif time.monotonic() - one.since > PATIENCE:
        one.process.kill()
        one.process.join()
    return True


def _read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The results, and the model that was begun and not ended."""
    if not path.exists():
        return [], None
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    started = rows[-1] if rows and "start" in rows[-1] else None
    return [row for row in rows if "verdict" in row], started
