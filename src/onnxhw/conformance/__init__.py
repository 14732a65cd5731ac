"""onnx's own backend test suite, run through `onnxhw.backend`, case by case.

all_cases    every case that the installed onnx release generates or contains     (cases.py)
run          case -> Verdict: passed, failed, refused, random or not run          (runner.py)
difference   what is wrong with outputs, by the suite's tolerances                (compare.py)
score        how many came to what; `board` as a document                         (scoreboard.py)

The suite gives every operand as an input, so that almost nothing in it can be mapped to hardware. Two kinds are
derived from it: `constants`, the node cases again with all inputs but the first as initializers, and `quantized`, the
float node cases in QDQ form, whose expected outputs are the host's evaluation of the same model (quantized.py).
"""

from .cases import DERIVED, SUITE, all_cases, select
from .runner import Verdict, run, run_all, run_on
from .scoreboard import COLUMNS, board, on_hardware, rows, score

__all__ = [
    "COLUMNS", "DERIVED", "SUITE", "Verdict", "all_cases", "board", "on_hardware", "rows", "run", "run_all", "run_on",
    "score", "select",
]  # fmt: skip
