"""`HostOp`: a plain function as an operator of onnx's reference evaluator."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy.typing as npt
from onnx import helper
from onnx.reference.op_run import OpRun

Array = npt.NDArray[Any]
NEWEST = 1 << 30
"""An `until` that no operator set reaches."""


@dataclass(frozen=True)
class HostOp:
    """An operator of `domain` in its versions ``since .. until``.

    `function` takes the node's inputs in order (None where one is omitted) and its attributes by name, and returns the
    output or a tuple of them. The defaults of its parameters are those of the operator's specification. If it is
    `counted`, it also takes how many outputs the node has, as `outputs`.
    """

    domain: str
    name: str
    function: Callable[..., Any]
    since: int = 1
    until: int = NEWEST
    counted: bool = False


@cache
def implementation(op: HostOp) -> type[OpRun]:
    """The class by which the evaluator calls the function; outputs are passed as they are, also None."""

    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        more = {"outputs": len(self.onnx_node.output)} if op.counted else {}
        result = op.function(*inputs, **attributes, **more)
        results = result if isinstance(result, tuple) else (result,)
        if any(self.onnx_node.output[len(results) :]):
            raise NotImplementedError(f"only its first {len(results)} outputs are computed")
        return results

    def _check_and_fix_outputs(self: OpRun, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return outputs

    members = {"_run": _run, "_check_and_fix_outputs": _check_and_fix_outputs}
    return type(op.name, (OpRun,), {"op_domain": op.domain, "op_schema": None, **members})


def reference(cls: type[OpRun], op: str, *inputs: Any, **attributes: Any) -> Any:
    """The first output of a class of onnx's reference implementation."""
    node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], ["y"], **attributes)
    run: Callable[..., tuple[Any, ...]] = cls(node, {"log": lambda *_: None, "opsets": {}, "new_ops": None}).run
    return run(*inputs)[0]


def select(ops: Iterable[HostOp], opsets: dict[str, int]) -> list[type[OpRun]]:
    """The implementations for the given version of each domain."""
    return [implementation(op) for op in ops if op.since <= opsets.get(op.domain, 0) <= op.until]
