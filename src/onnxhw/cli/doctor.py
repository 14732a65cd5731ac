"""``onnxhw doctor``."""

from dataclasses import asdict

import click

from .common.options import common, examples
from .common.output import Output, pass_output

MARKS = {"ok": ("ok", "green"), "missing": ("MISSING", "red"), "optional": ("-", "yellow")}


@click.command(
    "doctor",
    help="Check tools, versions and devices, with a fix for each fault.\n\n"
    + examples("""
  onnxhw doctor
  onnxhw doctor --json
"""),
    epilog="Exit status 7 if something is missing that simulate needs.",
)
@common
@pass_output
def command(output: Output) -> int:
    from ..doctor import examine

    checks = examine()
    missing = [check for check in checks if check.status == "missing"]
    output.data({"ok": not missing, "checks": [asdict(check) for check in checks]})
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, colour = MARKS[check.status]
        found = check.found or "not installed"
        output.line(f"{click.style(f'{mark:>7}', fg=colour)}  {check.name:<{width}}  {found}  ({check.purpose})")
        if check.hint:
            output.line(f"{'':9}{'':{width}}  -> {check.hint}")
    return 7 if missing else 0
