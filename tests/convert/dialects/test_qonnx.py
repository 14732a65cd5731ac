"""QONNX operators: golden equals the formula of the host's own operators wherever a table or the host rounds.

Behind a convolution the requantizer rounds; there golden equals the QDQ form of the model.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.errors import InvalidModelError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.graph import Conv, Table
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.partition import read
from onnxhw.runtime.session import InferenceSession

DOMAINS = ["qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas"]
RANDOM = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
F = np.float32
Floats = npt.NDArray[np.float32]


def quant(model: Any, x: Any, scale: Any, zero: Any, bits: int, domain: str = DOMAINS[0], **more: Any) -> str:
    operands = [x, np.asarray(scale, F), np.asarray(zero, F), np.asarray(bits, F)]
    return str(model.node("Quant", *operands, domain=domain, **{"signed": 1, "narrow": 0, **more}))


def same(model: Any, feeds: dict[str, Floats]) -> Any:
    """Golden equals the host's formula; returns the graph."""
    (ours,) = model.golden(feeds)
    (wanted,) = evaluate(model.proto(), feeds).values()
    assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(ours, wanted)
    return model.load()


def around(rng: Any, scale: float, zero: float, count: int = 512) -> Floats:
    """Reals at, near and between the grid's points, and beyond its ends."""
    steps = rng.integers(-300, 300, count) + rng.choice([0, 0.5, 0.499999, 0.25, 0.75], count)
    x = ((steps - zero) * scale).astype(F)
    x[:4] = [3e38, -3e38, 0, -0.0]
    return np.asarray(x.reshape(1, 8, 8, count // 64))


MODES = ["ROUND", "round", "HALF_EVEN", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN"]


@RANDOM
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 8), st.booleans(), st.booleans(), st.sampled_from(MODES),
    st.sampled_from(DOMAINS), st.sampled_from([0.125, 0.0731, 0.5]), st.integers(-3, 3),
)  # fmt: skip
def test_quant_behind_quant_is_a_table_in_any_rounding(
    nodes: Any, seed: int, bits: int, signed: bool, narrow: bool, mode: str, domain: str, scale: float, zero: int
) -> None:
    rng = np.random.default_rng(seed)
    if bits == 1:  # one narrow unsigned bit is the constant 0; one signed bit has no zero point
        narrow, zero = False, 0
    zero = abs(zero) if not signed else zero
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 8, 8, 8])
    x = quant(model, "x", 0.0625, 0, 8, domain)
    y = quant(model, x, scale, zero, bits, domain, signed=int(signed), narrow=int(narrow), rounding_mode=mode)
    graph = same(model.output(y, F), {"x": around(rng, 0.0625, 0)})
    assert [type(op) for op in graph.ops] == [Table]


@RANDOM
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 8), st.booleans(), st.booleans(),
    st.sampled_from([0.125, 0.0731]), st.integers(-3, 3), st.sampled_from(["ROUND", "FLOOR", "CEIL"]),
)  # fmt: skip
def test_quant_of_the_input_adds_the_zero_point_before_it_rounds(
    nodes: Any, seed: int, bits: int, signed: bool, narrow: bool, scale: float, zero: int, mode: str
) -> None:
    zero = abs(zero) if not signed else zero
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 8, 8, 8])
    y = quant(model, "x", scale, zero, bits, signed=int(signed), narrow=int(narrow), rounding_mode=mode)
    y = model.node("MaxPool", y, kernel_shape=[2, 2])
    same(model.output(y, F), {"x": around(np.random.default_rng(seed), scale, zero)})


def test_the_zero_point_before_rounding_is_what_differs_from_quantize_linear(nodes: Any) -> None:
    """1.5 steps with zero point 1: round(1.5 + 1) = 2, but round(1.5) + 1 = 3."""
    found = []
    for form in ("Quant", "QuantizeLinear"):
        model = nodes(17, dict.fromkeys(DOMAINS, 1))
        model.input("x", F, [1, 1, 1, 2])
        if form == "Quant":
            y = quant(model, "x", 1, 1, 8)
        else:
            q = model.node("QuantizeLinear", "x", F(1), np.int8(1))
            y = model.node("DequantizeLinear", q, F(1), np.int8(1))
        model.output(model.node("MaxPool", y, kernel_shape=[1, 1]), F)
        found.append(model.golden({"x": np.array([1.5, 2.5], F).reshape(1, 1, 1, 2)})[0].ravel().tolist())
    assert found == [[1.0, 3.0], [2.0, 2.0]]


