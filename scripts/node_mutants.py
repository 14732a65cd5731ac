"""`NodeMutator`: mutants of onnx's own node models, and of their quantized forms, by number; see fuzz_nodes.py.

A mutant depends on the seed, its number and the installed onnx's suite, on nothing else.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import node_changes
import node_graph_changes
import numpy as np
import onnx
from node_changes import Feeds, Work
from onnx import TensorProto, numpy_helper

from onnxhw.conformance.quantized import quantizable, quantized

LARGEST = 20_000
"""Bytes of a model that is mutated: the suite's expanded functions are larger, and no more than their parts."""
ELEMENTS = 20_000
"""Elements of all inputs of such a model."""
REFUSED = (ValueError, TypeError, OverflowError, IndexError, KeyError, AttributeError, MemoryError)
"""What protobuf and numpy raise for what they do not let through: that is no mutant."""
TABLE = (*node_changes.CHANGES, *node_graph_changes.CHANGES)
CHANGES, WEIGHTS = [change for change, _ in TABLE], [weight for _, weight in TABLE]


@dataclass(frozen=True)
class Seed:
    """A model of the suite, serialized, and data for its inputs."""

    name: str
    model: bytes
    feeds: tuple[Any, ...]


@cache
def seeds() -> tuple[tuple[Seed, ...], tuple[Seed, ...]]:
    """The suite's node models, and the quantized forms of those that have one."""
    from onnx.backend.test.case.node import collect_testcases

    plain, integer = [], []
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # the suite's own numpy overflows on purpose
        warnings.simplefilter("ignore")
        for case in sorted(collect_testcases(None), key=lambda case: str(case.name)):
            if not case.data_sets:
                continue
            feeds = tuple(_array(value) for value in case.data_sets[0][0])
            size = sum(value.size for value in feeds if isinstance(value, np.ndarray))
            data = case.model.SerializeToString()
            if len(data) <= LARGEST and size <= ELEMENTS:
                plain.append(Seed(case.name, data, feeds))
            if size <= ELEMENTS and quantizable(case):
                model, sets = quantized(case)
                integer.append(Seed(f"{case.name}_quantized", model.SerializeToString(), tuple(sets[0][0])))
    return tuple(plain), tuple(integer)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


class NodeMutator:
    """Makes mutant number `index` of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.plain, self.integer = seeds()

    def mutant(self, index: int) -> bytes:
        """A model of the suite with one to four changes, serialized."""
        return self.made(index)[0]

    def made(self, index: int) -> tuple[bytes, Feeds]:
        """The same, and what its inputs may be fed, as far as they were not changed."""
        rng = Random(self.seed << 64 | index)
        chosen = self._choice(rng)
        model = onnx.ModelProto.FromString(chosen.model)
        feeds = {value.name: feed for value, feed in zip(model.graph.input, chosen.feeds, strict=False)}
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            change = rng.choices(CHANGES, WEIGHTS)[0]
            with suppress(*REFUSED):
                change(Work(self.other, model, feeds, rng))
        return model.SerializeToString(), feeds

    def _choice(self, rng: Random) -> Seed:
        return rng.choice(self.integer if rng.random() < 0.4 else self.plain)

    def other(self, rng: Random) -> onnx.ModelProto:
        """Another model of the suite."""
        return onnx.ModelProto.FromString(self._choice(rng).model)
