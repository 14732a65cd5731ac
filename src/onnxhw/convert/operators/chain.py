"""`Chain`: integer sums and the float32 functions per channel behind them, exact on the hardware.

    MatMul -> Mul -> BatchNormalization -> Relu -> Quant       sums of a convolution, functions, a quantizer

Every function is monotone in float32, and so is the quantizer: from a sum to the quantized result it is a staircase
(`staircase`). The convolution takes the constants of an equal requantizer; where it falls, its weights change their
sign. A staircase that no single requantizer has becomes several, each of a few levels, which a second convolution adds
up. Where not even those are equal, BatchNormalization is folded as exporters do, with the bias rounded to an integer.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import fixed
from ...ir.graph import Tensor
from ...ir.steps import apply
from ..blockers import BlockedError
from ..context import Context
from ..values import Floats, HostValue, Ints, QuantConst, QuantizerTarget, Step, Unquantized
from .affine_sum import FLAT, MOST_PARTS, Affine, integer_bias
from .limbs import limbs
from .staircase import LEAST, MOST, RequantizedSum, Staircase, line, lines, staircases

MOST_ENTRIES = 8
"""Requantizers per channel: each costs the products of the layer once more."""
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Formula:
    """A monotone float32 function per channel: `apply` maps ``[C, N]``; `sign` ``[C]`` is -1 where it falls, else 1.

    `steps` are the same on the host, on ``[1, C, H, W]``. `line` is slope and offset ``[C]`` if it is a line.
    """

    name: str
    apply: Callable[[Floats], Floats]
    sign: Ints
    steps: tuple[Step, ...]
    line: tuple[Reals, Reals] | None = None


def per_channel_formula(op_type: str, values: Floats, swapped: bool, name: str) -> Formula:
    """Add, Sub, Mul or Div with one constant per channel (on the left if `swapped`); `BlockedError` for others."""
    one, wide = np.ones(len(values)), values.astype(np.float64)
    if not np.isfinite(values).all() or (op_type == "Div" and (swapped or not values.all())):
        raise BlockedError(f"{op_type} with these constants is not a line")
    if op_type in ("Add", "Sub"):
        sign = -1.0 if swapped and op_type == "Sub" else 1.0
        slope, offset = sign * one, wide if op_type == "Add" or swapped else -wide
    elif op_type in ("Mul", "Div"):
        slope, offset = wide if op_type == "Mul" else 1 / wide, 0 * one
    else:
        raise BlockedError(f"{op_type} of sums is not a line", "use Add, Sub, Mul or Div")
    step: Step = {"op": op_type, "name": name, "value": values.tolist(), "swapped": swapped}

    def function(v: Floats) -> Floats:
        return np.asarray(apply((step,), v[None, :, :, None]), np.float32)[0, :, :, 0]

    return Formula(name, function, np.where(slope < 0, -1, 1), (step,), (slope, offset))


def clamp_formula(steps: tuple[Step, ...], channels: int) -> Formula:
    """Relu and Clip, in order."""
    return Formula(
        steps[-1]["name"], lambda v: np.asarray(apply(steps, v), np.float32), np.ones(channels, np.int64), steps
    )


@dataclass(frozen=True)
class Chain:
    """The sums of a convolution, times their scale, its bias added, through `formulas` in order."""

    affine: Affine
    formulas: tuple[Formula, ...] = ()
    rounds: bool = True
    """May the bias be rounded where nothing is equal? Not where an int8 is all that there is to round."""

    @property
    def channels(self) -> int:
        """How many sums each pixel has."""
        return len(self.affine.weight)

    def then(self, formulas: Iterable[Formula]) -> "Chain":
        """Followed by more functions."""
        return replace(self, formulas=(*self.formulas, *formulas))

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations of the quantized result."""
        base, bias, formulas = self._parts()
        quantizer = result.formula or (lambda v: fixed.quantize(v, result.scale, result.zero_point))
        sign = np.prod([formula.sign for formula in formulas] or [np.ones(self.channels, np.int64)], axis=0)
        low, high = self.affine.interval(bias)

        def function(sums: Ints) -> Ints:
            reals = (sums * sign[:, None]).astype(np.float32) * base[:, None]
            for formula in formulas:
                reals = formula.apply(reals)
            if np.isnan(reals).any():
                raise BlockedError("its formula gives NaN")
            return np.clip(quantizer(reals), result.lo, result.hi)

        ends = np.where(sign < 0, -high, low), np.where(sign < 0, -low, high)
        with np.errstate(all="ignore"):
            stairs = staircases(function, *ends, result.hi - result.lo)
        slope = np.abs(self._line()[0]) / float(result.scale)
        made = Stairs(self.affine, result, sign, bias, stairs, slope)
        return made.single() or made.several() or self._rounded(result)

    def _line(self) -> tuple[Reals, Reals]:
        """Slope and offset of the functions that are lines, per unit of a sum; clamps are left out."""
        base, _, formulas = self._parts()
        slope, offset = base.astype(np.float64), np.zeros(self.channels)
        for formula in formulas:
            if formula.line is not None:
                slope, offset = slope * formula.line[0], offset * formula.line[0] + formula.line[1]
        return slope, offset

    def _parts(self) -> tuple[Floats, Ints, tuple[Formula, ...]]:
        """The scale of the sums, the integer part of the bias, and the functions behind, with the rest of the bias."""
        base = np.asarray(np.float32(self.affine.tensor.scale) * self.affine.scale, np.float32)
        if not (base >= np.finfo(np.float32).tiny).all() or not np.isfinite(base).all():
            raise BlockedError("input scale * weight scale leaves float32's range", "check the scales")
        bias = self.affine.bias
        try:
            integers, error = integer_bias(bias, base, self.channels)
        except BlockedError:
            error = np.ones(1)
        if bias is None or not error.any():
            return base, integers, self.formulas
        real = bias.real() if isinstance(bias, QuantConst) else bias.array
        if real.size != max(real.shape[-1:], default=1) or real.size not in (1, self.channels):
            raise BlockedError(f"its bias of shape {list(real.shape)} is not one number for each channel")
        values = np.broadcast_to(real.ravel(), (self.channels,)).astype(np.float32)
        added = per_channel_formula("Add", values, False, self.affine.name)
        return base, np.zeros(self.channels, np.int64), (added, *self.formulas)

    def _rounded(self, result: QuantizerTarget) -> Tensor:
        """The line of an affine chain with its bias rounded to an integer, as that of a float bias is."""
        _, bias, formulas = self._parts()
        what = "no integer constants give the float results of every channel"
        hint = "quantize the constant (QDQ format)"
        if self.rounds:
            hint = "use fewer bits for weights or results, or fold the constants before quantizing"
        clamps = any(formula.line is None for formula in formulas)
        if result.formula is not None or clamps or not self.rounds:
            raise BlockedError(what, hint)
        slope, offset = self._line()
        factors = np.abs(slope) / float(result.scale)
        multiplier: Floats = np.where(factors == 0, LEAST, factors).astype(np.float32)
        if not ((multiplier >= LEAST) & (multiplier <= MOST)).all():
            raise BlockedError(what, hint)
        exact = offset / (float(result.scale) * multiplier.astype(np.float64))
        if not (np.abs(exact) < 1 << 30).all():
            raise BlockedError(what, hint)
        rounded = np.rint(exact)
        sign = np.sign(slope).astype(np.int64)
        self.affine.context.note_rounded(result.nodes[0], float((np.abs(rounded - exact) * multiplier).max()))
        weight = self.affine.weight.astype(np.int64) * sign.reshape(-1, 1, 1, 1)
        affine = replace(self.affine, weight=_within(weight))
        total = rounded.astype(np.int64) + bias * sign
        affine.check_sums(total)
        return affine.added(result, total, multiplier)

    def real(self, name: str, value: Unquantized) -> HostValue:
        """The real value itself: the sums leave as one or two int8 each, and the host computes the functions.

        `BlockedError` for sums that need more.
        """
        base, bias, formulas = self._parts()
        low, high = self.affine.interval(bias)
        made = limbs(replace(self.affine, bias=None), name, bias, int(low.min()), int(high.max()))
        steps: tuple[Step, ...] = (
            {"op": "Sums", "name": name, "weights": list(made.weights), "term": made.term},
            {"op": "Mul", "name": name, "value": base.tolist(), "swapped": False},
            *(step for formula in formulas for step in formula.steps),
        )
        return HostValue(made.tensor, value.shape, (*steps, *value.clamps, *value.moves.steps))


