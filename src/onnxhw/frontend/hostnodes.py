"""`HostNode`: a node of the host, computed by onnxruntime's kernel, by an operator of ours, or by onnx's reference."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..errors import UnsupportedError
from .hostops import deviations, guards
from .native import LACKING, NativeError, NativeNode, NoKernelError, is_native, kind_of
from .spec.lengths import fault
from .spec.signatures import canonical


def computed(node: onnx.NodeProto, version: int, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one node of the default domain, without graphs, as `hostrun.evaluate` would give them."""

    def load() -> Any:
        from .hostrun import other  # only here: it takes long to import

        return other(node, version)

    with np.errstate(all="ignore"):
        if is_native(node, version):
            return tuple(HostNode(node, version, load).run(*operands))
        return tuple(load().run(*operands))


def lacking(node: onnx.NodeProto, version: int, types: Sequence[str]) -> str:
    """Why no kernel, operator of ours or of the reference computes a node of operands of these types (names of numpy's,
    "" where one is left out); empty if one does. What a kernel of `native.STRICT` refuses for its
    attributes the reference is not asked.
    """
    if not is_native(node, version):
        return ""
    domain = canonical(node.domain)
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if wrong := fault(domain, node.op_type, attributes, len(node.input)):
        return wrong
    try:
        NativeNode(node, version).session(tuple(kind_of(name) for name in types))
    except NoKernelError as error:
        if error.attributes and not deviations.alone(domain, node.op_type, list(node.output), attributes):
            return str(error)
        from .hostrun import has_other  # only here: it takes long to import

        return "" if has_other(domain, node.op_type, version) else str(error)
    except NativeError as error:
        return str(error)
    return ""


class HostNode:
    """A node that runs; to the evaluator it looks like an operator of onnx's reference.

    onnxruntime computes what it has a kernel for, but for operators of ours (`hostops.is_ours`) and for
    `hostops.deviations`. `load` gives the operator of ours or of the reference, or raises E4750; it is asked when it is
    needed first. `types`: what is known of the operands' types.
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
        guards.guard(*self._guarded, self.attributes, operands)
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
