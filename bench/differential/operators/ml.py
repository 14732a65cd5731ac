"""ai.onnx.ml without its trees."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..draw import Draw
from ..values import dtype
from .elementwise import code

POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
NAMES = ["a", "B", "né", ""]


def matrix(d: Draw, variable: str, columns: int, style: str = "plain", row: bool = True) -> Any:
    """A matrix of rows of features, or one row."""
    rank = d.choose("rank", ["2-D", "no rows", *(["1-D"] if row else [])])
    shape = {"2-D": (d.integer(1, 4), columns), "1-D": (columns,), "no rows": (0, columns)}[rank]
    return d.x(d.array(variable, shape, style))


def labels(d: Draw, count: int) -> None:
    """Class labels: integers, not in order, or text."""
    if d.choose("labels", ["integers", "strings"]) == "integers":
        d.attributes["classlabels_ints"] = [5, -1, 7, 2, 0][:count]
        d.fix("T2", "int64")
    else:
        d.fix("T2", "string")
        d.attributes["classlabels_strings"] = ["b", "a", "né", "", "z"][:count]


def extract(d: Draw) -> None:
    shape = d.shape(1, 3, empty=False)
    d.x(d.array("T", shape))
    d.ints([d.integer(0, shape[-1] - 1) for _ in range(d.integer(1, 4))])


def binarizer(d: Draw) -> None:
    d.attr("threshold", [0.0, 1.0, -0.5, 2.5])
    d.x(d.array("T", d.shape()))


def mapping(d: Draw, key: str, value: str) -> Any:
    """A map as an operand."""
    kind = onnx.TypeProto()
    kind.map_type.key_type = code(key)
    kind.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(code(value), None))
    keys = [
        k for k in (["a", "B", "x", "né"] if key == "string" else [0, 1, 3, 7]) if d.rng.random() < 0.7 or k in ("x", 7)
    ]
    values: dict[str, list[Any]] = {
        "string": ["1.5", "-2", "0", "7"],
        "float": [1.5, -2.0, 0.0, 7.25],
        "double": [1.5, -2.0, 0.0, 1e300],
        "int64": [1, -2, 0, 2**40],
    }
    d.feed(kind, {k: d.pick(values[value]) for k in keys})
    return keys


def _map_type(d: Draw) -> tuple[str, str]:
    """The types of keys and values: "map(int64, string)" in a schema."""
    text = d.choose("T1", d.operator.types["T1"])
    key, value = text.removeprefix("map(").replace("tensor(", "").replace(")", "").split(",")
    return key.strip(), value.strip()


def cast_map(d: Draw) -> None:
    _, value = _map_type(d)
    mapping(d, "int64", value)
    d.attr("cast_to", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
    if d.attr("map_form", ["DENSE", "SPARSE"]) in ("SPARSE",):
        d.attributes["max_map"] = 10


def mapper(d: Draw) -> None:
    d.attributes["cats_strings"] = ["a", "B", "né"]
    d.attributes["cats_int64s"] = [1, 5, 7]
    text = d.type("T1") == "string"
    d.attr("default_int64", [-1, 9])
    d.attr("default_string", ["_Unused", "?"])
    shape = d.shape()
    d.x(d.of("string", shape) if text else d.rng.integers(0, 9, shape))


def dictionary(d: Draw) -> None:
    key, value = _map_type(d)
    mapping(d, key, value)
    if key == "string":
        d.attributes["string_vocabulary"] = ["x", "a", "q"]
    else:
        d.attributes["int64_vocabulary"] = [3, 0, 9]


def features(d: Draw) -> None:
    sizes = []
    rank = d.choose("rank", ["2-D", "1-D"])
    rows = d.integer(1, 3)
    for _ in range(d.choose("operands", [1, 2, 3])):
        size = d.integer(1, 3)
        sizes.append(size)
        d.x(d.array("T1", (size,) if rank == "1-D" else (rows, size)), False)
    d.attributes["inputdimensions"] = sizes


def imputer(d: Draw) -> None:
    columns = d.integer(1, 4)
    whole = d.type("T").startswith("int")
    each = d.choose("values of", ["all features", "each feature"])
    count = 1 if each == "all features" else columns
    replaced: Any
    if whole:
        d.attributes["imputed_value_int64s"] = [d.integer(-5, 5) for _ in range(count)]
        replaced = d.attr("replaced_value_int64", [0, 7])
    else:
        d.attributes["imputed_value_floats"] = [float(d.integer(-5, 5)) / 2 for _ in range(count)]
        replaced = d.attr("replaced_value_float", [0.0, 1.5, float("nan")])
    x = d.array("T", (d.integer(1, 4), columns), "plain")
    d.x(np.where(d.rng.random(x.shape) < 0.4, np.asarray(replaced, x.dtype), x))


def encoder(d: Draw) -> None:
    if d.since == 1:
        text = d.type("T1") == "string"
        d.attributes["classes_strings"] = ["a", "B", "né"]
        d.attr("default_int64", [-1, 9])
        d.attr("default_string", ["_Unused", "?"])
        shape = d.shape()
        d.x(d.of("string", shape) if text else d.rng.integers(0, 5, shape))
        return
    source, target = d.type("T1"), d.type("T2")
    keys: dict[str, list[Any]] = {
        "string": ["a", "B", "né"],
        "int64": [1, -5, 7],
        "float": [1.0, -0.5, float("nan")],
        "double": [1.0, -0.5, float("nan")],
        "int32": [1, -5, 7],
        "int16": [1, -5, 7],
    }
    values: dict[str, list[Any]] = {
        "string": ["x", "", "né"],
        "int64": [2, 2**40, -3],
        "float": [0.5, -1.0, 2.0],
        "double": [0.5, 1e300, -2.0],
        "int32": [2, 9, -3],
        "int16": [2, 9, -3],
    }
    plain = ("string", "int64", "float")
    tensors = d.since >= 4 and (source not in plain or target not in plain or d.maybe("tensors"))
    suffix = {"string": "strings", "int64": "int64s", "float": "floats"}
    if tensors:
        d.attributes["keys_tensor"] = _tensor(source, keys[source])
        d.attributes["values_tensor"] = _tensor(target, values[target])
        if d.maybe("default_tensor"):
            d.attributes["default_tensor"] = _tensor(target, [values[target][0]])
    else:
        d.attributes[f"keys_{suffix[source]}"] = keys[source]
        d.attributes[f"values_{suffix[target]}"] = values[target]
        if d.maybe("default"):
            default = {
                "string": ("default_string", "?"),
                "int64": ("default_int64", 77),
                "float": ("default_float", 1.25),
            }
            name, value = default[target]
            d.attributes[name] = value
    shape = d.shape()
    options = [*keys[source], {"string": "zz", "int64": 12, "float": 3.0, "double": 3.0}.get(source, 12)]
    x = np.array([d.pick(options) for _ in range(int(np.prod(shape)))], dtype(source)).reshape(shape)
    d.x(x)


def _tensor(element: str, values: list[Any]) -> onnx.TensorProto:
    if element == "string":
        return helper.make_tensor("t", TensorProto.STRING, [len(values)], [v.encode() for v in values])
    return numpy_helper.from_array(np.array(values, dtype(element)), "t")


def classifier(d: Draw) -> None:
    columns, count = d.integer(1, 4), d.choose("classes", [2, 3, 5])
    labels(d, count)
    d.attr("post_transform", POST)
    d.attr("multi_class", [0, 1])
    rows = d.choose("rows", [count, 1] if count == 2 else [count])
    d.attributes["coefficients"] = [float(v) for v in d.rng.standard_normal(rows * columns).astype(np.float32)]
    if d.maybe("intercepts"):
        d.attributes["intercepts"] = [float(v) for v in d.rng.standard_normal(rows).astype(np.float32)]
    matrix(d, "T1", columns)
    d.outputs = 2


def regressor(d: Draw) -> None:
    columns, targets = d.integer(1, 4), d.choose("targets", [1, 2, 3])
    if targets > 1 or d.maybe("targets given"):
        d.attributes["targets"] = targets
    d.attr("post_transform", POST)
    d.attributes["coefficients"] = [float(v) for v in d.rng.standard_normal(targets * columns).astype(np.float32)]
    if d.maybe("intercepts"):
        d.attributes["intercepts"] = [float(v) for v in d.rng.standard_normal(targets).astype(np.float32)]
    matrix(d, "T", columns)


def normed(d: Draw) -> None:
    d.attr("norm", ["MAX", "L1", "L2"])
    matrix(d, "T", d.integer(1, 4), d.choose("values", ["plain", "ties"]))


def one_hot(d: Draw) -> None:
    d.attr("zeros", [0, 1])
    text = d.type("T") == "string"
    shape = d.shape()
    if text:
        d.attributes["cats_strings"] = ["a", "B", "né"]
        x = np.array([d.pick(["a", "B", "né"]) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    else:
        d.attributes["cats_int64s"] = [1, 5, 7]
        x = np.array([d.pick([1, 5, 7]) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(dtype(d.type("T")))
    if d.attributes.get("zeros", 1) and x.size and d.maybe("unknown category"):
        x.reshape(-1)[0] = "zz" if text else 9
    d.x(x)


def scaler(d: Draw) -> None:
    columns = d.integer(1, 4)
    count = 1 if d.choose("values of", ["all features", "each feature"]) == "all features" else columns
    d.attributes["offset"] = [float(d.integer(-3, 3)) / 2 for _ in range(count)]
    d.attributes["scale"] = [float(d.integer(1, 5)) / 4 for _ in range(count)]
    matrix(d, "T", columns)


def zip_map(d: Draw) -> None:
    count = d.integer(1, 4)
    if d.choose("labels", ["integers", "strings"]) == "integers":
        d.attributes["classlabels_int64s"] = [5, -1, 7, 2][:count]
    else:
        d.attributes["classlabels_strings"] = NAMES[:count]
    d.x(d.of("float", (d.integer(1, 3), count), "plain"))


def _kernel(d: Draw, columns: int) -> None:
    d.attr("kernel_type", ["LINEAR", "POLY", "RBF", "SIGMOID"])
    d.attributes["kernel_params"] = [0.5, 0.25, 3.0]


def _floats(d: Draw, count: int) -> list[float]:
    return [float(v) for v in d.rng.standard_normal(count).astype(np.float32)]


def svm_classifier(d: Draw) -> None:
    columns, count = d.integer(1, 3), d.choose("classes", [2, 3, 4])
    labels(d, count)
    _kernel(d, columns)
    d.attr("post_transform", POST)
    per = [d.integer(1, 3) for _ in range(count)]
    vectors = sum(per)
    pairs = count * (count - 1) // 2
    d.attributes["vectors_per_class"] = per
    d.attributes["support_vectors"] = _floats(d, vectors * columns)
    d.attributes["coefficients"] = _floats(d, vectors * (count - 1))
    d.attributes["rho"] = _floats(d, pairs)
    if d.maybe("probabilities"):
        d.attributes["prob_a"] = [-abs(v) - 0.5 for v in _floats(d, pairs)]
        d.attributes["prob_b"] = _floats(d, pairs)
    matrix(d, "T1", columns)
    d.outputs = 2


def svm_regressor(d: Draw) -> None:
    columns, vectors = d.integer(1, 3), d.integer(1, 4)
    _kernel(d, columns)
    d.attr("post_transform", ["NONE"])
    d.attr("one_class", [0, 1])
    d.attributes.update(
        n_supports=vectors,
        support_vectors=_floats(d, vectors * columns),
        rho=_floats(d, 1),
        coefficients=_floats(d, vectors),
    )
    matrix(d, "T", columns)


GENERATORS = {
    "ArrayFeatureExtractor": extract,
    "Binarizer": binarizer,
    "CastMap": cast_map,
    "CategoryMapper": mapper,
    "DictVectorizer": dictionary,
    "FeatureVectorizer": features,
    "Imputer": imputer,
    "LabelEncoder": encoder,
    "LinearClassifier": classifier,
    "LinearRegressor": regressor,
    "Normalizer": normed,
    "OneHotEncoder": one_hot,
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
    "Scaler": scaler,
    "ZipMap": zip_map,
}
