"""Rows of `operators.deviations`: what a session computes is what the operator's text says, worked out by hand."""

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxhw.errors import OnnxhwError

from .one_node import NAN, floats, ints, run


def test_gather_copies_whole_slices_of_text() -> None:
    x = np.array([["a", "b"], ["c", "d"]], object)
    (y,) = run("Gather", [x, ints(1, 0)], 13, axis=0)
    assert y.tolist() == [["c", "d"], ["a", "b"]]


@pytest.mark.parametrize("end", [2**31 - 1, 2**63 - 1])
def test_slice_backwards_to_the_end_takes_nothing(end: int) -> None:
    (y,) = run("Slice", [floats(1, 2, 3), ints(2), ints(end), ints(0), ints(-1)], 13)
    assert y.size == 0


def test_slice_backwards_to_the_beginning_takes_all() -> None:
    (y,) = run("Slice", [floats(1, 2, 3), ints(2), ints(-(2**63)), ints(0), ints(-1)], 13)
    assert y.tolist() == [3, 2, 1]


def test_nonzero_of_a_scalar_has_no_rows() -> None:
    (y,) = run("NonZero", [np.array(1, np.float32)], 13)
    assert y.shape == (0, 1)


def test_mean_variance_normalization_of_equal_values_is_zero() -> None:
    (y,) = run("MeanVarianceNormalization", [np.ones((1, 2, 2, 2), np.float32)], 13)
    assert not y.any()


def test_split_to_sequence_keeps_the_axis_where_split_is_given() -> None:
    (y,) = run("SplitToSequence", [floats(1, 2), np.array(1, np.int64)], 24, keepdims=0)
    assert [part.tolist() for part in y] == [[1], [2]]


@pytest.mark.parametrize(
    ("op_type", "wanted"), [("MaxPool", [2, 3, 4, 3]), ("AveragePool", [2, 2, 3, 3]), ("LpPool", [2, 4, 6, 3])]
)
def test_pools_pad_for_the_dilated_window(op_type: str, wanted: list[int]) -> None:
    """A window of 2 with dilation 2 spans 3: one element on either side, and as many results as elements."""
    more = {"p": 1} if op_type == "LpPool" else {}
    x = floats(1, 2, 3, 4).reshape(1, 1, 4)
    (y,) = run(op_type, [x], 22, kernel_shape=[2], dilations=[2], auto_pad="SAME_UPPER", **more)
    assert y.reshape(-1).tolist() == wanted


def test_lp_pool_rounds_up_without_scaling() -> None:
    (y,) = run("LpPool", [floats(1, 2, 3, 4, 5).reshape(1, 1, 5)], 22, kernel_shape=[2], strides=[2], ceil_mode=1)
    np.testing.assert_allclose(y.reshape(-1), np.sqrt([5, 25, 25]), 1e-6)


@pytest.mark.parametrize("op_type", ["RNN"])
def test_thresholded_relu_of_a_cell_passes_alpha(op_type: str) -> None:
    one = np.ones((1, 1, 1), np.float32)
    _, h = run(
        op_type, [one / 2, one, one * 0], 14, 2, hidden_size=1, activations=["ThresholdedRelu"], activation_alpha=[0.5]
    )
    assert h.item() == 0.5


def test_sigmoid_of_doubles_is_exact_to_their_precision() -> None:
    x = np.array([-700.0, -30.0, -11.39, 3.0])
    (y,) = run("Sigmoid", [x], 13)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x)), 1e-14)