def convolution(nodes: Any, dialect: str, per_channel: bool, bits: int, zero: int) -> Any:
    """The same quantized convolution in both dialects; per channel or per tensor."""
    rng = np.random.default_rng(bits)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    q = rng.integers(low, high + 1, (6, 3, 3, 3))
    ws = (rng.uniform(0.01, 0.02, 6) if per_channel else np.array(0.015)).astype(F)
    spread = ws.reshape(-1, 1, 1, 1) if per_channel else ws
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 3, 6, 6])
    if dialect == "qonnx":
        x = quant(model, "x", 0.05, 0, 8)
        w = quant(model, (q * spread).astype(F), spread, 0, bits)
        y = model.node("Relu", model.node("Conv", x, w))
        return model.output(quant(model, y, 0.11, zero, 8), F)
    s, z, t = F(0.05), np.int8(0), F(0.11)
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", s, z), s, z)
    w = model.node("DequantizeLinear", q.astype(np.int8), ws, **({"axis": 0} if per_channel else {}))
    y = model.node("Relu", model.node("Conv", x, w))
    y = model.node("QuantizeLinear", y, t, np.int8(zero))
    return model.output(model.node("DequantizeLinear", y, t, np.int8(zero)), F)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", [0, -7])
def test_quant_behind_a_convolution_is_its_qdq_form(nodes: Any, per_channel: bool, bits: int, zero: int) -> None:
    ours, other = (convolution(nodes, dialect, per_channel, bits, zero) for dialect in ("qonnx", "qdq"))
    (a,), (b,) = ours.load().ops, other.load().ops
    assert isinstance(a, Conv)
    assert isinstance(b, Conv)
    for name in ("weight", "bias", "multiplier", "lo", "hi"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    x = {"x": around(np.random.default_rng(1), 0.05, 0, 512).ravel()[:108].reshape(1, 3, 6, 6)}
    np.testing.assert_array_equal(ours.golden(x)[0], other.golden(x)[0])


def test_bias_of_32_bits(nodes: Any) -> None:
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 4])
    x = quant(model, "x", 0.5, 0, 8)
    w = quant(model, np.eye(4, dtype=F) * F(0.25), 0.25, 0, 4)
    integers = np.array([1, -3, 1000, -70000])
    b = quant(model, (integers * F(0.125)).astype(F), F(0.125), 0, 32)
    model.output(quant(model, model.node("Gemm", x, w, b), 1.0, 0, 8), F)
    assert model.load().ops[0].bias.tolist() == integers.tolist()


@pytest.mark.parametrize("scale", [F(0.5), np.array([0.5, 0.25, 1, 2], F).reshape(4, 1, 1, 1)])
def test_bipolar_weights(nodes: Any, scale: Any) -> None:
    rng = np.random.default_rng(3)
    w = rng.choice([-0.7, 0.0, 0.2], (4, 3, 2, 2)).astype(F)
    for form in ("BipolarQuant", "Quant"):
        model = nodes(17, dict.fromkeys(DOMAINS, 1))
        model.input("x", F, [1, 3, 6, 6])
        x = quant(model, "x", 0.5, 0, 8)
        q = quant(model, w, scale, 0, 1)
        q = q if form == "Quant" else model.node("BipolarQuant", w, scale, domain=DOMAINS[0])
        model.output(quant(model, model.node("Conv", x, q), 0.5, 0, 8), F)
        np.testing.assert_array_equal(model.load().ops[0].weight, np.where(w >= 0, 1, -1))


@pytest.mark.parametrize("form", ["BipolarQuant", "Quant"])
def test_bipolar_activations_behind_quant(nodes: Any, form: str) -> None:
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 8, 8, 8])
    x = quant(model, "x", 0.125, 0, 8)
    s = np.asarray(0.75, F)
    y = quant(model, x, s, 0, 1) if form == "Quant" else model.node("BipolarQuant", x, s, domain=DOMAINS[0])
    graph = same(model.output(y, F), {"x": around(np.random.default_rng(2), 0.125, 0)})
    assert [type(op) for op in graph.ops] == [Table]


