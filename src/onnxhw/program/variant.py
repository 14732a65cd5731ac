"""`Variant`: a graph that means what the model's does, to be scheduled in its place."""

from dataclasses import dataclass, field

from ..ir.graph import Graph
from .kept import Kept, Shape


@dataclass(frozen=True)
class Variant:
    """A graph whose tensors have the names of the model's.

    Those in `kept` are other arrays: how they follow from the model's, and its shape. All others are equal to the
    model's tensors, for every input.
    """

    graph: Graph
    kept: dict[str, tuple[Kept, Shape]] = field(default_factory=dict)