def test_col2im_adds_dilated_blocks_where_they_came_from() -> None:
    """Blocks of two taps, two apart, from places -1, 0, 1, 2 of four elements padded by one on either side."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 2, 4)
    wanted = np.zeros(6)
    for tap in range(2):
        for place in range(4):
            wanted[place + 2 * tap] += x[0, tap, place]
    (y,) = run("Col2Im", [x, ints(4), ints(2)], 18, dilations=[2], pads=[1, 1])
    assert y.reshape(-1).tolist() == wanted[1:5].tolist()


def test_kernels_that_lack_a_type_leave_it_to_ours() -> None:
    x = np.ones((1, 1, 2))
    w, r = np.ones((1, 3, 2)), np.zeros((1, 3, 1))
    _, h = run("GRU", [x, w, r], 14, 2, hidden_size=1)
    gate = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(h.item(), (1 - gate) * np.tanh(2.0), 1e-12)


def test_batch_normalization_trains_with_two_types() -> None:
    x = np.array([[1.0], [3.0]], np.float32)
    one, statistics = np.ones(1, np.float32), np.zeros(1)
    y, mean, var = run(
        "BatchNormalization", [x, one, one * 0, statistics, statistics], 15, 3, training_mode=1, epsilon=0.0
    )
    np.testing.assert_allclose(y, [[-1], [1]], 1e-6)
    assert mean.dtype == var.dtype == np.float64
    np.testing.assert_allclose([mean.item(), var.item()], [0.2, 0.1], 1e-6)


def test_unique_of_nothing_along_an_axis_returns() -> None:
    """The kernel of onnxruntime 1.32 ends the process here."""
    (y,) = run("Unique", [np.zeros((0, 2), np.int64)], 11, axis=0)
    assert y.shape == (0, 2)


@pytest.mark.parametrize(("case", "wanted"), [("NONE", ["né", "ÉA"]), ("LOWER", ["né", "éa"]), ("UPPER", ["NÉ", "ÉA"])])
def test_string_normalizer_changes_the_case_and_nothing_else(case: str, wanted: list[str]) -> None:
    (y,) = run("StringNormalizer", [np.array(["né", "STOP", "ÉA"], object)], 10, case_change_action=case,
               stopwords=["stop"])  # fmt: skip
    assert y.tolist() == wanted


def test_string_normalizer_of_stop_words_alone_is_one_empty_string() -> None:
    (y,) = run("StringNormalizer", [np.array([["a", "b"]], object)], 10, stopwords=["a", "b"], is_case_sensitive=1)
    assert y.tolist() == [[""]]


UNIQUE_TYPES = ["float32", "float16", "bfloat16", "int32", "uint8", "int64", "bool", "str"]


@pytest.mark.parametrize("kind", UNIQUE_TYPES)
@pytest.mark.parametrize("ascending", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (3, 0), (1, 1)])
def test_unique_of_every_type_is_its_definition(kind: str, ascending: int, axis: int | None, shape: Any) -> None:
    """By a dictionary of slices; kernels are there for some types, of no elements for none."""
    numbers = np.random.default_rng(7).integers(0, 2, shape)
    bfloat = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    x = numbers.astype(str).astype(object) if kind == "str" else numbers.astype(bfloat if kind == "bfloat16" else kind)
    more = {} if axis is None else {"axis": axis}
    y, first, inverse, counts = run("Unique", [x], 11, 4, sorted=ascending, **more)
    parts = numbers.reshape(-1, 1) if axis is None else np.moveaxis(numbers, axis, 0)
    keys = [tuple(part.reshape(-1).tolist()) for part in parts]
    wanted = sorted(set(keys)) if ascending else list(dict.fromkeys(keys))
    assert first.tolist() == [keys.index(key) for key in wanted]
    assert inverse.tolist() == [wanted.index(key) for key in keys]
    assert counts.tolist() == [keys.count(key) for key in wanted]
    flat = x.reshape(-1) if axis is None else x
    assert y.dtype == x.dtype
    assert np.array_equal(y, np.take(flat, first, axis=axis or 0))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_unique_loses_no_number_beside_nan(kind: Any) -> None:
    y, first, _, counts = run("Unique", [np.array([NAN, 1, NAN, 2, 1], kind)], 11, 4)
    np.testing.assert_array_equal(y, [1, 2, NAN])
    assert (first.tolist(), counts.tolist()) == ([1, 3, 0], [2, 1, 2])


@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize(("mode", "wanted"), [("nearest", [0, 1, 1, 2, 2, 2]), ("linear", [0.5, 1.5, 2.5, 3.5, 4, 4])])
def test_resize_at_half_pixels_for_nearest_neighbours(kind: Any, mode: str, wanted: list[float]) -> None:
    """Element i is at (i + 0.5) / 2: of 0, 2, 4 at 0.25, 0.75, 1.25, 1.75, 2.25, 2.75; onnx's reference has no such."""
    x = np.array([0, 2, 4], kind).reshape(1, 1, 3)
    none = np.zeros(0, np.float32)
    (y,) = run("Resize", [x, none, floats(1, 1, 2)], 11, mode=mode, nearest_mode="floor" if mode == "floor" else
               "round_prefer_floor", coordinate_transformation_mode="tf_half_pixel_for_nn")  # fmt: skip
    found = y.reshape(-1).tolist()
    assert found == ([2 * i for i in wanted] if mode == "nearest" else np.array(wanted).astype(kind).tolist())


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64, np.float16, np.float64])
@pytest.mark.parametrize(("version", "mode"), [(16, "bilinear"), (20, "linear"), (20, "nearest")])
def test_grid_sample_takes_places_as_real_numbers(kind: Any, version: int, mode: str) -> None:
    """Halfway between 10 and 20, and at the middle of four pixels."""
    x = np.array([[10, 20], [30, 40]], kind).reshape(1, 1, 2, 2)
    grid = floats(0, -0.5, 0, 0, 0.5, 0.5).reshape(1, 1, 3, 2)
    (y,) = run("GridSample", [x, grid], version, mode=mode, align_corners=0)
    assert (y.dtype, y.reshape(-1)[2]) == (kind, 40)
    if mode != "nearest":
        assert y.reshape(-1).tolist() == [15, 25, 40]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_logarithms_of_sums_of_integers_are_cut_off_once(kind: str) -> None:
    x = np.array([[4, 4, 4], [1, 3, 2]], kind)
    (y,) = run("ReduceLogSumExp", [x, ints(1)], 18, keepdims=0)
    assert (y.dtype, y.tolist()) == (np.dtype(kind), [5, 3])  # 4 + log(3) = 5.1, 3.41


