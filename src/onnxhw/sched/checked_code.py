"""`CheckedCode`: the program that is being checked, and what its instructions touch."""

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import InternalError
from ..isa.external_instructions import Move
from ..isa.instructions import Array, Depthwise, Load, Vector
from ..isa.units import Unit
from ..program.model import DeviceProgram
from . import footprint
from .stream_state import StreamState, running

NEVER = 1 << 30
"""Later than any instruction."""


class CheckedCode:
    """The program and what its instructions touch."""

    def __init__(self, program: DeviceProgram) -> None:
        self.program = program
        self.config: HwConfig = program.config
        code, moves = program.code, bool(program.code.get(Unit.MOVE))
        # What moves bring may lie anywhere in its memory.
        self.weights = self.config.weight_depth if moves else len(program.weights)
        self.params = self.config.param_depth if moves else len(program.params)
        self.tables = self.config.tables if moves else len(program.tables)
        self.loads = [i for i in code.get(Unit.LOAD, ()) if isinstance(i, Load)]
        self.arrays = [i for i in code.get(Unit.ARRAY, ()) if isinstance(i, Array)]
        self.strips = [i for i in code.get(Unit.DEPTHWISE, ()) if isinstance(i, Depthwise)]
        self.vectors = [i for i in code.get(Unit.VECTOR, ()) if isinstance(i, Vector)]
        self.moves = [i for i in code.get(Unit.MOVE, ()) if isinstance(i, Move)]
        self.vector_reads = [footprint.vector_reads(i) for i in self.vectors]
        self.vector_writes = [footprint.vector_writes(i) for i in self.vectors]
        self.array = StreamState(Unit.ARRAY, self.arrays, self.loads, self.vectors, self.config)
        self.depthwise = StreamState(Unit.DEPTHWISE, self.strips, self.loads, self.vectors, self.config)
        self.streams = self.array, self.depthwise
        self.lanes_known: dict[tuple[bytes, int], npt.NDArray[np.bool_]] = {}
        self.vector_after_vector = running([i.after_vector for i in self.vectors])

    def fail(self, code: str, unit: Unit, index: int, what: str) -> NoReturn:
        """Raise `InternalError` of an instruction."""
        raise InternalError(code, what, where=f"{unit}[{index}] {self.program.code[unit][index].text()}")