def identity(context: Context, name: str, tensor: Tensor) -> Chain:
    """A dequantized tensor as sums: of one product with 1."""
    count = tensor.channels
    ones = np.ones((count, 1, 1, 1), np.int8)
    return Chain(Affine(context, name, tensor, ones, np.ones(count, np.float32), None, FLAT, count), (), rounds=False)


def chained(value: Unquantized, formulas: tuple[Formula, ...], name: str) -> Unquantized:
    """`value`, which has a chain, followed by functions per channel of the node `name`."""
    assert value.chain is not None
    clamps = (clamp_formula(value.clamps, value.chain.channels),) if value.clamps else ()
    chain = value.chain.then((*clamps, *formulas))
    nodes = tuple(dict.fromkeys((*value.nodes, name)))
    return replace(value, finish=chain.finish, nodes=nodes, clamps=(), with_bias=None, chain=chain, chained=True)


@dataclass(frozen=True)
class Stairs:
    """The staircases of a chain's channels, rising, and the operations that they become."""

    affine: Affine
    result: QuantizerTarget
    sign: Ints
    bias: Ints
    stairs: list[Staircase]
    slope: Reals
    """Of the formulas, in levels per sum."""

    @property
    def factors(self) -> list[int]:
        """By what each channel's weights may be multiplied so that they stay int8, and the sums within 24 bits."""
        weight = (self.affine.weight.astype(np.int64) * self.sign.reshape(-1, 1, 1, 1)).reshape(len(self.sign), -1)
        up, down = weight.max(axis=1, initial=1), weight.min(axis=1, initial=-1)
        room = [fixed.SUM_MAX // (4 * max(abs(one.low), abs(one.high), 1)) for one in self.stairs]
        return [max(1, int(min(127 // u, 128 // -d, r))) for u, d, r in zip(up, down, room, strict=True)]

    def single(self) -> Tensor | None:
        """One requantizer per channel."""
        result = self.result
        found = []
        for one, most, slope in zip(self.stairs, self.factors, self.slope, strict=True):
            entry = line(one, result.zero_point, result.lo, result.hi, most, float(slope))
            if entry is None:
                return None
            found.append([entry])
        return self._added(found, result)

    def several(self) -> Tensor | None:
        """Several requantizers per channel, added up: ``lo + step * sum``, by a second convolution."""
        result, values = self.result, [one.first for one in self.stairs]
        step = self._step()
        lo = min(values)
        if any((value - lo) % step for value in values):
            lo, step = result.lo, 1
        thinned = [_thinned(one, lo, step) for one in self.stairs]
        last = max(one.last for one in thinned)
        found = lines(thinned, 0, max(last, 1), self.factors, MOST_ENTRIES, (self.slope / step).tolist())
        if found is None:
            return None
        count, entries = found
        number, context = len(entries[0]), self.affine.context
        name = f"{result.name}.levels"
        levels = QuantizerTarget(name, np.float32(1), 0, 0, count, result.nodes)
        made = self._added(entries, levels)
        if made is None:
            return None
        channels = len(self.stairs)
        weight = np.full((channels, number, 1, 1), step, np.int8)
        whole = Affine(
            context, f"{self.affine.name}.levels", made, weight, np.ones(channels, np.float32), None, FLAT, channels
        )
        bias = np.full(channels, lo - result.zero_point, np.int64)
        return whole.added(result, bias, np.ones(channels, np.float32))

    def _step(self) -> int:
        """The greatest common divisor of the differences between all values."""
        step = 0
        for one in self.stairs:
            reached = one.steps[one.steps <= one.high]
            ends = np.flatnonzero(np.append(reached[1:] > reached[:-1], True)) + 1 if len(reached) else reached
            step = int(np.gcd.reduce([step, *(int(end) for end in ends)]))
        return max(step, 1)

    def _added(self, entries: list[list[RequantizedSum]], result: QuantizerTarget) -> Tensor | None:
        """The convolution with these entries per channel, channel by channel; None if the hardware has none equal."""
        number = len(entries[0])
        flat = [entry for channel in entries for entry in channel]
        factors = np.array([entry.factor for entry in flat], np.int64)
        signs, bias = np.repeat(self.sign, number), np.repeat(self.bias, number)
        weight = np.repeat(self.affine.weight.astype(np.int64), number, axis=0) * (signs * factors).reshape(-1, 1, 1, 1)
        terms = np.array([entry.bias for entry in flat], np.int64)
        multipliers = np.array([entry.multiplier for entry in flat], np.float32)
        affine = replace(self.affine, weight=_within(weight), scale=np.repeat(self.affine.scale, number), bias=None)
        terms = terms + signs * factors * bias  # the staircase is one of the sums with their bias
        affine.check_sums(terms)
        if not affine.provable(terms, multipliers):
            return None
        return affine.added(result, terms, multipliers)


def _thinned(stairs: Staircase, lo: int, step: int) -> Staircase:
    """``(f - lo) / step``, where that is always an integer."""
    return replace(stairs, first=(stairs.first - lo) // step, steps=stairs.steps[::step])


def _within(weight: Ints) -> Any:
    """The weights, int8 if they fit; `BlockedError` if `MOST_PARTS` int8 do not hold one."""
    if weight.size and (weight.min() < -128 * MOST_PARTS or weight.max() > 127 * MOST_PARTS):
        raise BlockedError("weights with their sign changed leave the sum of int8 parts")
    return weight.astype(np.int8) if weight.min() >= -128 and weight.max() <= 127 else weight