def test_signed_bytes_stay_negative_where_resize_is_antialiased() -> None:
    x = np.full((1, 1, 4, 4), -40, np.int8)
    none = np.zeros(0, np.float32)
    (y,) = run("Resize", [x, none, floats(1, 1, 0.5, 0.5)], 18, mode="linear", antialias=1)
    assert y.reshape(-1).tolist() == [-40] * 4


def test_batch_normalization_of_no_training_has_one_output() -> None:
    """The kernel gives others whose elements it does not write."""
    x, one = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with pytest.raises(OnnxhwError, match="E4752"):
        run("BatchNormalization", [x, one, one, one, one], 14, 3)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int16", "uint8"])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_has_the_first_of_equal_elements_and_nan_above_all(kind: str, largest: int) -> None:
    """There is no kernel of the last three; onnx's reference leaves numbers out beside NaN."""
    bfloat = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    real = kind in ("float32", "bfloat16")
    x = np.array([NAN if real else 9, 1, 0, 3, 1]).astype(bfloat if kind == "bfloat16" else kind)
    y, places = run("TopK", [x, ints(4)], 11, 2, largest=largest)
    wanted = [0, 3, 1, 4] if largest else [2, 1, 4, 3]
    assert (places.dtype, places.tolist()) == (np.int64, wanted)
    np.testing.assert_array_equal(y.astype(np.float32), x[wanted].astype(np.float32))


def test_types_that_numpy_has_not_are_cast_to_each_other() -> None:
    """By way of float32, which has all their values: ml_dtypes has no cast between some of them."""
    names = ["FLOAT8E8M0", "FLOAT8E4M3FNUZ", "FLOAT8E4M3FN", "FLOAT8E5M2", "BFLOAT16"]
    kinds = {name: getattr(onnx.TensorProto, name) for name in names}
    for source in kinds.values():
        x = floats(1, 2, 4, 0.5).astype(helper.tensor_dtype_to_np_dtype(source))
        for target in kinds.values():
            (y,) = run("Cast", [x], 24, to=target)
            assert y.dtype == helper.tensor_dtype_to_np_dtype(target)
            assert y.astype(np.float32).tolist() == [1, 2, 4, 0.5]


def test_batch_normalization_of_two_types_keeps_the_digits_near_the_mean() -> None:
    """The kernel multiplies before it subtracts the mean."""
    x, one, half = floats(1, 3).reshape(2, 1), floats(1), np.ones(1, np.float16)
    y, *_ = run("BatchNormalization", [x, one, one, half, half], 15, 3, training_mode=1)
    np.testing.assert_allclose(y.ravel(), 1 + np.array([-1, 1]) / np.sqrt(1 + 1e-5), atol=1e-9)


@pytest.mark.parametrize("version", [7, 9])
def test_batch_normalization_that_names_its_statistics_trains(version: int) -> None:
    """"Output case #1: Y, mean, var, saved_mean, saved_var (training mode)"; the kernel gives 1 / sqrt(variance)
    for the saved variance."""
    x = np.random.default_rng(1).normal(size=(5, 3, 2)).astype(np.float32)
    scale, bias, old = np.eye(3, dtype=np.float32)
    found = run("BatchNormalization", [x, scale, bias, old, old], version, 5, momentum=0.5)
    y, mean, var, saved_mean, saved_var = found
    now, spread = x.mean((0, 2)), x.var((0, 2))
    normal = (x - now[:, None]) / np.sqrt(spread[:, None] + 1e-5)
    np.testing.assert_allclose(y, normal * scale[:, None] + bias[:, None], rtol=1e-4, atol=1e-5)
    for one, wanted in ((mean, (old + now) / 2), (var, (old + spread) / 2), (saved_mean, now), (saved_var, spread)):
        np.testing.assert_allclose(one, wanted, rtol=1e-5)


