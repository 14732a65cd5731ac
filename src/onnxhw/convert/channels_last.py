"""`channels_last`: inputs of the model that lie channels last and are turned behind some arithmetic.

    x (1, H, W, C) -> QuantizeLinear -> * 1/255 - mean -> Transpose to (1, C, H, W) -> Conv

as networks of Keras do that normalize their images themselves. The hardware gets such an input turned by the host, so
that its channels are channels.
"""

from collections.abc import Mapping

from ..onnxmodel.nodes import DEFAULT, Node
from .static_model import StaticModel

QUANTIZERS = frozenset(["QuantizeLinear", "DequantizeLinear"])
ARITHMETIC = frozenset(
    [
        "Abs", "Add", "Cast", "Clip", "Div", "Identity", "Max", "Min", "Mul", "Neg", "QLinearAdd", "QLinearMul", "Relu",
        "Sub",
    ]
)  # fmt: skip
"""Operators element by element that stand before a network's first convolution."""


def channels_last(static: StaticModel) -> frozenset[str]:
    """The results of QuantizeLinears of model inputs that are turned to channels first behind arithmetic with
    constants.

    Those that are turned at once are not among them: such a Transpose is free.
    """
    turns = [node for node in static.nodes if node.key == ("", "Transpose") and _to_front(node)]
    if not turns:
        return frozenset()
    makers = {name: node for node in static.nodes for name in node.results}
    known = set(static.constants)
    for node in static.nodes:
        if all(name in known for name in node.input if name):
            known.update(node.results)
    found = (_quantized_input(node.input[0], makers, known, static.inputs) for node in turns)
    return frozenset(name for name in found if name)


def _to_front(node: Node) -> bool:
    perm = tuple(node.attributes.get("perm", ()))
    return len(perm) > 2 and perm == (0, len(perm) - 1, *range(1, len(perm) - 1))


def _quantized_input(name: str, makers: Mapping[str, Node], known: set[str], inputs: frozenset[str]) -> str:
    """The quantized input that arithmetic makes `name` of; "" if there is none, or no arithmetic."""
    computes = False
    while (maker := makers.get(name)) is not None:
        operands = [operand for operand in maker.input if operand and operand not in known]
        if len(operands) != 1 or (maker.op_type not in QUANTIZERS and maker.op_type not in ARITHMETIC):
            return ""
        if operands[0] in inputs and maker.op_type == "QuantizeLinear" and maker.domain in DEFAULT:
            return name if computes else ""
        computes = computes or maker.op_type in ARITHMETIC
        name = operands[0]
    return ""
