"""What the hardware does not run, the host runs, or it is refused by name: every operator of every version."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import defs, parser

from onnxhw.errors import InvalidModelError, UnsupportedError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.hostops.single_node import implemented
from onnxhw.onnxmodel.specification.signatures import canonical
from onnxhw.partition import read, refuse
from onnxhw.partition.refusals import DOMAINS, RUN
from onnxhw.runtime.session import InferenceSession

Array = npt.NDArray[Any]
X = np.float32([1, 2, 3])


def text(body: str, opset: int = 17, more: str = "") -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}{more}]> {body}')


def test_every_operator_of_onnx_is_implemented_or_refused_by_name() -> None:
    """Each version of each operator of onnx's own domains that is not deprecated."""
    missing = [
        f"{schema.domain}.{schema.name}-{schema.since_version}"
        for schema in defs.get_all_schemas_with_history()
        if not schema.deprecated
        and not (schema.domain in DOMAINS and schema.name not in RUN)
        and not implemented(canonical(schema.domain), schema.name, schema.since_version)
    ]
    assert missing == []


def expected_roi(x: Array, roi: Array, grid: tuple[int, int], scale: float) -> Array:
    """One region, cell by cell, in rational steps: the definition."""
    left, top, right, bottom = (int(np.floor(value * scale + 0.5)) for value in roi[1:])
    made = np.zeros((x.shape[1], *grid), np.float32)
    for row in range(grid[0]):
        for column in range(grid[1]):
            height, width = bottom - top + 1, right - left + 1
            up, down = top + row * height // grid[0], top - (-(row + 1) * height // grid[0])
            start, end = left + column * width // grid[1], left - (-(column + 1) * width // grid[1])
            cell = x[int(roi[0]), :, max(up, 0) : max(down, 0), max(start, 0) : max(end, 0)]
            made[:, row, column] = cell.max((1, 2)) if cell.size else 0
    return made


@pytest.mark.parametrize("opset", [7, 22])
@pytest.mark.parametrize(("grid", "scale"), [((2, 2), 1.0), ((3, 1), 0.5), ((1, 4), 2.0)])
def test_maximum_of_regions(opset: int, grid: tuple[int, int], scale: float) -> None:
    body = f"""g (float[2,3,8,9] x, float[4,5] r) => (float[4,3,{grid[0]},{grid[1]}] y)
        {{ y = MaxRoiPool <pooled_shape = [{grid[0]}, {grid[1]}], spatial_scale = {scale}> (x, r) }}"""
    x = np.random.default_rng(1).normal(0, 1, (2, 3, 8, 9)).astype(np.float32)
    rois = np.float32([[0, 0, 0, 3, 3], [1, 2, 1, 6, 7], [1, 5, 5, 30, 30], [0, 20, 20, 22, 22]])
    (made,) = InferenceSession(text(body, opset).SerializeToString()).run(None, {"x": x, "r": rois})
    np.testing.assert_array_equal(made, np.stack([expected_roi(x, roi, grid, scale) for roi in rois]))


def test_a_region_of_no_image() -> None:
    body = "g (float[1,1,4,4] x, float[1,5] r) => (float[1,1,1,1] y) { y = MaxRoiPool <pooled_shape = [1, 1]> (x, r) }"
    feeds = {"x": np.ones((1, 1, 4, 4), np.float32), "r": np.float32([[3, 0, 0, 1, 1]])}
    with pytest.raises(UnsupportedError, match="E475"):
        InferenceSession(text(body).SerializeToString()).run(None, feeds)


def test_multinomial() -> None:
    """Classes come as often as their probabilities say, those of probability 0 never; a seed repeats them."""
    chances = np.array([[0.2, 0.3, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        x = (np.log(chances) + 3).astype(np.float32)
    body = "g (float[2,4] x) => ({}[2,4000] y) {{ y = Multinomial <sample_size = 4000, dtype = {}, seed = {}> (x) }}"
    first, again, other = (
        evaluate(text(body.format(kind, code, seed)), {"x": x})["y"]
        for kind, code, seed in (("int64", 7, 1.0), ("int32", 6, 1.0), ("int64", 7, 2.5))
    )
    assert (first.dtype, again.dtype) == (np.int64, np.int32)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    for row, wanted in zip(first, chances, strict=True):
        found = np.bincount(row, minlength=4) / 4000
        assert np.abs(found - wanted).max() < 0.04  # five standard deviations
        assert not found[wanted == 0].any()


@pytest.mark.parametrize("form", ["attribute", "input", "equal"])
def test_split_of_the_first_operator_set(form: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    sizes = [2, 2] if form == "equal" else [1, 3]
    given = f", split = {sizes}" if form == "attribute" else ""
    extra, operand = (", float[2] s", ", s") if form == "input" else ("", "")
    body = f"""g (float[4,3] x{extra}) => (float[{sizes[0]},3] y, float[{sizes[1]},3] z)
        {{ y, z = Split <axis = 0{given}> (x{operand}) }}"""
    feeds = {"x": x} | ({"s": np.float32(sizes)} if form == "input" else {})
    session = InferenceSession(text(body, 1).SerializeToString())
    for made, wanted in zip(session.run(None, feeds), np.split(x, [sizes[0]]), strict=True):
        np.testing.assert_array_equal(made, wanted)


REFUSED = [
    ('g (float[3] x) => (float[3] d) { z = Mul(x, x) d = ai.onnx.preview.training.Gradient <xs = ["x"], y = "z"> (x) }',
     "ai.onnx.preview.training", "step of training"),
    ("g (float[1,8,4,4] x) => (float[1,8,4,4] d) { d = com.microsoft.nchwc.ReorderOutput <channels = 8> (x) }",
     "com.microsoft.nchwc", "processor on which onnxruntime saved"),
    ("""g (float[1,8,4,4] x, bool c) => (float[1,8,4,4] d) { d = If (c) <then_branch = a () => (float[1,8,4,4] t)
        { t = com.microsoft.nchwc.ReorderOutput <channels = 8> (x) },
        else_branch = b () => (float[1,8,4,4] e) { e = Neg(x) }> }""",
     "com.microsoft.nchwc", "operator 'ReorderOutput' in it"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "domain", "reason"), REFUSED, ids=["gradient", "nchwc", "nested"])
def test_what_is_refused_by_name_is_refused_before_it_runs(body: str, domain: str, reason: str) -> None:
    proto = text(body, more=f', "{domain}" : 1')
    with pytest.raises(UnsupportedError, match=f"E4401.*(?s:.)*{reason}"):
        refuse(read(proto))
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    feeds = {name: np.ones(shape, bool if name == "c" else np.float32) for name, shape in shapes.items()}
    with pytest.raises(UnsupportedError, match="E4401"):
        InferenceSession(proto.SerializeToString()).run(None, feeds)


def test_a_deprecated_operator_says_what_came_in_its_place() -> None:
    body = "g (float[3] x, int64[1] i, float[1] u) => (float[3] y) { y = Scatter (x, i, u) }"
    with pytest.raises(InvalidModelError, match=r"E3331(?s:.)*ScatterElements"):
        read(text(body, 11))
    feeds = {"x": X, "i": np.int64([1]), "u": np.float32([9])}
    (made,) = InferenceSession(text(body, 10).SerializeToString()).run(None, feeds)
    assert made.tolist() == [1, 9, 3]
