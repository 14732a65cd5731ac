"""RNN, GRU, LSTM, and attention."""

import numpy as np

from ..draw import Draw

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = [
    "Relu",
    "Tanh",
    "Sigmoid",
    "Affine",
    "LeakyRelu",
    "ThresholdedRelu",
    "ScaledTanh",
    "HardSigmoid",
    "Elu",
    "Softsign",
    "Softplus",
]
WITH = {
    "Affine": (1.5, 0.25),
    "LeakyRelu": (0.1, None),
    "ThresholdedRelu": (0.5, None),
    "ScaledTanh": (0.75, 1.25),
    "HardSigmoid": (0.25, 0.5),
    "Elu": (0.5, None),
}
"""alpha and beta of the activations that have them."""


def cell(d: Draw) -> None:
    name = d.operator.name
    gates = GATES[name]
    steps, batch, size, hidden = d.integer(1, 4), d.integer(1, 3), d.integer(1, 3), d.integer(1, 4)
    direction = d.attr("direction", ["forward", "reverse", "bidirectional"])
    count = 2 if direction in ("bidirectional", b"bidirectional") else 1
    d.attributes["hidden_size"] = hidden
    layout = d.attr("layout", [0, 1]) or 0
    each = {"RNN": 1, "GRU": 2, "LSTM": 3}[name]
    if d.maybe("activations"):
        chosen = [d.choose("activation", ACTIVATIONS) for _ in range(each * count)]
        d.attributes["activations"] = chosen
        alphas = [WITH[one][0] for one in chosen if one in WITH]
        betas = [WITH[one][1] for one in chosen if one in WITH and WITH[one][1] is not None]
        if alphas:
            d.attributes["activation_alpha"] = alphas
        if betas:
            d.attributes["activation_beta"] = betas
    d.attr("clip", [0.5, 3.0])
    if name == "GRU":
        d.attr("linear_before_reset", [0, 1])
    if name == "LSTM":
        d.attr("input_forget", [0, 1])
    state = (count, batch, hidden) if not layout else (batch, count, hidden)
    d.x(d.array("T", (steps, batch, size) if not layout else (batch, steps, size), "plain"))
    d.x(d.array("T", (count, gates * hidden, size), "plain"))
    d.x(d.array("T", (count, gates * hidden, hidden), "plain"))
    rest = [("B", (count, 2 * gates * hidden)), ("sequence_lens", (batch,)), ("initial_h", state)]
    rest += [("initial_c", state), ("P", (count, 3 * hidden))] if name == "LSTM" else []
    for operand, shape in rest:
        if not d.maybe(operand):
            d.skip()
        elif operand == "sequence_lens":
            d.ints([d.integer(1, steps) for _ in range(batch)], "int32")
        else:
            d.x(d.array("T", shape, "plain"))
    d.outputs = d.choose("outputs", [1, 2] + ([3] if name == "LSTM" else []))


def attention(d: Draw) -> None:
    batch, heads, width, length, past = (
        d.integer(1, 2),
        d.choose("heads", [1, 2]),
        d.integer(1, 4),
        d.integer(1, 3),
        d.integer(1, 3),
    )
    groups = d.choose("groups", [1, 2])
    rank = d.choose("rank", ["4-D", "3-D"])
    keys = d.integer(1, 4)

    def shaped(count: int, size: int) -> tuple[int, ...]:
        return (batch, count, size, width) if rank == "4-D" else (batch, size, count * width)

    if rank == "3-D":
        d.attributes["q_num_heads"], d.attributes["kv_num_heads"] = heads * groups, heads
    d.attr("is_causal", [0, 1])
    d.attr("scale", [0.5, 1.0])
    d.attr("softcap", [0.0, 2.0])
    mode = d.attr("qk_matmul_output_mode", [0, 1, 2, 3])
    if d.has("softmax_precision"):
        d.attr("softmax_precision", [1])
    for name in ("left_window_size", "right_window_size"):
        if d.has(name):
            d.attr(name, [-1, 0, 1])
    d.x(d.array("T1", shaped(heads * groups, length), "plain"))
    d.x(d.array("T1", shaped(heads, keys), "plain"))
    d.x(d.array("T2", shaped(heads, keys), "plain"))
    before = d.maybe("past")
    mask = d.maybe("mask")
    total = keys + (past if before else 0)
    if mask:
        shape = (length, total)
        d.x(
            d.of("bool", shape) | (np.arange(total) == 0)
            if d.type("U", ["bool", d.type("T1")]) == "bool"
            else d.array("U", shape, "plain")
        )
    elif before:
        d.skip()
    if before:
        d.x(d.array("T1", (batch, heads, past, width), "plain"))
        d.x(d.array("T2", (batch, heads, past, width), "plain"))
    d.outputs = 4 if mode else d.choose("outputs", [1, 3]) if before else 1


def rotary(d: Draw) -> None:
    rank = d.choose("rank", ["4-D", "3-D"])
    batch, heads, length, width = d.integer(1, 2), d.integer(1, 3), d.integer(1, 4), 2 * d.integer(1, 3)
    if rank == "3-D":
        d.attributes["num_heads"] = heads
    d.attr("interleaved", [0, 1])
    rotated = width
    if d.maybe("rotary_embedding_dim") and width > 2:
        rotated = d.attributes["rotary_embedding_dim"] = 2
    d.x(d.array("T", (batch, heads, length, width) if rank == "4-D" else (batch, length, heads * width), "plain"))
    positions = d.maybe("position_ids")
    shape = (6, rotated // 2) if positions else (batch, length, rotated // 2)
    d.x(d.array("T", shape, "plain"))
    d.x(d.array("T", shape, "plain"))
    if positions:
        d.ints(d.rng.integers(0, 6, (batch, length)))


def causal(d: Draw) -> None:
    batch, c, length, k = d.integer(1, 2), d.integer(1, 3), d.integer(1, 5), d.integer(1, 4)
    d.attr("activation", ["none", "silu", "swish"])
    d.x(d.array("T", (batch, c, length), "plain"))
    d.x(d.array("T", (c, 1, k), "plain"))
    if d.maybe("bias"):
        d.x(d.array("T", (c,), "plain"))
    else:
        d.skip()
    if d.maybe("past_state"):
        d.x(d.array("T", (batch, c, k - 1), "plain"))
    d.outputs = 2


def linear_attention(d: Draw) -> None:
    rule = d.attr("update_rule", ["linear", "gated", "delta", "gated_delta"])
    rule = rule.decode() if isinstance(rule, bytes) else rule
    batch, length, heads, width, value = (
        d.integer(1, 2),
        d.integer(1, 3),
        d.integer(1, 2),
        d.integer(1, 3),
        d.integer(1, 3),
    )
    d.attributes["q_num_heads"] = d.attributes["kv_num_heads"] = heads
    d.attr("scale", [0.0, 0.5])
    for size in (width, width, value):
        d.x(d.array("T", (batch, length, heads * size), "plain"))
    if d.maybe("past_state"):
        d.x(d.array("S", (batch, heads, width, value), "plain"))
    else:
        d.skip()
    if "gated" in rule:
        d.x(-np.abs(d.array("T", (batch, length, heads), "plain")))
    else:
        d.skip()
    if "delta" in rule:
        d.x(d.array("T", (batch, length, heads), "positive"))
    d.outputs = 2


GENERATORS = {
    **dict.fromkeys(GATES, cell),
    "Attention": attention,
    "RotaryEmbedding": rotary,
    "CausalConvWithState": causal,
    "LinearAttention": linear_attention,
}
