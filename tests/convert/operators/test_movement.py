"""Operators that move elements: golden = onnxruntime = emulator, on every element."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.errors import InvalidModelError
from onnxhw.ir.graph import Concat, Conv, Copy

S, Z = 0.125, -9


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


MOVES: dict[str, tuple[str, list[Any], dict[str, Any], list[int]]] = {
    "slice of rows": ("Slice", [ints(1), ints(5), ints(2), ints(2)], {}, [1, 6, 8, 7]),
    "slice of both": ("Slice", [ints(2, 1), ints(100, -1), ints(2, 3)], {}, [1, 6, 8, 7]),
    "slice backwards": ("Slice", [ints(-1, -1), ints(-100, -100), ints(2, 3), ints(-1, -2)], {}, [1, 6, 8, 7]),
    "slice of channels": ("Slice", [ints(1), ints(5), ints(1)], {}, [1, 6, 4, 3]),
    "slice of everything": ("Slice", [ints(1, 1, 1), ints(5, 4, 3), ints(1, 2, 3), ints(2, 1, 1)], {}, [1, 6, 4, 3]),
    "gather channels": ("Gather", [ints(3, 0, 0, -1)], {"axis": 1}, [1, 6, 4, 3]),
    "gather rows": ("Gather", [ints(3, 0, 0, -1)], {"axis": 2}, [1, 6, 4, 3]),
    "gather one column": ("Gather", [np.int64(2)], {"axis": 3}, [1, 6, 4, 3]),
    "pad": ("Pad", [ints(0, 0, 1, 2, 0, 0, 3, 0)], {}, [1, 6, 4, 3]),
    "pad channels": ("Pad", [ints(0, 1, 0, 0, 0, 2, 0, 1)], {}, [1, 6, 4, 3]),
    "pad with a constant": ("Pad", [ints(0, 0, 1, 1, 0, 0, 1, 1), np.float32(3 * S)], {}, [1, 6, 4, 3]),
    "pad by reflection": ("Pad", [ints(0, 0, 2, 1, 0, 0, 1, 2)], {"mode": "reflect"}, [1, 6, 4, 5]),
    "pad by the edge": ("Pad", [ints(0, 0, 2, 1, 0, 0, 1, 2)], {"mode": "edge"}, [1, 6, 4, 5]),
    "pad less than nothing": ("Pad", [ints(0, 0, -1, 1, 0, 0, -2, -1)], {}, [1, 6, 6, 5]),
    "tile": ("Tile", [ints(1, 1, 2, 3)], {}, [1, 3, 4, 3]),
    "tile of channels": ("Tile", [ints(1, 2, 1, 2)], {}, [1, 3, 4, 3]),
    "expand": ("Expand", [ints(1, 5, 4, 3)], {}, [1, 5, 1, 1]),
    "expand of a map": ("Expand", [ints(1, 5, 4, 3)], {}, [1, 1, 4, 1]),
    "depth to space": ("DepthToSpace", [], {"blocksize": 2}, [1, 12, 4, 3]),
    "depth to space by columns": ("DepthToSpace", [], {"blocksize": 2, "mode": "CRD"}, [1, 12, 4, 3]),
    "depth to space by three": ("DepthToSpace", [], {"blocksize": 3}, [1, 18, 2, 2]),
    "space to depth": ("SpaceToDepth", [], {"blocksize": 2}, [1, 3, 4, 6]),
    "of one dimension": ("Slice", [ints(1), ints(9), ints(2), ints(3)], {}, [1, 6, 12]),
    "of a vector": ("Slice", [ints(1), ints(19), ints(1), ints(3)], {}, [1, 24]),
}


@pytest.mark.parametrize("case", MOVES)
def test_movements(case: str, models: Any, check: Any) -> None:
    op_type, constants, attributes, shape = MOVES[case]
    for unsigned in (False, True):
        model = models(unsigned)
        x = model.input(shape, S, Z + 128 * unsigned)
        y = model.node(op_type, x, *map(model.const, constants), **attributes)
        rank = len(shape) - (case == "gather one column")
        check(model.output(model.requantize(y, S, Z + 128 * unsigned), rank))


@pytest.mark.parametrize("case", ["slice of both", "gather channels", "tile", "pad by the edge"])
@pytest.mark.parametrize("unsigned", [False, True])
def test_movements_of_integers(case: str, unsigned: bool, models: Any, check: Any) -> None:
    op_type, constants, attributes, shape = MOVES[case]
    model = models(unsigned)
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    y = model.node(op_type, model.q("x", S, 3), *map(model.const, constants), **attributes)
    check(model.output(model.dq(y, S, 3)))


@pytest.mark.parametrize("unsigned", [False, True])
def test_pad_of_integers(unsigned: bool, models: Any, check: Any) -> None:
    model = models(unsigned)
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4]))
    pads, constant = model.const(ints(0, 0, 1, 0, 0, 0, 0, 2)), model.const(model.dtype(77))
    y = model.node("Pad", model.q("x", S, 3), pads, constant)
    graph = check(model.output(model.dq(y, S, 3)))
    assert graph.ops[0].fill == 77 - 128 * unsigned


def conv(model: Any, x: str, inputs: int, outputs: int) -> str:
    random = np.random.default_rng(3)
    weight = random.integers(-20, 21, (outputs, inputs, 1, 1)).astype(np.int8)
    return str(model.node("Conv", x, model.constant(weight, np.float32(0.125), np.int8(0))))


def test_movements_between_an_operation_and_its_quantization(model: Any, check: Any) -> None:
    x = model.input([1, 4, 4, 6], S, Z)
    y = model.node("Slice", conv(model, x, 4, 8), model.const(ints(1)), model.const(ints(7)), model.const(ints(1)))
    y = model.node("Relu", model.node("Pad", y, model.const(ints(0, 0, 0, 1, 0, 0, 1, 0)), model.const(np.float32(-1))))
    graph = check(
        model.output(
            model.requantize(
                model.node(
                    "DepthToSpace", model.node("Slice", y, *map(model.const, (ints(0), ints(4), ints(1)))), blocksize=2
                ),
                0.5,
                -100,
            )
        )
    )
    assert isinstance(graph.ops[0], Conv)
    assert graph.ops[0].lo == -100


def test_split_gives_a_value_per_output(model: Any, check: Any) -> None:
    x = model.input([1, 7, 4, 3], S, Z)
    sizes = model.const(ints(2, 1, 4))
    model.nodes.append(helper.make_node("Split", [x, sizes], ["a", "b", "c"], name="split", axis=1))
    joined = model.node("Concat", "c", "a", "b", axis=1)
    check(model.output(model.requantize(joined, S, Z)))


@pytest.mark.parametrize(("axis", "shapes"), [(2, [(2, 5), (3, 5), (1, 5)]), (3, [(4, 1), (4, 6)]), (-2, [(2, 2)] * 2)])
def test_concat_of_planes(axis: int, shapes: list[tuple[int, int]], model: Any, check: Any) -> None:
    parts = [model.requantize(model.input([1, 5, *shape], S, Z, name=f"x{n}"), S, Z) for n, shape in enumerate(shapes)]
    graph = check(model.output(model.requantize(model.node("Concat", *parts, axis=axis), S, Z)))
    assert [type(op) for op in graph.ops] == [Copy]


def test_concat_of_planes_of_different_scales(model: Any, check: Any) -> None:
    parts = [model.input([1, 3, 2, 4], S, Z, name="a"), model.input([1, 3, 5, 4], 2 * S, 7, name="b")]
    check(model.output(model.requantize(model.node("Concat", *parts, axis=2), 4 * S, 1)))


ADDED: list[tuple[int, list[tuple[int, int, int]]]] = [
    (1, [(2, 4, 3), (9, 4, 3)]), (2, [(5, 2, 3), (5, 1, 3)]), (3, [(5, 4, 1)])
]  # fmt: skip


@pytest.mark.parametrize(("axis", "shapes"), ADDED)
@pytest.mark.parametrize("quantized", [False, True])
def test_concat_of_zeros(
    axis: int, shapes: list[tuple[int, int, int]], quantized: bool, model: Any, check: Any
) -> None:
    """Padding as a Concat: the constants come in floats, or as a quantizer has them, on a grid of their own."""
    zeros = [np.zeros((1, *shape), np.float32) for shape in shapes]
    names = [
        model.constant(np.full(each.shape, 3, np.int8), np.float32(0.7), np.int8(3)) if quantized else model.const(each)
        for each in zeros
    ]
    x = model.requantize(model.input([1, 5, 4, 3], S, Z), S, Z)
    graph = check(model.output(model.requantize(model.node("Concat", names[0], x, *names[1:], axis=axis), S, Z)))
    assert len(graph.ops) == 1


def test_concat_of_several_and_zeros(model: Any, check: Any) -> None:
    a, b = (model.input([1, 3, 2, 4], scale, Z, name=name) for name, scale in (("a", S), ("b", 2 * S)))
    between, behind = (model.const(np.zeros((1, 3, rows, 4), np.float32)) for rows in (1, 2))
    check(model.output(model.requantize(model.node("Concat", a, between, b, behind, axis=2), 4 * S, 1)))


@pytest.mark.parametrize("numbers", [[0, 1], [0.0301]])
def test_concat_of_other_constants(numbers: list[float], model: Any) -> None:
    """Of several numbers, and of one that is not on the operand's grid."""
    more = model.const(np.array(numbers, np.float32).reshape(1, -1, 1, 1))
    x = model.requantize(model.input([1, 5, 1, 1], S, Z), S, Z)
    with pytest.raises(UnsupportedNodesError, match="constant"):
        model.output(model.requantize(model.node("Concat", x, more, axis=1), S, Z)).load()


