"""`implemented`, `missing_kernel`, `computed`: what the host can compute, and computes, of one operator or node."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference.op_run import RuntimeContextError

from ..errors import UnsupportedError
from ..onnxmodel.specification.lengths import fault
from ..onnxmodel.specification.signatures import canonical
from .evaluator import Evaluator
from .nodes import HostNode, is_native
from .onnxruntime_node import NativeError, NativeNode, NoKernelError, has_kernel, kind_of
from .operators import deviations, is_ours


@cache
def implemented(domain: str, op_type: str, version: int) -> bool:
    """Whether `evaluate` has the operator for some types, in a version of its domain's operator set."""
    domain = canonical(domain)
    return (not is_ours(domain, op_type) and has_kernel(domain, op_type, version)) or has_other(
        domain, op_type, version
    )


@cache
def has_other(domain: str, op_type: str, version: int) -> bool:
    """Whether we or onnx's reference have the operator."""
    empty = Evaluator(onnx.GraphProto(name="empty"), opsets={"": onnx.defs.onnx_opset_version(), domain: version})
    try:
        empty._others(helper.make_node(op_type, [], [], domain=domain), None)
    except RuntimeContextError:  # a function whose body depends on its inputs
        return True
    except UnsupportedError:
        return False
    return True


def other(node: onnx.NodeProto, version: int) -> Any:
    """The operator of ours or of onnx's reference for one node of the default domain, as `HostNode` wants it."""
    empty = Evaluator(onnx.GraphProto(name="empty"), opsets={"": version})
    settings = {"log": lambda *_: None, "opsets": {"": version}, "verbose": 0, "new_ops": empty.new_ops_,
                "existing_functions": {}, "evaluator_cls": Evaluator}  # fmt: skip
    return empty._instance(node, settings, [None] * len(node.input))


def computed(node: onnx.NodeProto, version: int, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one node of the default domain, without graphs, as `evaluate` would give them."""
    with np.errstate(all="ignore"):
        if is_native(node, version):
            return tuple(HostNode(node, version, lambda: other(node, version)).run(*operands))
        return tuple(other(node, version).run(*operands))


def missing_kernel(node: onnx.NodeProto, version: int, types: Sequence[str]) -> str:
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
        NativeNode(node, version).require(tuple(kind_of(name) for name in types))
    except NoKernelError as error:
        if error.attributes and not deviations.alone(domain, node.op_type, list(node.output), attributes):
            return str(error)
        return "" if has_other(domain, node.op_type, version) else str(error)
    except NativeError as error:
        return str(error)
    return ""
