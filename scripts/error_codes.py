"""The error codes in the source, for docs/errors.md and its test; run, it lists what that page lacks."""

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"E\d{4}")
ROW = re.compile(r"^\| (E\d{4}) \|")


@dataclass(frozen=True)
class Use:
    """A code in the source: the class it is raised with (empty if passed on) and the message's template."""

    code: str
    file: str
    line: int
    kind: str
    template: str


def uses() -> list[Use]:
    """Every string constant in src/ that is a code."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls: dict[int, ast.Call] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args:
                calls[id(node.args[0])] = node
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                call = calls.get(id(node))
                kind = _name(call.func) if call else ""
                template = ast.unparse(call.args[1]) if call and len(call.args) > 1 else ""
                found.append(Use(node.value, str(path.relative_to(ROOT)), node.lineno, kind, template))
    return found


def _name(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def documented() -> list[str]:
    """The codes of docs/errors.md, in order."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return [match[1] for line in text.splitlines() if (match := ROW.match(line))]


def main() -> int:
    """List codes without a row, with their templates, and rows without a code."""
    found = uses()
    known = set(documented()) if (ROOT / "docs" / "errors.md").exists() else set()
    missing = sorted({use.code for use in found} - known)
    for code in missing:
        for use in found:
            if use.code == code:
                print(f"{code} {use.kind:20} {use.file}:{use.line} {use.template[:230]}")
    gone = sorted(known - {use.code for use in found})
    print(f"{len(missing)} codes without a row; rows without a code: {', '.join(gone) or 'none'}", file=sys.stderr)
    return bool(missing or gone)


if __name__ == "__main__":
    sys.exit(main())