@pytest.mark.parametrize("mode", ["FLOOR", "ROUND", "CEIL"])
@pytest.mark.parametrize("zero", [0, 4])
@pytest.mark.parametrize("version", [1, 2])
def test_trunc_behind_quant(nodes: Any, mode: str, zero: int, version: int) -> None:
    model = nodes(17, dict.fromkeys(DOMAINS, version))
    model.input("x", F, [1, 8, 8, 8])
    x = quant(model, "x", 0.125, zero, 8)
    operands: list[Any] = [x, F(0.125), F(zero), F(8)]
    operands += [F(4)] if version == 1 else [F(0.5), F(4)]
    more = {} if version == 1 else {"signed": 1, "narrow": 1}
    y = model.node("Trunc", *operands, domain=DOMAINS[0], rounding_mode=mode, **more)
    same(model.output(y, F), {"x": around(np.random.default_rng(4), 0.125, zero)})


@pytest.mark.parametrize(("scale", "bias"), [(1.0, 0.0), (1.0, -8.0), (2.0, -15.0), (0.5, 0.25), (0.25, 1.0)])
def test_multi_threshold_behind_quant(nodes: Any, scale: float, bias: float) -> None:
    rng = np.random.default_rng(6)
    rows = np.sort([*rng.uniform(-12, 12, 14), 0.125]).astype(F)[None]  # 0.125 is on the grid: reached, it counts
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 8, 8, 8])
    x = quant(model, "x", 0.125, 0, 8)
    y = model.node("MultiThreshold", x, rows, domain=DOMAINS[0], out_dtype="INT8", out_scale=scale, out_bias=bias)
    graph = same(model.output(y, F), {"x": around(rng, 0.125, 0)})
    assert [type(op) for op in graph.ops] == [Table]


def test_operators_that_old_exports_put_in_the_default_domain(nodes: Any) -> None:
    model = nodes(13)
    model.input("x", F, [1, 8, 8, 8])
    y = quant(model, quant(model, "x", 0.125, 0, 8, ""), 0.5, 1, 4, "", rounding_mode="FLOOR")
    model.output(y, F)
    (ours,) = model.golden({"x": around(np.random.default_rng(2), 0.125, 0)})
    for node in model.nodes:
        node.domain = DOMAINS[1]
    model.domains[DOMAINS[1]] = 1
    np.testing.assert_array_equal(ours, model.golden({"x": around(np.random.default_rng(2), 0.125, 0)})[0])
    for node in model.nodes:
        node.domain = ""
    assert [found.code for found in read(model.proto().SerializeToString()).diagnostics if "W36" in found.code] == [
        "W3600"
    ]


def test_what_the_host_rounds_goes_on_to_the_hardware(nodes: Any) -> None:
    """BipolarQuant of an input is a step of the host at the edge, and nothing else is the host's."""
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 8, 8, 8])
    y = model.node("BipolarQuant", "x", F(0.5), domain=DOMAINS[0])
    y = model.node("MaxPool", quant(model, y, 0.5, 0, 2), kernel_shape=[2, 2])
    model.output(y, F)
    feeds = {"x": around(np.random.default_rng(5), 0.125, 0)}
    session = InferenceSession(model.proto().SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart"]
    np.testing.assert_array_equal(session.run(None, feeds)[0], next(iter(evaluate(model.proto(), feeds).values())))


# -- what is refused -------------------------------------------------------------------------------


def behind_conv(nodes: Any, op_type: str, *operands: Any, **more: Any) -> Any:
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 1, 2, 2])
    y = model.node("Conv", quant(model, "x", 0.5, 0, 8), quant(model, np.ones((1, 1, 1, 1), F), 1, 0, 4))
    return model.output(model.node(op_type, y, *operands, domain=DOMAINS[0], **more), F)


