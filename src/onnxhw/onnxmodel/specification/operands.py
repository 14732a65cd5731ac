"""Rules of operands that the operators' texts state and their schemas do not: of what rank they are, what flags say."""

from collections.abc import Mapping
from math import prod

import onnx

from .findings import Findings, label
from .signatures import canonical

Shape = tuple[int, ...]
SCALAR, VECTOR, LIST = "a scalar", "a vector", "a vector or a scalar"
"""A scalar may also be a vector of one element, as onnxruntime takes it. Axes are vectors by the text; exporters
write scalars, and everybody takes them."""
RANKS: dict[str, dict[int, str]] = {
    "CenterCropPad": {1: VECTOR},
    "Clip": {1: SCALAR, 2: SCALAR},
    "ConstantOfShape": {0: VECTOR},
    "CumSum": {1: SCALAR},
    "Dropout": {1: SCALAR, 2: SCALAR},
    "Expand": {1: VECTOR},
    "If": {0: SCALAR},
    "Loop": {0: SCALAR, 1: SCALAR},
    "MelWeightMatrix": dict.fromkeys(range(5), SCALAR),
    "OneHot": {1: SCALAR, 2: VECTOR},
    "Pad": {1: VECTOR, 2: SCALAR, 3: LIST},
    "Range": dict.fromkeys(range(3), SCALAR),
    **{f"Reduce{kind}": {1: LIST} for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                                               "SumSquare")},
    "Reshape": {1: VECTOR},
    "Resize": {1: VECTOR, 2: VECTOR, 3: VECTOR},
    "STFT": {1: SCALAR, 3: SCALAR},
    "Slice": {1: VECTOR, 2: VECTOR, 3: VECTOR, 4: VECTOR},
    "Split": {1: VECTOR},
    "Squeeze": {1: LIST},
    "Tile": {1: VECTOR},
    "TopK": {1: SCALAR},
    "Trilu": {1: SCALAR},
    "Unsqueeze": {1: LIST},
    "Upsample": {1: VECTOR},
}  # fmt: skip
"""Ranks of inputs by operator of the default domain and index, in every version that has the input (Resize of operator
set 10 and Tile of 1 have another second input of these ranks too)."""
FLAGS = frozenset(
    ["align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box", "count_include_pad", "exclude_outside",
     "exclusive", "fmod", "input_forget", "interleaved", "inverse", "is_causal", "keepdims", "largest",
     "linear_before_reset", "noop_with_empty_axes", "onesided", "reverse", "saturate", "select_last_index", "sorted",
     "training_mode", "transA", "transB", "upper"]
)  # fmt: skip
"""Integer attributes of the default domain that are 0 or 1."""
LEAST = {
    ("GatherND", "batch_dims"): 0,
    ("Split", "num_outputs"): 1,
    ("SpaceToDepth", "blocksize"): 1,
    ("DepthToSpace", "blocksize"): 1,
    ("LRN", "size"): 1,
    ("LpPool", "p"): 1,
    ("RNN", "hidden_size"): 1,
    ("LSTM", "hidden_size"): 1,
    ("GRU", "hidden_size"): 1,
    ("GroupNormalization", "num_groups"): 1,
    ("Scan", "num_scan_inputs"): 1,
    ("Attention", "q_num_heads"): 1,
    ("Attention", "kv_num_heads"): 1,
    ("RotaryEmbedding", "num_heads"): 0,
    ("RotaryEmbedding", "rotary_embedding_dim"): 0,
}
"""The least value of integer attributes of the default domain that count something."""
MOST = {("TfIdfVectorizer", "max_skip_count"): 1 << 16, ("TfIdfVectorizer", "max_gram_length"): 1 << 16}
"""The largest value of those over which implementations loop whatever the input is."""


def operand_rules(node: onnx.NodeProto, shapes: Mapping[str, Shape], findings: Findings) -> None:
    """E3356 for flags that are neither 0 nor 1, E3357 for operands of another rank, E3358 for counts out of range."""
    if canonical(node.domain):
        return
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.INT and not attribute.ref_attr_name:
            _integer(node, attribute.name, attribute.i, findings)
    for index, wanted in RANKS.get(node.op_type, {}).items():
        shape = shapes.get(node.input[index]) if index < len(node.input) and node.input[index] else None
        if shape is None or (len(shape) == 1 and wanted in (VECTOR, LIST)) or (not shape and wanted == LIST):
            continue
        if wanted != SCALAR or len(shape) > 1 or prod(shape) != 1:
            what = f"input {index} must be {wanted}, its shape is {list(shape)}"
            findings.error("E3357", label(node), what)


def _integer(node: onnx.NodeProto, name: str, value: int, findings: Findings) -> None:
    if name in FLAGS and value not in (0, 1):
        findings.error("E3356", label(node), f"attribute {name!r} is {value}, it is a flag: 0 or 1")
    least = LEAST.get((node.op_type, name))
    if least is not None and value < least:
        findings.error("E3358", label(node), f"attribute {name!r} is {value}, the least is {least}")
    most = MOST.get((node.op_type, name))
    if most is not None and value > most:
        findings.error("E3358", label(node), f"attribute {name!r} is {value}, the most is {most}")
    if name == "num_outputs" and node.op_type == "Split" and value != len(node.output):
        what = f"attribute {name!r} is {value}, it has {len(node.output)} outputs"
        findings.error("E3358", label(node), what)
