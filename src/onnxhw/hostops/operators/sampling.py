"""Multinomial: classes drawn at random, each as often as its probability says."""


import numpy as np
from onnx import TensorProto, helper

from .adapter import Array, HostOp


def multinomial(x: Array, dtype: int = TensorProto.INT32, sample_size: int = 1, seed: float | None = None) -> Array:
    """``(batch, sample_size)``: classes by the unnormalised log-probabilities of each row of `x`.

    The operator's text names no generator: it is numpy's, so that a seed gives the same classes in every run, but not
    those of another runtime. A class of probability 0 is never drawn. ValueError for a row without any probability.
    """
    generator = np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))
    wide = x.astype(np.float64)
    highest = wide.max(axis=1, keepdims=True)
    if not np.isfinite(highest).all():
        raise ValueError("a row has no finite log-probability, or an infinite one")
    weights = np.exp(wide - highest)
    drawn = generator.random((len(x), sample_size))
    found = np.empty(drawn.shape, helper.tensor_dtype_to_np_dtype(dtype))
    for row, (weight, numbers) in enumerate(zip(weights, drawn, strict=True)):
        ends = weight.cumsum()
        classes = np.searchsorted(ends, numbers * ends[-1], side="right")
        found[row] = np.minimum(classes, np.flatnonzero(weight)[-1])
    return found


OPERATORS = (HostOp("", "Multinomial", multinomial),)