@pytest.mark.parametrize("op_type", ["Expand", "Tile"])
def test_sizes_that_are_computed_before_opset_13(op_type: str, models: Any, check: Any) -> None:
    """``expand_as`` of squeeze-and-excite: onnx's inference does not see the size of what is made."""
    model = models(opset=12)
    x, gate = model.input([1, 5, 4, 3], S, Z, name="x"), model.input([1, 5, 1, 1], S, Z, name="gate")
    size = model.node("Shape", x)
    if op_type == "Tile":  # one and one and the rows and columns
        size = model.node("Div", size, model.const(ints(1, 5, 1, 1)))
    wide = model.requantize(model.node(op_type, gate, size), S, Z)
    check(model.output(model.requantize(model.node("Mul", x, wide), S, Z)))


def test_channel_shuffle(model: Any, check: Any) -> None:
    x = model.input([1, 12, 4, 3], S, Z)
    y = model.node("Reshape", x, model.const(ints(1, 3, 4, 4, 3)))
    y = model.node("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = model.requantize(model.node("Reshape", y, model.const(ints(1, 12, 4, 3))), S, Z)
    graph = check(model.output(model.requantize(conv(model, y, 12, 5), 1.0, 3)))
    assert [type(op) for op in graph.ops] == [Conv, Conv]


def test_transpose_of_rows_and_columns_inside_the_network(model: Any, check: Any) -> None:
    x = model.input([1, 6, 4, 3], S, Z)
    y = model.requantize(model.node("Transpose", x, perm=[0, 1, 3, 2]), S, Z)
    graph = check(model.output(model.requantize(conv(model, y, 6, 5), 1.0, 3)))
    assert [type(op) for op in graph.ops] == [Copy, Conv]


def test_flatten_inside_the_network(model: Any, check: Any) -> None:
    x = model.input([1, 6, 2, 3], S, Z)
    parts = [model.node("Flatten", x), model.input([1, 5], S, Z, name="more")]
    graph = check(model.output(model.requantize(model.node("Concat", *parts, axis=1), S, Z), 2))
    assert {type(op) for op in graph.ops} == {Copy, Concat, Conv}


def test_reshape_of_a_vector_to_planes(model: Any, check: Any) -> None:
    x = model.input([1, 24], S, Z)
    y = model.requantize(model.node("Reshape", x, model.const(ints(1, 6, 2, 2))), S, Z)
    check(model.output(model.requantize(conv(model, y, 6, 5), 1.0, 3)))


RESIZES: dict[str, tuple[list[float], list[int], dict[str, Any]]] = {
    "twice": ([1, 1, 2, 2], [], {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    "twice and thrice": ([1, 1, 2, 3], [], {}),
    "half": ([1, 1, 0.5, 0.5], [], {}),
    "by sizes": ([], [1, 3, 8, 9], {"coordinate_transformation_mode": "pytorch_half_pixel"}),
    "corners": ([], [1, 3, 7, 9], {"coordinate_transformation_mode": "align_corners", "nearest_mode": "ceil"}),
    "symmetric": ([1, 1, 1.5, 1.5], [], {"coordinate_transformation_mode": "half_pixel_symmetric"}),
    "prefer ceil": ([1, 1, 2.5, 1.5], [], {"nearest_mode": "round_prefer_ceil"}),
}


@pytest.mark.parametrize("case", RESIZES)
def test_resize_to_the_nearest(case: str, models: Any, check: Any) -> None:
    scales, sizes, attributes = RESIZES[case]
    model = models(opset=19 if case == "symmetric" else 17)
    x = model.input([1, 3, 4, 6], S, Z)
    names = [model.const(np.array(scales, np.float32)) if scales else "", model.const(ints(*sizes)) if sizes else ""]
    y = model.node("Resize", x, "", *names, mode="nearest", **attributes)
    check(model.output(model.requantize(y, S, Z)))


def test_large_planes_are_resized(models: Any) -> None:
    """More elements than a movement may have that is looked at element by element."""
    model = models()
    x = model.requantize(model.node("MaxPool", model.input([1, 64, 160, 160], S, Z), kernel_shape=[1, 1]), S, Z)
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    y = model.node("Resize", x, "", model.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", **modes)
    *_, copy = model.output(model.requantize(y, S, Z)).load().ops
    assert [(piece.rows, piece.cols) for piece in copy.pieces] == [(160, 160)] * 4


def test_resize_of_operator_set_10(models: Any) -> None:
    scales = np.array([1, 1, 2, 3], np.float32)
    new, old = models(opset=13), models(opset=10)
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    y = new.node("Resize", new.input([1, 3, 4, 6], S, Z), "", new.const(scales), mode="nearest", **modes)
    wanted = new.output(new.requantize(y, S, Z)).load().ops[0]
    y = old.node("Resize", old.input([1, 3, 4, 6], S, Z), old.const(scales), mode="nearest")
    assert old.output(old.requantize(y, S, Z)).load().ops[0].pieces == wanted.pieces


REFUSED: dict[str, tuple[str, list[Any], dict[str, Any], str]] = {
    "cubic": ("Resize", ["", np.array([1, 1, 2, 2], np.float32)], {"mode": "cubic"}, "cubic computes new values"),
    "constant": ("Pad", [ints(0, 0, 1, 0, 0, 0, 0, 0), np.float32(0.3)], {}, "the constant 0.3 is not a value of"),
    "mixed": ("Reshape", [ints(1, 3, 10, 12)], {}, "it mixes channels and pixels"),
    "transposed": ("Transpose", [], {"perm": [0, 2, 1, 3]}, "it mixes channels and pixels"),
    "irregular": ("Gather", [np.random.default_rng(5).permutation(200)], {"axis": 3}, "do not move in at most 64"),
    "tie": ("Resize", ["", "", ints(1, 10, 5, 5)], {"mode": "nearest"}, "rounding decides which pixel is nearest"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_stays_on_the_host_says_why(case: str, model: Any) -> None:
    op_type, constants, attributes, reason = REFUSED[case]
    x = model.input([1, 3, 6, 200] if case == "irregular" else [1, 10, 6, 6], S, Z)
    x = model.requantize(model.node("MaxPool", x, kernel_shape=[1, 1]), S, Z)  # inputs are loaded as wanted
    names = [model.const(array) if not isinstance(array, str) else "" for array in constants]
    y = model.requantize(model.node(op_type, x, *names, **attributes), S, Z)
    channels = {"mixed": 3, "irregular": 3, "transposed": 6}.get(case, 10)
    y = model.requantize(conv(model, y, channels, 4), 1.0)
    with pytest.raises(UnsupportedNodesError, match=reason):
        model.output(y).load()


def test_a_result_without_elements_is_not_made(model: Any) -> None:
    """One of its sizes is 0, so another may be anything."""
    x = model.input([1, 3, 2, 2], S, Z)
    y = model.node("Resize", x, "", model.const(np.array([1, 0.25, 1e10, 1], np.float32)), mode="nearest")
    with pytest.raises(UnsupportedNodesError, match="has no elements"):
        model.output(model.requantize(y, S, Z)).load()


def test_a_reshape_that_the_model_declares_with_another_number_of_elements(model: Any) -> None:
    """Nothing infers its shape: it is asked for by an input."""
    model.inputs.append(helper.make_tensor_value_info("asked", TensorProto.INT64, [1]))
    x = model.requantize(model.const(np.arange(3, dtype=np.float32)), S, Z)
    y = model.node("Reshape", x, "asked")
    model.outputs.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, [24]))
    with pytest.raises(InvalidModelError, match=r"E3400 .*has 3 elements"):
        model.load()
