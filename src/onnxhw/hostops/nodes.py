"""`HostNode`: a node of the host, computed by onnxruntime's kernel, by an operator of ours, or by onnx's reference."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import onnx
from onnx import helper

from ..errors import UnsupportedError
from ..onnxmodel.specification.lengths import fault
from ..onnxmodel.specification.signatures import canonical
from .onnxruntime_node import LACKING, NativeError, NativeNode, NoKernelError, native_version
from .operators import deviations, is_ours, ranges


def is_native(node: onnx.NodeProto, version: int) -> bool:
    """Is onnxruntime asked for this node: is its operator set one of `DOMAINS`, and has it no graphs?"""
    if is_ours(canonical(node.domain), node.op_type):
        return False
    plain = all(not (one.ref_attr_name or one.HasField("g") or one.graphs) for one in node.attribute)
    return plain and native_version(canonical(node.domain), node.op_type, version) is not None


class HostNode:
    """A node that runs; to the evaluator it looks like an operator of onnx's reference.

    onnxruntime computes what it has a kernel for, but for operators of ours (`operators.is_ours`) and for
    `operators.deviations`. `load` gives the operator of ours or of the reference, or raises E4750; it is asked when it
    is needed first. `types`: what is known of the operands' types.
    """

    def __init__(
        self, node: onnx.NodeProto, version: int, load: Callable[[], Any], types: Sequence[onnx.TypeProto | None] = ()
    ) -> None:
        self.onnx_node, self._load, self._types = node, load, types
        self.input, self.output = list(node.input), list(node.output)
        self.has_linked_attribute = False
        domain = canonical(node.domain)
        self._native = NativeNode(node, version)
        self._rows = deviations.of(domain, node.op_type)
        self._guarded = domain, node.op_type

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        return {one.name: helper.get_attribute_value(one) for one in self.onnx_node.attribute}

    @cached_property
    def fault(self) -> str:
        """What is wrong with the attributes, empty if nothing is."""
        return fault(*self._guarded, self.attributes, len(self.input))

    @cached_property
    def other(self) -> Any:
        """The operator of ours or of the reference."""
        return self._load()

    def need_context(self) -> bool:
        """It has no graphs."""
        return False

    def run(self, *operands: Any, **more: Any) -> Any:
        """The results in order."""
        if self.fault:
            raise ValueError(self.fault)
        ranges.guard(*self._guarded, self.attributes, operands)
        reason = ""
        if not any(row.applies(self, operands) for row in self._rows):
            try:
                return self._native.run(operands, self._types)
            except NoKernelError as error:
                if error.attributes:
                    raise NativeError(str(error)) from error
                reason = str(error)
            except NativeError as error:
                if not LACKING.search(str(error)):
                    raise
                reason = str(error)
        try:
            other = self.other
        except UnsupportedError as error:
            if not reason:
                raise
            raise UnsupportedError("E4750", f"{error.what} for these operands: {reason}", where=error.where) from error
        return other.run(*operands, **more)
