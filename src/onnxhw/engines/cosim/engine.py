"""`CocotbEngine`: a program on the core's Verilog in Icarus, with unknown values and its own testbench."""

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...closeable import Closeable
from ...config import HwConfig
from ...emu.emulator import check_inputs
from ...errors import MismatchError, ToolError, UsageError
from ...isa.early_instructions import early_of
from ...isa.memory import COUNTERS, ENDED, Control, Space
from ...isa.units import Unit
from ...program.host_words import tensor_of, tensor_spans
from ...program.input_regions import input_stream, last_frame
from ...program.model import DeviceProgram
from ...program.result import Result
from ..run_setup import budget, program_writes, require_able, watchdog_error
from ..verilog import to_verilog
from . import run as icarus
from .mailbox import Mailbox

BENCH = "onnxhw.engines.cosim.bench"
Progress = Callable[[str], None]
Write = tuple[int, int, npt.NDArray[np.uint32]]
Arrays = dict[str, npt.NDArray[Any]]


class CocotbEngine(Closeable):
    """The core's Verilog on Icarus: hundreds of times slower than CXXRTL, but it knows X and another simulator's rules.

    One simulator process lives as long as the engine; programs and tensors go to it through files in a temporary
    folder. Errors: `ToolError` E7410 no Icarus, E7411 no cocotb, E7412 it cannot compile, E7413 the simulation
    died; `MismatchError` E8402 the run does not end, E8403 unknown bits or a silent host port.
    """

    name = "cocotb"

    def __init__(self, config: HwConfig, progress: Progress | None = None) -> None:
        icarus.require()
        from ...rtl.core import Core

        self.config = config
        tell = progress or (lambda _: None)
        self._loaded: DeviceProgram | None = None
        self._number = 0
        self._outcome: icarus.Outcome | None = None
        self._error: ToolError | None = None
        self._thread: threading.Thread | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="onnxhw-cocotb-", ignore_cleanup_errors=True)
        self._mailbox = Mailbox(Path(self._folder.name))
        try:
            tell("verilog")
            text = to_verilog(Core(config), name="core")
            tell("icarus")
            icarus.build(text, "core", self._mailbox.folder)
        except BaseException:
            self._folder.cleanup()
            raise
        self._thread = threading.Thread(target=self._simulate, daemon=True)
        self._thread.start()

    def _simulate(self) -> None:
        folder = self._mailbox.folder
        try:
            self._outcome = icarus.simulate(BENCH, "core", folder, environment={"ONNXHW_COSIM": str(folder)})
        except ToolError as error:
            self._error = error

    def clear_state(self) -> None:
        """Nothing to do: states lie in external memory, which this engine does not have."""

    def close(self) -> None:
        """End the simulator."""
        if self._thread is not None:
            self._mailbox.stop()
            self._thread.join(timeout=30)
            self._thread = None
            self._folder.cleanup()

    def load(self, program: DeviceProgram) -> None:
        """Write a program into the core, unless it is the one that is loaded."""
        if self._loaded is not program:
            require_able(self.name, program)
            self._loaded = None
            self._do(list(program_writes(program)))
            self._loaded = program

    def run(self, program: DeviceProgram, inputs: Mapping[str, npt.NDArray[np.int8]], trace: bool = False) -> Result:
        """See `Engine.run`."""
        checked = check_inputs(program, inputs)
        self.load(program)
        ready: dict[int, list[str]] = {}
        for name, entry in program.tensors.items() if trace else ():
            ready.setdefault(entry.ready, []).append(name)
        addresses = {stop: self._addresses(program, names) for stop, names in ready.items()}
        reads = [(Space.CONTROL, int(Control.RUN), 1), (Space.CONTROL, int(Control.CYCLES), 2 + len(COUNTERS))]
        names = [port.tensor for port in program.outputs]
        spans = [tensor_spans(program, name) for name in names]
        reads += [(Space.ACT, *span) for pieces in spans for span in pieces]
        stream = input_stream(program, checked)
        late = {stop: early_of(program.code[Unit.VECTOR][stop - 1]) for stop in addresses if stop}
        found = self._do([], reads, inputs=stream, limit=budget(program) + 64, stops=addresses, late=late)

        status, (cycles, *counts, latency) = int(found["read_0"][0]), found["read_1"].tolist()
        if status != ENDED:
            raise watchdog_error(program, status, cycles, counts)
        pieces = iter([found[f"read_{i}"] for i in range(2, len(reads))])
        outputs = {
            name: tensor_of(program, name, [next(pieces) for _ in span])
            for name, span in zip(names, spans, strict=True)
        }
        tensors: dict[str, npt.NDArray[np.int8]] = {}
        for stop, names_here in ready.items():
            if stop and f"stop_{stop}" not in found:
                continue
            words = found[f"stop_{stop}"] if stop else None
            tensors |= self._unpack(program, names_here, words, checked)
        counters = dict(zip((register.name.lower() for register in COUNTERS), counts, strict=True))
        return Result(outputs, tensors, cycles, counters, latency if len(stream) else cycles)

    def _addresses(self, program: DeviceProgram, names: Sequence[str]) -> npt.NDArray[np.int64]:
        word = self.config.word
        return np.concatenate([program.tensors[name].place.addresses(word).reshape(-1) for name in names])

    def _unpack(
        self, program: DeviceProgram, names: Sequence[str], words: npt.NDArray[Any] | None, inputs: Arrays
    ) -> dict[str, npt.NDArray[np.int8]]:
        """Tensors that were complete at one stop; inputs (stop 0) are as they were written."""
        if words is None:
            return {name: inputs[name] for name in names if name in inputs}
        word, at, out = self.config.word, 0, {}
        for name in names:
            entry = program.tensors[name]
            shape = entry.place.addresses(word).shape
            size = int(np.prod(shape))
            out[name] = entry.restore(entry.place.unpack(words[at : at + size].reshape(*shape, word), word))
            at += size
        return out

    def _do(
        self,
        writes: Sequence[Write],
        reads: Sequence[tuple[int, int, int]] = (),
        *,
        inputs: npt.NDArray[np.uint32] | None = None,
        limit: int = 0,
        stops: Mapping[int, npt.NDArray[np.int64]] | None = None,
        late: Mapping[int, int] | None = None,
    ) -> Arrays:
        """One job for the testbench, a run if there are `inputs` (the words of their stream); its answer. It looks at
        words of activation memory by how many vector instructions have completed, so many cycles `late`."""
        if self._thread is None:
            raise UsageError("E2401", "the engine has been closed")
        wanted = {stop: addresses for stop, addresses in sorted((stops or {}).items()) if stop}
        facts = {
            "writes": [[int(space), int(address)] for space, address, _ in writes],
            "reads": [[int(item) for item in read] for read in reads],
            "run": inputs is not None, "limit": limit,
            "stops": [[stop, (late or {}).get(stop, 0)] for stop in wanted],
            "word": self.config.word, "act_depth": self.config.act_depth,
        }  # fmt: skip
        arrays: Arrays = {f"write_{i}": words for i, (_, _, words) in enumerate(writes)}
        if inputs is not None:
            after = last_frame(len(inputs))
            facts |= {"after": after}
            arrays |= {"inputs": inputs[after:], "first_inputs": inputs[:after]}
        arrays |= {f"stop_{stop}": addresses for stop, addresses in wanted.items()}
        number, self._number = self._number, self._number + 1
        self._mailbox.put("job", number, facts, arrays)
        while not self._mailbox.there("answer", number):
            if not self._thread.is_alive():
                log = self._outcome.log if self._outcome else ""
                end = "\n".join(log.rstrip().splitlines()[-icarus.TAIL :])
                raise self._error or ToolError("E7413", f"the simulation has ended; the end of its output:\n{end}")
            self._mailbox.wait()
        answer, found = self._mailbox.take("answer", number)
        if answer["problem"]:
            raise MismatchError("E8403", answer["problem"], where="Icarus")
        return found
