"""What ARCHITECTURE.md counts in src, of a commit or of the files as they are.

    python scripts/counts.py fb55557 HEAD .

Strings and calls are counted in the syntax, not in lines: of statements, docstrings are left out; of strings that are a
unit's name, those of the declaration (`isa/units.py`); operations are the classes of `ir/ops` and the unions of them.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNITS = {"load", "array", "depthwise", "vector"}
OPERATIONS = {
    "Op", "Operation", "Clamped", "Movement", "Joining", "Pool", "Conv", "PackedConv", "Add", "Mul", "MatMul",
    "MaxPool", "AveragePool", "Table", "Concat", "Reshape", "Copy", "ArrayOp", "VectorOperation",
}  # fmt: skip


def sources(commit: str) -> Iterator[tuple[str, str]]:
    """Path and text of each Python file of src."""
    if commit == ".":
        yield from ((str(path.relative_to(ROOT)), path.read_text()) for path in (ROOT / "src").rglob("*.py"))
        return
    for path in _git("ls-tree", "-r", "--name-only", commit, "src").splitlines():
        if path.endswith(".py"):
            yield path, _git("show", f"{commit}:{path}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def counts(path: str, text: str) -> Counter[str]:
    """What is counted in one file."""
    found, tree = Counter[str](), ast.parse(text)
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        string = isinstance(value, ast.Constant) and isinstance(value.value, str)
        found["statements"] += isinstance(node, ast.stmt) and not string
        if isinstance(node, ast.Constant) and node.value in UNITS:
            found["unit names"] += not path.endswith("isa/units.py")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            asked |= {name.attr for name in ast.walk(node.args[1]) if isinstance(name, ast.Attribute)}
            found["isinstance of operations"] += node.func.id == "isinstance" and bool(asked & OPERATIONS)
            found["getattr of f-strings"] += node.func.id == "getattr" and isinstance(node.args[1], ast.JoinedStr)
    found["mixed"] = text.lower().count("mixed")
    return found


def main() -> None:
    """Print a line per commit."""
    for commit in sys.argv[1:] or ["."]:
        total = Counter[str]()
        for path, text in sources(commit):
            total.update(counts(path, text))
        print(commit, ", ".join(f"{name} {total[name]}" for name in sorted(total)))


if __name__ == "__main__":
    main()
