"""RNN, GRU and LSTM with all their attributes: activations, clip, lengths, directions, layout."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .adapter import Array, HostOp

Activation = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


ACTIVATIONS: dict[str, Callable[..., Array]] = {
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Sigmoid": lambda x, a, b: _sigmoid(x),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log1p(np.exp(x)),
}
ALPHA = {"Affine": 1.0, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}


def activations(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Activation]:
    """The functions by name; each takes the next alpha and beta if it has such a parameter."""
    known = {name.lower(): name for name in ACTIVATIONS}
    more_alpha, more_beta = iter(alphas or ()), iter(betas or ())
    found: list[Activation] = []
    for given in names:
        if given.lower() not in known:
            raise ValueError(f"activation {given!r} is unknown")
        name = known[given.lower()]
        alpha = next(more_alpha, ALPHA[name]) if name in ALPHA else 0.0
        beta = next(more_beta, BETA[name]) if name in BETA else 0.0
        found.append(partial(ACTIVATIONS[name], a=alpha, b=beta))
    return found


Cell = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]


def _rnn(w: Array, r: Array, b: Array, f: list[Activation], clip: Activation, **_: Any) -> Cell:
    wb, rb = np.split(b, 2)

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        return (f[0](clip(x @ w.T + state[0] @ r.T + wb + rb)),)

    return step


def _gru(w: Array, r: Array, b: Array, f: list[Activation], clip: Activation, linear: int = 0, **_: Any) -> Cell:
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = state
        z = f[0](clip(x @ wz.T + h @ rz.T + bz + cz))
        reset = f[0](clip(x @ wr.T + h @ rr.T + br + cr))
        inner = reset * (h @ rh.T + ch) if linear else (reset * h) @ rh.T + ch
        return ((1 - z) * f[1](clip(x @ wh.T + inner + bh)) + z * h,)

    return step


def _lstm(
    w: Array, r: Array, b: Array, f: list[Activation], clip: Activation, peepholes: Array, coupled: int = 0, **_: Any
) -> Cell:
    wb, rb = np.split(b, 2)
    pi, po, pf = np.split(peepholes, 3)

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = state
        i, o, forget, g = np.split(x @ w.T + h @ r.T + wb + rb, 4, -1)
        i = f[0](clip(i + pi * c))
        forget = 1 - i if coupled else f[0](clip(forget + pf * c))
        c = forget * c + i * f[1](clip(g))
        return f[0](clip(o + po * c)) * f[2](c), c

    return step


def _run(
    cell: Callable[..., Cell],
    gates: int,
    defaults: Sequence[str],
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h: Array | None = None,
    c: Array | None = None,
    peepholes: Array | None = None,
    **attributes: Any,
) -> tuple[Array, ...]:
    """Every direction over the sequence ``[time, batch, inputs]``: all hidden states, then each state's last value.

    `defaults`: the activations of a direction; a cell with three of them has a state `c` besides `h`.
    """
    initial = [h, c] if len(defaults) == 3 else [h]
    direction, layout = attributes.get("direction", "forward"), attributes.get("layout", 0)
    turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in turned or len(turned[direction]) != w.shape[0]:
        raise ValueError(f"direction {direction!r} does not fit weights of {w.shape[0]} directions")
    names = attributes.get("activations") or list(defaults) * w.shape[0]
    functions = activations(names, attributes.get("activation_alpha"), attributes.get("activation_beta"))
    bound = attributes.get("clip")
    clip: Activation = (lambda v: v) if bound is None else (lambda v: np.clip(v, -bound, bound))
    if layout:
        x, initial = x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in initial]
    time, batch, hidden = x.shape[0], x.shape[1], r.shape[-1]
    steps = np.full(batch, time) if lengths is None else lengths
    outputs, finals = [], []
    for k, backward in enumerate(turned[direction]):
        bias = np.zeros(2 * gates * hidden, x.dtype) if b is None else b[k]
        look = np.zeros(3 * hidden, x.dtype) if peepholes is None else peepholes[k]
        own = functions[k * len(defaults) : (k + 1) * len(defaults)]
        step = cell(
            w[k], r[k], bias, own, clip,
            linear=attributes.get("linear_before_reset", 0), peepholes=look, coupled=attributes.get("input_forget", 0),
        )  # fmt: skip
        state = tuple(np.zeros((batch, hidden), x.dtype) if s is None else s[k] for s in initial)
        y = np.zeros((time, batch, hidden), x.dtype)
        for t in range(time):
            at = np.where(backward, steps - 1 - t, t)  # the reverse starts at each sequence's own end
            active = (t < steps)[:, None]
            new = step(x[np.maximum(at, 0), np.arange(batch)], state)
            state = tuple(
                np.where(active, after, before).astype(x.dtype) for after, before in zip(new, state, strict=True)
            )
            rows = np.flatnonzero(t < steps)
            y[at[rows], rows] = state[0][rows]
        outputs.append(y)
        finals.append(state)
    whole = np.stack(outputs, 1)
    last = [np.stack(kind) for kind in zip(*finals, strict=True)]
    if layout:
        return whole.transpose(2, 0, 1, 3), *(kind.swapaxes(0, 1) for kind in last)
    return whole, *last


OPERATORS = (
    HostOp("", "RNN", partial(_run, _rnn, 1, ("Tanh",))),
    HostOp("", "GRU", partial(_run, _gru, 3, ("Sigmoid", "Tanh"))),  # gates in the order update, reset, hidden
    HostOp("", "LSTM", partial(_run, _lstm, 4, ("Sigmoid", "Tanh", "Tanh"))),  # input, output, forget, cell
)
