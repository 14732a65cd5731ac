"""`guard`: operands that no implementation may see. A kernel would end the process, not end itself, or read memory that
is not its own; onnx's reference and ours take operands that the operators' texts exclude, count from the end of an
axis, or give what comes of them. How large results may get is said in `sizes`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Attributes = Mapping[str, Any]
Operands = Sequence[Any]
Guard = Callable[[Attributes, Operands], None]


def given(operands: Operands, index: int) -> Any:
    """An operand, None if it is left out."""
    return operands[index] if index < len(operands) else None


def number(operands: Operands, index: int, name: str) -> int | None:
    """The one integer of an operand, None if it is left out. `ValueError` for several."""
    value = given(operands, index)
    if value is None:
        return None
    if np.size(value) != 1:
        raise ValueError(f"{name} is one number, not {np.size(value)}")
    return int(np.ravel(value)[0])


def need(holds: bool, what: str) -> None:
    """`ValueError` unless it holds."""
    if not holds:
        raise ValueError(what)


def dft(attributes: Attributes, operands: Operands) -> None:
    """An axis of the signal, which the last one is not, and a length of one at least."""
    shape, length, axis = np.shape(operands[0]), number(operands, 1, "dft_length"), number(operands, 2, "axis")
    axis = attributes.get("axis", 1) if axis is None and "axis" in attributes else axis
    rank = len(shape)
    need(rank > 1 and shape[-1] in (1, 2), f"the last axis has the real and imaginary part, not {list(shape)[-1:]}")
    if axis is not None:
        need(-rank <= axis <= rank - 2 and axis != -1, f"axis {axis} is not in -{rank} .. -2 or 0 .. {rank - 2}")
    if length is not None:
        need(length >= 1, f"dft_length is {length}, the least is 1")


def stft(attributes: Attributes, operands: Operands) -> None:
    """A step of one at least, and frames of one element at least that fit into the signal."""
    shape, step = np.shape(operands[0]), number(operands, 1, "frame_step")
    length, window = number(operands, 3, "frame_length"), given(operands, 2)
    need(step is not None and step >= 1, f"frame_step is {step}, the least is 1")
    length = np.size(window) if length is None and window is not None else length
    if length is not None:
        signal = shape[1] if len(shape) > 1 else 0
        need(1 <= length <= signal, f"a frame has {length} elements: 1 to {signal}, the length of the signal")


def max_unpool(attributes: Attributes, operands: Operands) -> None:
    """Indices are places; an output_size has the batch and channels of the input."""
    sizes, shape = given(operands, 2), np.shape(operands[0])
    need(not np.size(operands[1]) or int(np.min(operands[1])) >= 0, "an index is negative")
    if sizes is not None:
        wanted = np.ravel(sizes).tolist()
        need(wanted[:2] == list(shape[:2]), f"output_size {wanted} has another batch or channels than {list(shape)}")


def affine_grid(attributes: Attributes, operands: Operands) -> None:
    """Sizes of one at least, and as many samples as matrices."""
    sizes, matrices = np.ravel(operands[1]).tolist(), np.shape(operands[0])
    need(min(sizes, default=0) >= 1, f"size is {sizes}: every element must be at least 1")
    need(len(sizes) == (matrices[-1] if matrices else 0) + 1 and sizes[0] == matrices[0],
         f"size {sizes} does not fit matrices {list(matrices)}")  # fmt: skip


def pad(attributes: Attributes, operands: Operands) -> None:
    """Two pads for each axis, once each, that leave something; a reflection is shorter than its axis."""
    if given(operands, 1) is None:
        return  # attributes, before operator set 11
    shape, pads, named = np.shape(operands[0]), np.ravel(operands[1]).tolist(), given(operands, 3)
    rank = len(shape)
    axes = list(range(rank)) if named is None else np.ravel(named).tolist()
    need(all(-rank <= axis < rank for axis in axes), f"axes {axes} are not between {-rank} and {rank - 1}")
    need(len({axis % rank for axis in axes}) == len(axes), f"axes {axes} name an axis twice")
    need(len(pads) == 2 * len(axes), f"{len(pads)} pads for {len(axes)} axes: two for each")
    reflects = attributes.get("mode", b"constant") in (b"reflect", "reflect")
    for before, after, axis in zip(pads, pads[len(axes) :], axes, strict=False):
        size = shape[axis]
        need(size + before + after >= 0 and size + min(before, 0) + min(after, 0) >= 0,
             f"pads {before} and {after} take away more than the {size} elements of axis {axis}")  # fmt: skip
        left = size + min(before, 0) + min(after, 0)
        need(not reflects or max(before, after) < max(left, 1), f"a reflection of {max(before, after)} elements is "
             f"longer than axis {axis} of {left}")  # fmt: skip


def top_k(attributes: Attributes, operands: Operands) -> None:
    """As many as the axis has at most: the kernel takes the lower 32 bits."""
    count, shape, axis = number(operands, 1, "k"), np.shape(operands[0]), attributes.get("axis", -1)
    if count is not None and -len(shape) <= axis < len(shape):
        need(0 <= count <= shape[axis], f"k is {count}, axis {axis} has {shape[axis]} elements")


def recurrent(attributes: Attributes, operands: Operands) -> None:
    """Lengths of every sequence up to the longest, and a first state of every direction and sequence."""
    shape, turned = np.shape(operands[0]), bool(attributes.get("layout", 0))
    need(len(shape) == 3, f"the input is of three axes, not {list(shape)}")
    length, batch = (shape[1], shape[0]) if turned else shape[:2]
    lengths = given(operands, 4)
    if lengths is not None:
        need(np.shape(lengths) == (batch,), f"sequence_lens {list(np.shape(lengths))} is not one for each of {batch}")
        need(all(0 <= one <= length for one in np.ravel(lengths)), f"sequence_lens are not all 0 to {length}")
    directions, hidden = np.shape(operands[2])[0], np.shape(operands[2])[-1]
    wanted = (batch, directions, hidden) if turned else (directions, batch, hidden)
    for index, name in ((5, "initial_h"), (6, "initial_c")):
        state = given(operands, index)
        if state is not None:
            need(np.shape(state) == wanted, f"{name} is {list(np.shape(state))}, not {list(wanted)}")


def attention(attributes: Attributes, operands: Operands) -> None:
    """Numbers of keys that are no padding, of each sample."""
    counts = given(operands, 6)
    if counts is not None:
        keys = np.shape(operands[1])[-2] if np.ndim(operands[1]) > 1 else 0
        need(all(0 <= one <= keys for one in np.ravel(counts)), f"nonpad_kv_seqlen are not all 0 to {keys}")


def split_to_sequence(attributes: Attributes, operands: Operands) -> None:
    """Parts of one size of one at least, or of sizes that add up."""
    sizes, shape, axis = given(operands, 1), np.shape(operands[0]), attributes.get("axis", 0)
    if sizes is None or not -len(shape) <= axis < len(shape):
        return
    parts = np.ravel(sizes).tolist()
    if np.ndim(sizes) == 0:
        need(parts[0] >= 1, f"split is {parts[0]}, the least is 1")
    else:
        right = min(parts, default=0) >= 0 and sum(parts) == shape[axis]
        need(right, f"split {parts[:8]} does not divide the {shape[axis]} elements of axis {axis}")


def dropout(attributes: Attributes, operands: Operands) -> None:
    """A ratio of [0, 1) where training drops elements."""
    ratio, training = given(operands, 1), given(operands, 2)
    if ratio is not None and training is not None and bool(np.any(training)):
        need(np.size(ratio) == 1 and 0 <= float(np.ravel(ratio)[0]) < 1, f"ratio is {ratio}, not in [0, 1)")


def instance_normalization(attributes: Attributes, operands: Operands) -> None:
    """A scale and a bias of each channel."""
    shape = np.shape(operands[0])
    need(len(shape) > 2, f"the input has a batch, channels and other axes, not {list(shape)}")
    for index, name in ((1, "scale"), (2, "B")):
        need(np.shape(operands[index]) == shape[1:2],
             f"{name} {list(np.shape(operands[index]))} is not one number for each of {shape[1]} channels")  # fmt: skip


def slices(attributes: Attributes, operands: Operands) -> None:
    """As many starts as ends, axes and steps; axes that there are, once each."""
    rank, lists = np.ndim(operands[0]), [given(operands, index) for index in range(1, 5)]
    if len(operands) < 3:
        return  # attributes, before operator set 10
    lengths = {np.size(one) for one in lists if one is not None}
    need(len(lengths) == 1, f"starts, ends, axes and steps are of different lengths, {sorted(lengths)}")
    if lists[2] is not None:
        axes = np.ravel(lists[2]).tolist()
        need(all(-rank <= axis < rank for axis in axes), f"axes {axes} are not between {-rank} and {rank - 1}")
        need(len({axis % rank for axis in axes}) == len(axes), f"axes {axes} name an axis twice")


def resize(attributes: Attributes, operands: Operands) -> None:
    """Scales above 0, one for each axis; sizes of 0 at least."""
    shape, axes = np.shape(operands[0]), attributes.get("axes")
    count = len(axes) if axes is not None else len(shape)
    scales = given(operands, 2) if len(operands) > 2 else given(operands, 1)
    if scales is not None and np.size(scales):
        need(np.size(scales) == count, f"{np.size(scales)} scales for {count} axes")
        need(bool(np.all(np.ravel(scales) > 0)), "a scale is not above 0")
    sizes = given(operands, 3)
    if sizes is not None and np.size(sizes):
        need(np.size(sizes) == count, f"{np.size(sizes)} sizes for {count} axes")
        need(min(np.ravel(sizes).tolist()) >= 0, "a size is negative")


GUARDS = {
    "AffineGrid": affine_grid,
    "Attention": attention,
    "DFT": dft,
    "Dropout": dropout,
    **dict.fromkeys(["GRU", "LSTM", "RNN"], recurrent),
    "InstanceNormalization": instance_normalization,
    "MaxUnpool": max_unpool,
    "Pad": pad,
    "Resize": resize,
    "STFT": stft,
    "Slice": slices,
    "SplitToSequence": split_to_sequence,
    "TopK": top_k,
}
"""By operator of the default domain."""


def _present(attributes: Attributes, operands: Operands) -> None:
    """Variadic operands cannot be left out: the kernel reads them all."""
    for index, value in enumerate(operands):
        need(value is not None, f"operand {index} is left out, but it is one of a variadic input")


def _gather_nd(attributes: Attributes, operands: Operands) -> None:
    count = attributes.get("batch_dims", 0)
    ranks = np.ndim(operands[0]), np.ndim(operands[1])
    what = f"batch_dims {count} is not below the ranks of data and indices, {ranks[0]} and {ranks[1]}"
    need(0 <= count < min(ranks), what)


def _square(attributes: Attributes, operands: Operands) -> None:
    """The kernel of Inverse reads as many columns as there are rows."""
    shape = np.shape(operands[0])
    need(len(shape) > 1 and shape[-1] == shape[-2], f"the matrices of {list(shape)} are not square")


def _linear(attributes: Attributes, operands: Operands) -> None:
    """Coefficients of every row: the kernel of LinearClassifier reads as many as there are intercepts."""
    shape, count = np.shape(operands[0]), len(attributes.get("coefficients", ()))
    rows = len(attributes.get("intercepts", ()))
    columns = shape[-1] if shape else 0
    need(rows * columns <= count, f"{count} coefficients are fewer than {rows} rows of {columns}, one for each feature")


EVERY: dict[tuple[str, str], Guard] = {
    **{("", name): look for name, look in GUARDS.items()},
    **{("", name): _present for name in ("Concat", "Max", "Mean", "Min", "Sum", "Einsum", "SequenceConstruct")},
    ("ai.onnx.ml", "FeatureVectorizer"): _present,
    ("", "GatherND"): _gather_nd,
    ("com.microsoft", "GatherND"): _gather_nd,
    ("com.microsoft", "Inverse"): _square,
    ("ai.onnx.ml", "LinearClassifier"): _linear,
}
"""By domain and operator: what looks at operands."""


def guard(domain: str, op_type: str, attributes: Attributes, operands: Operands) -> None:
    """`ValueError` for operands that a kernel must not see; `specification.lengths` looks at attributes alone."""
    if (look := EVERY.get((domain, op_type))) is not None:
        look(attributes, operands)
