"""``onnxhw opset``."""

from pathlib import Path
from typing import Any

import click

from .common.options import common, examples
from .common.output import Output, pass_output


@click.command(
    "opset",
    help="List or write the operators that the hardware has, and hold a model against such documents.\n\n"
    + examples("""
  onnxhw opset
  onnxhw opset --domain com.microsoft --write hardware.onnxopset
  onnxhw opset --check model.onnx
  onnxhw opset --check model.onnx --against vendor.onnxopset
"""),
    epilog="A document is an ONNX operator set (ONNXOPSET). Without --against, --check takes what the hardware has. "
    "Whether a node does run there depends on its quantization too: see `onnxhw check`. "
    "Exit status 4 if a document lacks an operator of the model, 3 if a document or the model is not valid.",
)
@click.option("--domain", default="", metavar="DOMAIN", help="Domain that is listed or written; default: ONNX's own.")
@click.option(
    "--write", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write the operators as a document."
)
@click.option(
    "--check", "model", type=click.Path(path_type=Path), metavar="MODEL", help="Hold a model's nodes against documents."
)
@click.option(
    "--against",
    "documents",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="A document for --check.",
)
@common
@pass_output
def command(
    output: Output, domain: str, target: Path | None, model: Path | None, documents: tuple[Path, ...]
) -> None:  # fmt: skip
    from ..convert import opset_doc
    from ..errors import UsageError
    from ..onnxmodel.read import read
    from ..onnxmodel.specification import raise_errors
    from .common.outdir import write_atomically

    if documents and model is None:
        raise UsageError("E2914", "--against belongs to --check", hint="onnxhw opset --check MODEL --against FILE")
    if model is not None and (target is not None or domain):
        raise UsageError("E2914", "--check goes with --against only", hint="onnxhw opset --check MODEL")
    if model is not None:
        known = [opset_doc.read(path) for path in documents] or [opset_doc.written(one) for one in opset_doc.domains()]
        found = opset_doc.check(read(model).model, known)
        record: dict[str, Any] = {
            "model": str(model),
            "documents": [str(path) for path in documents],
            "diagnostics": [diagnostic.record() for diagnostic in found],
        }
        output.found = record
        raise_errors(found, str(model))
        output.data(record)
        for diagnostic in found:
            output.line(diagnostic.text())
        output.line(f"{model}: the documents have every operator")
        return
    if domain not in (*opset_doc.domains(), "ai.onnx"):
        names = ", ".join(one or "ai.onnx" for one in opset_doc.domains())
        raise UsageError("E2914", f"the hardware has no operators of domain {domain!r}", hint=f"domains: {names}")
    made = opset_doc.written(domain)
    if target is not None:
        write_atomically(target, made.SerializeToString(deterministic=True))
    operators = [{"operator": one.op_type, "since_version": one.since_version} for one in made.operator]
    record = {"domain": made.domain, "version": made.opset_version, "operators": operators}
    output.data({**record, "written": None if target is None else str(target)})
    if target is not None:
        output.line(f"{target}: {len(operators)} operators of {made.domain or 'ai.onnx'} {made.opset_version}")
    else:
        output.table(
            ("operator", "since version"),
            [(one["operator"], one["since_version"]) for one in operators],
            title=f"{made.domain or 'ai.onnx'} {made.opset_version}",
        )
