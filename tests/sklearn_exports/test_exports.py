"""What skl2onnx writes of scikit-learn's models, in onnxhw and in onnxruntime: labels equal, and numbers nearly."""

from typing import Any

import numpy as np
import pytest

skl2onnx = pytest.importorskip("skl2onnx")
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("sklearn")

import warnings  # noqa: E402

from skl2onnx.common import data_types  # noqa: E402

from onnxhw import InferenceSession  # noqa: E402
from onnxhw.errors import DeclaredShapeWarning  # noqa: E402
from onnxhw.partition.pipeline import read  # noqa: E402

from .zoo import COLUMNS, CONTRADICTING, MODELS, WITH_SCORES, Model, data  # noqa: E402

RTOL = 1e-6
"""onnxruntime's sums depend on how it was built and on its threads; its own float32 is not surer than this."""
TYPES = {
    "float": (data_types.FloatTensorType, np.float32),
    "double": (data_types.DoubleTensorType, np.float64),
    "int64": (data_types.Int64TensorType, np.int64),
}
FAMILIES = 116


def table(rows: int) -> dict[str, Any]:
    """Columns of numbers and of text, one array each."""
    x = data("classes").x[:rows]
    words = data("strings").x[:rows]
    return {"a": x[:, :1], "b": x[:, 1:2], "c": words[:, :1], "d": words[:, 1:]}


def exported(model: Model) -> tuple[Any, dict[str, Any]]:
    """The trained model as ONNX, and what to feed it."""
    estimator, found = model.make(), data(model.data)
    if model.data == "mixed":
        estimator.fit(np.hstack([column.astype(object) for column in table(len(found.y)).values()]), found.y)
        kinds = {"a": data_types.FloatTensorType, "c": data_types.StringTensorType}
        kinds |= {"b": kinds["a"], "d": kinds["c"]}
        types = [(name, kinds[name]([None, 1])) for name in "abcd"]
        feeds = table(20)
    elif model.data == "strings":
        estimator.fit(found.x, found.y)
        types, feeds = [("x", data_types.StringTensorType([None, found.x.shape[1]]))], {"x": found.test}
    else:
        kind, element = TYPES[model.element]
        estimator.fit(found.x.astype(element), found.y)
        types, feeds = [("x", kind([None, COLUMNS]))], {"x": found.test.astype(element)}
    options = {id(estimator): model.options} if model.options else None
    if model.name in WITH_SCORES:
        options = {id(estimator): {"score_samples": True}}
    return skl2onnx.to_onnx(
        estimator, initial_types=types, options=options, target_opset={"": 18, "ai.onnx.ml": 3}
    ), feeds


def assert_same(found: Any, wanted: Any) -> None:
    """Equal structure, types, text and integers; floats to `RTOL`."""
    assert type(found) is type(wanted)
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        np.testing.assert_allclose([*found.values()], [*wanted.values()], RTOL, RTOL)
    else:
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, RTOL, RTOL)
        else:
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_export_equals_onnxruntime(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx_model, feeds = exported(model)
    content = onnx_model.SerializeToString()
    wanted = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    with InferenceSession(content) as session:
        assert_same(session.run(None, feeds), wanted)


@pytest.mark.parametrize("model", CONTRADICTING, ids=lambda model: model.name)
def test_an_output_of_another_shape_than_declared_is_warned_of(model: Model) -> None:
    """By `check` where inference knows the shape, else in the run that makes the output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx_model, feeds = exported(model)
    content = onnx_model.SerializeToString()
    codes = [one.code for one in read(content).diagnostics]
    with InferenceSession(content) as session:
        if "W3390" in codes:
            session.run(None, feeds)
        else:
            with pytest.warns(DeclaredShapeWarning, match="W3391"):
                session.run(None, feeds)


def test_enough_models_are_exported() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS) >= FAMILIES


@pytest.mark.parametrize(
    "name", ["SVC rbf probability, matrix", "SVC linear probability, matrix", "NuSVC probability, matrix"]
)
def test_probabilities_are_those_of_scikit_learn(name: str) -> None:
    """The pairs of classes are coupled as libsvm couples them; features are the training data, which the export has."""
    model = next(model for model in MODELS if model.name == name)
    found = data(model.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = model.make().fit(found.x, found.y)
        content, feeds = exported(model)
    with InferenceSession(content.SerializeToString()) as session:
        labels, scores = session.run(None, feeds)
    assert np.array_equal(labels, estimator.predict(found.test))
    np.testing.assert_allclose(scores, estimator.predict_proba(found.test), atol=1e-5)
