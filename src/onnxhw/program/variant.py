"""`Variant`: a graph that means what the model's does, to be scheduled in its place."""

from dataclasses import dataclass, field

from ..ir.graph import Graph
from .storage import Shape, StorageFormat


@dataclass(frozen=True)
class Variant:
    """A graph whose tensors have the names of the model's.

    Those in `storage` are other arrays: how they follow from the model's, and its shape. All others are equal to the
    model's tensors, for every input.
    """

    graph: Graph
    storage: dict[str, tuple[StorageFormat, Shape]] = field(default_factory=dict)