@pytest.mark.parametrize(
    ("op_type", "operands", "more", "reason"),
    [
        ("Quant", (F(1), F(0.5), F(8)), {}, "zero point 0.5 is not an integer"),
        ("Quant", (F(1), F(0), F(9)), {}, "9 bits"),
        ("Quant", (np.ones((1, 2, 1, 1), F), F(0), F(8)), {}, "per channel"),
        ("Quant", (F(1), F(200), F(8)), {}, "zero point 200 do not fit int8"),
        ("Trunc", (F(1), F(0), F(8), F(4)), {}, "not yet on an int8 grid"),
        ("MultiThreshold", (np.ones((1, 3), F),), {}, "not yet on an int8 grid"),
        ("FloatQuant", (F(1), F(4), F(3)), {}, "floating-point type"),
    ],
)
def test_what_cannot_be_exact_is_named(nodes: Any, op_type: str, operands: Any, more: Any, reason: str) -> None:
    with pytest.raises(UnsupportedNodesError, match=reason):
        behind_conv(nodes, op_type, *operands, **more).load()


@pytest.mark.parametrize(
    ("op_type", "operands", "more", "code"),
    [
        ("Quant", (F(0), F(0), F(8)), {}, "E3020"),
        ("Quant", (F(1), F(0), F(0)), {}, "E3604"),
        ("Quant", (F(1), F(0), F(np.nan)), {}, "E3604"),
        ("Quant", (F(1), F(0), F(3.5)), {}, "E3604"),
        ("Quant", (F(1), F(0), F(33)), {}, "E3604"),
        ("Quant", (F(1), F(0), F(17)), {}, "E3607"),
        ("Trunc", (F(1), F(0), F(17), F(4)), {}, "E3607"),
        ("Trunc", (F(1), F(0), F(8), F(17)), {}, "E3607"),
        ("Quant", (F(1), F(np.nan), F(8)), {}, "E3606"),
        ("Quant", (F(1), F(np.inf), F(8)), {}, "E3606"),
        ("Quant", (np.ones((1, 1, 3, 1), F), F(0), F(8)), {}, "E3022"),
        ("BipolarQuant", (np.ones((1, 1, 3, 1), F),), {}, "E3022"),
        ("Trunc", (F(1), F(np.inf), F(8), F(4)), {}, "E3606"),
        ("Trunc", (F(1), F(0), F(8.5), F(4)), {}, "E3604"),
        ("Trunc", (F(1), F(0), F(8), F(1e9)), {}, "E3604"),
        ("Trunc", (F(1), F(0), F(8), F(np.nan)), {}, "E3604"),
        ("Trunc", (F(1), F(0), F(8), F(0), F(4)), {}, "E3020"),
        ("Trunc", (F(1), F(0), F(8), F(2), F(-3)), {}, "E3604"),
        ("Trunc", (F(1), F(0), F(8), F(2), F(1e38)), {}, "E3604"),
        ("MultiThreshold", (np.ones((3, 2), F),), {}, "E3603"),
        ("Quant", (F(1), F(0), F(8)), {"rounding_mode": "SIDEWAYS"}, "E3605"),
        ("Trunc", (F(1), F(0), F(8), F(4)), {"rounding_mode": "SIDEWAYS"}, "E3605"),
        ("MultiThreshold", (np.array([[1, np.nan]], F),), {}, "E3603"),
        ("MultiThreshold", (np.array([[1, 2, 2], [1, 3, 2]], F),), {}, "E3603"),
    ],
)
def test_what_is_invalid_has_a_code(nodes: Any, op_type: str, operands: Any, more: Any, code: str) -> None:
    with pytest.raises(InvalidModelError, match=code):
        behind_conv(nodes, op_type, *operands, **more).load()


@pytest.mark.parametrize("bits", [16, 17, 32])
@pytest.mark.parametrize("shape", [(), (1,), (1, 4, 1, 1), (4, 4, 1, 1)])
def test_wide_integers_are_over_a_limit_unless_they_are_biases(nodes: Any, bits: int, shape: tuple[int, ...]) -> None:
    model = nodes(17, dict.fromkeys(DOMAINS, 1))
    model.input("x", F, [1, 4, 2, 2])
    model.output(model.node("Add", "x", quant(model, np.ones(shape, F), 1, 0, bits)), F)
    if bits > 16 and shape == (4, 4, 1, 1):
        with pytest.raises(LimitError, match=f"E3607.*quant_bits={bits}"):
            read(model.proto())
    else:
        read(model.proto())
    read(model.proto(), limits=Limits(quant_bits=32))