@pytest.mark.parametrize("version", [6, 22])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_instance_normalization_of_equal_values_is_the_bias(version: int, kind: Any) -> None:
    x, scale, bias = np.full((2, 2, 3), 0.3, kind), np.array([4, -2], kind), np.array([-0.15471292, 7], kind)
    (y,) = run("InstanceNormalization", [x, scale, bias], version)
    np.testing.assert_array_equal(y, np.broadcast_to(bias[None, :, None], x.shape))
    (y,) = run("InstanceNormalization", [np.array([[[1, 3]]], kind), scale[:1], bias[1:]], version, epsilon=0.5)
    np.testing.assert_allclose(y.ravel(), 7 + np.array([-4, 4]) / np.sqrt(1.5), 1e-3 if kind == np.float16 else 1e-6)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize(("bias", "lambd"), [(0.5, 0.5), (-1.0, 1.0), (2.5, 1.0), (3.0, -2.0)])
def test_shrink_of_integers_is_exact(kind: str, bias: float, lambd: float) -> None:
    """By fractions; the kernel's float32 makes -2^31 of 2^31 - 1."""
    limits = np.iinfo(kind)
    values = [v for v in (limits.max - 9, limits.max // 3, 7, 5, 1, 0, -1, -7, limits.min + 9) if v >= limits.min]
    (y,) = run("Shrink", [np.array(values, kind)], 9, bias=bias, lambd=lambd)
    wanted = [v + Fraction(bias) if v < -lambd else v - Fraction(bias) if v > lambd else 0 for v in values]
    assert [int(one) for one in y] == [int(one) if int(one) >= limits.min else int(one) % 2**64 % (limits.max + 1)
                                       for one in wanted]  # fmt: skip


def test_shrink_of_doubles_has_their_digits() -> None:
    (y,) = run("Shrink", [np.array([1.0, -1.0, 0.25])], 9, bias=0.125, lambd=0.5)
    assert y.tolist() == [0.875, -0.875, 0]
    x = np.array([1 / 3 + 1])
    (y,) = run("Shrink", [x], 9, bias=0.125)
    assert y.tolist() == (x - 0.125).tolist()


@pytest.mark.parametrize("version", [11, 18])
@pytest.mark.parametrize("sizes", [False, True])
def test_resize_crops_an_axis_whose_length_stays(version: int, sizes: bool) -> None:
    """From 0.75 to 2.25 in four steps: 0.75, 1.25, 1.75, 2.25; the kernel takes all four elements."""
    x, roi = floats(0, 1, 2, 3).reshape(1, 1, 1, 4), floats(0, 0, 0, 0.25, 1, 1, 1, 0.75)
    given = [floats(), ints(1, 1, 1, 4)] if sizes else [floats(1, 1, 1, 1)]
    for mode, wanted in (("nearest", [1, 1, 2, 2]), ("linear", [0.75, 1.25, 1.75, 2.25])):
        (y,) = run("Resize", [x, roi, *given], version, mode=mode,
                   coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
        np.testing.assert_allclose(y.reshape(-1), wanted, 1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("version", [11, 13, 19])
def test_one_element_of_pytorch_half_pixel_is_the_first(kind: Any, mode: str, version: int) -> None:
    """There are kernels of float32 only; onnx's reference takes -0.5 for the place."""
    x = np.array([8, -3, 5, 1], kind).reshape(1, 1, 1, 4)
    (y,) = run("Resize", [x, floats(), floats(1, 1, 2, 0.25)], version, mode=mode,
               coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
    assert y.reshape(-1).tolist() == [8, 8]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_affine_grid_begins_at_minus_one(kind: Any) -> None:
    theta = np.eye(3, 4, dtype=kind)[None]
    (y,) = run("AffineGrid", [theta, ints(1, 1, 1, 2, 3)], 20, align_corners=1)
    assert (y.dtype, y.shape) == (kind, (1, 1, 2, 3, 3))
    assert y[0, 0].tolist() == [[[x, z, -1] for x in (-1, 0, 1)] for z in (-1, 1)]


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("start", [-9, -2, 0, 1, 4])
@pytest.mark.parametrize("end", [None, -9, -1, 0, 2, 9])
def test_axes_of_shape_are_clamped(kind: str, start: int, end: int | None) -> None:
    bfloat = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    more = {"start": start} | ({} if end is None else {"end": end})
    (y,) = run("Shape", [np.zeros((2, 3, 4), bfloat if kind == "bfloat16" else kind)], 21, **more)
    assert y.tolist() == [2, 3, 4][start:end]


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])
def test_statistics_of_layer_normalization_have_their_own_type(kind: str) -> None:
    bfloat = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    x = np.array([[1, 3], [5, 5]]).astype(bfloat if kind == "bfloat16" else kind)
    scale = x[0]
    y, mean, inverse = run("LayerNormalization", [x, scale], 17, 3, epsilon=3.0)
    assert (y.dtype, mean.dtype, inverse.dtype) == (x.dtype, np.float32, np.float32)
    assert mean.ravel().tolist() == [2, 5]
    np.testing.assert_allclose(inverse.ravel(), [0.5, 3**-0.5], 1e-6)
    assert y.astype(np.float64).tolist() == [[-0.5, 1.5], [0, 0]]
