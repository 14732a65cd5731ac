"""`Engine`, what every engine can do, and `open`, which makes one by name."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import UsageError
from ..ir.graph import Graph
from ..program.model import DeviceProgram
from ..program.result import Result

Tensors = Mapping[str, npt.NDArray[np.int8]]
Progress = Callable[[str], None]

NAMES = ("golden", "emulator", "cxxrtl", "cocotb")
"""The engines, from definition to hardware."""


class Engine(Protocol):
    """One rung of the exactness ladder.

    A program stays loaded between runs: the second inference only writes inputs. `name` is one of `NAMES`. A
    context manager; `close` releases processes and memory.
    """

    name: str

    def load(self, program: DeviceProgram) -> None:
        """Make a program ready; `run` does so by itself."""

    def run(self, program: DeviceProgram, inputs: Tensors, trace: bool = False) -> Result:
        """One inference: int8 inputs by tensor name; with `trace` every tensor of the tensor table."""

    def clear_state(self) -> None:
        """Begin again with the initial values of the loaded program's states (`DeviceProgram.states`)."""

    def close(self) -> None:
        """Release what the engine holds."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open(name: str, config: HwConfig, *, graph: Graph | None = None, progress: Progress | None = None) -> Engine:
    """The engine of that name for a configuration.

    Parameters
    ----------
    graph : the integer graph of the program; only "golden" needs it.
    progress : called with a line per stage of a long preparation.

    Errors: `UsageError` E2402 no such engine, E2403 golden without a graph; `ToolError` E74xx a tool is
    missing or failed.
    """
    if name == "golden":
        from .software import GoldenEngine

        if graph is None:
            raise UsageError("E2403", "the golden engine needs the model's graph", hint="give the .onnx file")
        return GoldenEngine(graph)
    if name == "emulator":
        from .software import EmulatorEngine

        return EmulatorEngine()
    if name == "cxxrtl":
        from .cxxrtl.engine import CxxrtlEngine

        return CxxrtlEngine(config, progress)
    if name == "cocotb":
        from .cosim.engine import CocotbEngine

        return CocotbEngine(config, progress)
    raise UsageError("E2402", f"no engine named {name!r}", hint=f"engines: {', '.join(NAMES)}")
