"""`Limits`: how large a model may be, before anything is allocated or looped over.

The specification sets no such limits, so each can be raised: on the command line with ``--limit NAME=VALUE``.
`onnxfile.container` and `onnxfile.survey` hold a file against them, `onnxmodel` what is inferred and folded.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from ..errors import InvalidModelError, UsageError

VALUE = re.compile(r"[0-9]{1,18}", re.ASCII)


class LimitError(InvalidModelError):
    """A model beyond a limit that can be raised: not wrong, but larger than what is read without asking."""

    kind = "over a limit"


@dataclass(frozen=True)
class Limits:
    """The limits of one reading.

    file_bytes : size of the model file; protobuf itself reads no more than 2 GiB - 1.
    text_bytes : size of a model file in a text format, of which the parsers make some 30 bytes per byte.
    fields : protobuf fields of the file; the library makes about 200 bytes of the 2 that each takes at least.
    total_bytes : all tensors of the file and its data files together; sparse ones count as dense.
    tensor_elements : elements of one tensor, stored or inferred.
    total_elements : elements of all inferred tensors together.
    tensor_rank : dimensions of one tensor; numpy has no more than 32 (64 from its release 2 on).
    nodes : nodes of the graph, its subgraphs and its functions.
    values : names in the model (inputs, outputs, tensors, attributes).
    name_length : UTF-8 bytes of one name.
    subgraph_depth : graphs within graphs; protobuf itself reads about 30.
    functions : model-local functions.
    expansion : nodes after all functions and loops are expanded.
    loop_trips : iterations of a loop that is unrolled.
    folded_elements : elements of one constant that is computed while reading; beyond, and beyond `folded_bytes`, the
        host computes it when the model runs.
    folded_bytes : all constants that are computed while reading; and bytes of nodes that unrolling loops copies.
    data_files : files with external data.
    quant_bits : bits of QONNX integers; only vectors, which biases are, may have 32 without asking.
    """

    file_bytes: int = (1 << 31) - 1
    text_bytes: int = 1 << 24
    fields: int = 4_000_000
    total_bytes: int = (1 << 31) - 1
    tensor_elements: int = 1 << 29
    total_elements: int = 1 << 33
    tensor_rank: int = 32
    nodes: int = 100_000
    values: int = 2_000_000
    name_length: int = 1024
    subgraph_depth: int = 16
    functions: int = 10_000
    expansion: int = 100_000
    loop_trips: int = 1024
    folded_elements: int = 1 << 24
    folded_bytes: int = 1 << 28
    data_files: int = 10_000
    quant_bits: int = 16

    @classmethod
    def from_flags(cls, flags: Iterable[str]) -> "Limits":
        """Defaults with the ``NAME=VALUE`` of each flag; `UsageError` E2160 for what is no limit or no number."""
        known = [field.name for field in fields(cls)]
        found: dict[str, int] = {}
        for flag in flags:
            name, _, text = flag.partition("=")
            name = name.strip().replace("-", "_")
            if name not in known:
                raise UsageError("E2160", f"no limit is called {name!r}", hint=f"limits: {', '.join(known)}")
            if not VALUE.fullmatch(text.strip()):
                raise UsageError("E2160", f"limit {name!r} must be a whole number, not {text!r}", hint="NAME=VALUE")
            found[name] = int(text)
        return replace(cls(), **found)

    def check(self, code: str, name: str, value: int, what: str, where: str = "") -> None:
        """`LimitError` with `code` if `value` is beyond the limit `name`; `what` is what has that many, with a verb."""
        allowed: int = getattr(self, name)
        if value > allowed:
            raise LimitError(
                code,
                f"{what} {value}, the limit {name} is {allowed}",
                where=where,
                hint=f"raise it with --limit {name}={value}, if the model comes from someone you trust",
            )


DEFAULT = Limits()
"""The limits where nobody asked for others."""
