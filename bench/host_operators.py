"""Whether host operators compute what their text says: onnxruntime against onnx's reference evaluator with ours.

    python bench/host_operators.py [--models 10] [--seed 0] [--operator NAME] [--jobs 1] [--folder RUNS]
                                   [--json FILE] [--markdown docs/host-operators.md]

Every version of every operator of ai.onnx and ai.onnx.ml that onnxruntime implements, in random models: each attribute
value, element type and rank class at least once. The product's answer is compared with both. `--folder` keeps results
of each operator and seed: a run that was interrupted goes on. See bench/differential.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from differential.coverage import markdown, summary, write_json
from differential.registry import operators
from differential.run import run


def command(options: argparse.Namespace) -> str:
    """The command that gives these results again, without the folder of results."""
    only = "".join(f" --operator {one}" for one in options.operator or ())
    return f"python bench/host_operators.py --models {options.models} --seed {options.seed}{only}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models", type=int, default=10, help="of each version of an operator, more if needed to cover it"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", action="append", help="this one only, every version of it (repeatable)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where results of each operator are written and looked up")
    parser.add_argument("--json", type=Path, help="write summary, coverage and every difference")
    parser.add_argument("--markdown", type=Path, help="write the coverage table")
    options = parser.parse_args()
    known, left = operators()
    chosen = [
        one for one in known if not options.operator or one.name in options.operator or one.key in options.operator
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = run(chosen, options.seed, options.models, folder, options.jobs)
    text, wrong = summary(chosen, results, left)
    print(text)
    if options.json:
        write_json(options.json, chosen, results, left)
    if options.markdown:
        options.markdown.write_text(markdown(chosen, results, left, command(options)), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
