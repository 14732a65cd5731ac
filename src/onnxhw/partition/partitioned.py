"""`PartitionedModel`: a model in parts for hardware and host, before anything is scheduled."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..batch import Batch
from ..diagnostics import Diagnostic
from ..errors import OnnxhwError, UnsupportedError, UsageError
from ..ir.parts import Dim, GoldenPart, HardwarePart, HostPart, Part, ValueInfo
from ..ir.states import State
from ..onnxmodel.quantizers import quantizes
from ..onnxmodel.shapes import dynamic
from ..program.parts import Program, ProgramPart

Where = Literal["hardware", "folded", "free", "host", "refused"]

@dataclass(frozen=True)
class NodePlacement:
    """Where one node runs, and why.

    hardware    it is (part of) an operation of the accelerator
    folded      its result is a constant
    free        it has no work of its own: layout, or absorbed by its neighbours, or nothing needs it
    host        it runs on the host, in part `part`, or at the edge of the hardware part `part`
    refused     nothing here implements it: a model that needs it cannot run

    `code` is E4001 for nodes that the hardware cannot run, E4401 for refused ones, else "".
    """

    node: str
    op_type: str
    domain: str
    where: Where
    code: str = ""
    reason: str = ""
    hint: str = ""
    part: int | None = None


@dataclass(frozen=True)
class PartitionedModel:
    """A model in parts, in execution order; `placement` has a row per node, in the model's order.

    `batch`: None where the model does not say that it takes several samples. Where its `size` is not 0, inputs, outputs
    and parts are those of one sample.
    """

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    parts: tuple[Part, ...]
    placement: tuple[NodePlacement, ...]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    batch: Batch | None = None

    @property
    def hardware(self) -> list[HardwarePart]:
        """The hardware parts."""
        return [part for part in self.parts if isinstance(part, HardwarePart)]

    @property
    def host(self) -> list[HostPart]:
        """The parts of host nodes."""
        return [part for part in self.parts if isinstance(part, HostPart)]

    @property
    def golden(self) -> list[GoldenPart]:
        """The parts whose operations the host computes as the golden model does."""
        return [part for part in self.parts if isinstance(part, GoldenPart)]

    def on_host(self, states: Sequence[State] = ()) -> Program:
        """The program of which the host computes all, what the hardware can run as the golden model does; `states` are
        those of the hardware, which is one part if there are any."""
        parts = [GoldenPart(part.graph, tuple(states)) if isinstance(part, HardwarePart) else part
                 for part in self.parts]  # fmt: skip
        return self.program(parts, states)

    def program(self, parts: Sequence[ProgramPart], states: Sequence[State] = ()) -> Program:
        """The program of these parts, which has no inputs and outputs for `states`."""
        read, made = {state.input for state in states}, {state.output for state in states}
        inputs = tuple(value for value in self.inputs if value.name not in read)
        outputs = tuple(value for value in self.outputs if value.name not in made)
        batch = self.batch and replace(self.batch, inputs=self.batch.inputs - read, outputs=self.batch.outputs - made)
        return Program(self.name, inputs, outputs, [*parts], batch)

    @property
    def refused(self) -> list[NodePlacement]:
        """The nodes that nothing implements."""
        return [placed for placed in self.placement if placed.where == "refused"]

    @property
    def integer_softmax(self) -> list[str]:
        """The nodes that are a Softmax on the hardware, which is in integers."""
        kinds = ("Softmax", "QLinearSoftmax")
        return [row.node for row in self.placement if row.where == "hardware" and row.op_type in kinds]

    def counts(self) -> dict[str, int]:
        """How many nodes run where."""
        found = Counter(placed.where for placed in self.placement)
        return {where: found[where] for where in ("hardware", "folded", "free", "host", "refused")}


def refuse(model: PartitionedModel) -> None:
    """`UnsupportedError` E4401 if a node is refused."""
    if model.refused:
        count = len(model.refused)
        lines = "".join(f"\n  node {row.node!r} ({row.op_type}): {row.reason}" for row in model.refused)
        raise UnsupportedError(
            "E4401",
            f"{count} node{'s' * (count > 1)} can run nowhere:{lines}",
            where=model.name,
            hint=model.refused[0].hint,
        )


def require_sized(batch: Batch | None, where: str) -> None:
    """`UsageError` E2542 for a batch of a size that the user has to say."""
    if batch is not None and batch.unsized:
        raise UsageError("E2542", batch.mixing, where=where, hint=batch.unsized)


def undecided(model: PartitionedModel, where: str) -> OnnxhwError | None:
    """The error about open dimensions of a model of which nothing runs on the hardware: E2542 or E4003, or None."""
    try:
        require_sized(model.batch, where)
    except UsageError as error:
        return error
    return dynamic(open_inputs(model), where)


def require_hardware(model: PartitionedModel, where: str) -> None:
    """If nothing runs on the hardware: `UnsupportedError` E4002 (a float model), E4003 (open dimensions) or E4006;
    `UsageError` E2542 for a batch whose size has to be said."""
    if not model.hardware:
        quantized = any(quantizes(row.op_type) for row in model.placement)
        if quantized and (error := undecided(model, where)):
            raise error
        rows = [row for row in model.placement if row.where in ("host", "refused") and row.reason]
        reasons = [f"node {row.node!r} ({row.op_type}): {row.reason}" for row in rows]
        raise nothing_on_hardware(where, quantized, reasons)


def open_inputs(model: PartitionedModel) -> dict[str, tuple[Dim, ...]]:
    """The dimensions of the inputs of known rank that have no default value, by name."""
    return {value.name: value.shape for value in model.inputs if value.shape is not None and not value.optional}


SHOWN = 8
"""Most reasons in a message: a third of a terminal's 24 lines."""


def nothing_on_hardware(where: str, quantized: bool, reasons: Sequence[str] = ()) -> UnsupportedError:
    """E4006 with the first reasons, or E4002 for a model that is not quantized."""
    if quantized:
        what = "no node of the model runs on the accelerator" + (":" if reasons else "")
        lines = "".join(f"\n  {reason}" for reason in reasons[:SHOWN])
        more = f"\n  and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
        return UnsupportedError("E4006", what + lines + more, where=where, hint="onnxhw check shows every node")
    return UnsupportedError(
        "E4002",
        "the model is not quantized: it has no QuantizeLinear node",
        where=where,
        hint="quantize it to int8 in QDQ format, e.g. with onnxhw quantize",
    )
