"""A model in parts: what runs on the hardware, what on the host, and what passes between them.

Parts run in order; each reads and gives values by their ONNX names. A hardware part is one integer graph, whose
ports have those names; a golden part is another that the host computes; a host part is an ONNX model of its own.
"""

from dataclasses import dataclass

from .graph import Graph, Port
from .states import State, interface

Dim = int | str | None


@dataclass(frozen=True)
class ValueInfo:
    """An input or output of a model as its user sees it.

    `shape`: a dimension is a number, a symbol, or None (not known); the whole is None for unknown rank. `dtype`:
    numpy's name, "" for what is no tensor. `optional`: an input with a default value. `elements`: of a sequence, an
    optional or a map, the shape of each tensor in it, None where that is not known.
    """

    name: str
    shape: tuple[Dim, ...] | None
    dtype: str
    optional: bool = False
    elements: tuple[Dim, ...] | None = None


@dataclass(frozen=True)
class HostPart:
    """ONNX nodes that run on the host: `model` is a serialized ModelProto with these inputs and outputs."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    model: bytes
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Integers:
    """Operations of one integer graph, whose ports have the names of the values that pass."""

    graph: Graph

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values it reads, once each."""
        return _names(self.graph.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values it gives."""
        return _names(self.graph.outputs)


@dataclass(frozen=True)
class HardwarePart(_Integers):
    """Operations that run on the accelerator."""


@dataclass(frozen=True)
class GoldenPart(_Integers):
    """Operations that a configuration has no room or no means for: the host computes them, as `onnxhw.golden` does, so
    that results are the same on every configuration. Of `states` the graph has ports, the part has no values."""

    states: tuple[State, ...] = ()

    @property
    def interface(self) -> Graph:
        """The graph without the ports of states."""
        return interface(self.graph, self.states)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values it reads but for states."""
        return _names(self.interface.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values it gives but for states."""
        return _names(self.interface.outputs)


Part = HostPart | GoldenPart | HardwarePart


def _names(ports: list[Port]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port.name for port in ports))
