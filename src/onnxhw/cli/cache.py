"""``onnxhw cache``."""

import click

from .common.options import common, examples
from .common.output import Output, pass_output


@click.command(
    "cache",
    help="List or clear what has been built.\n\n"
    + examples("""
  onnxhw cache
  onnxhw cache list --json
  onnxhw cache clear
"""),
    epilog="The cache holds routed bitstreams and compiled simulators, by content. ONNXHW_CACHE names another place. "
    "The tools from PyPI keep their machine code in a cache of their own, which YOWASP_CACHE_DIR moves.",
)
@click.argument("action", type=click.Choice(["list", "clear"]), default="list")
@common
@pass_output
def command(output: Output, action: str) -> None:
    from ..build import cache

    if action == "clear":
        count, freed = len(cache.list_all()), cache.clear()
        output.data({"folder": str(cache.root()), "removed": count, "freed_bytes": freed})
        output.line(f"removed {count} entries, {freed / 1e6:.1f} MB, from {cache.root()}")
        return
    entries = cache.list_all()
    output.data({"folder": str(cache.root()), "entries": [entry.record() for entry in entries]})
    rows = [(e.kind, e.key[:12], e.label, round(e.size / 1e6, 1), "yes" if e.intact else "NO") for e in entries]
    output.table(("kind", "key", "what", "MB", "intact"), rows, title=str(cache.root()))
