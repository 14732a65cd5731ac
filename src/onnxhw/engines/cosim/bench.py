"""The testbench inside the simulator: waits for jobs (see `engine`), drives the host port, answers.

Inputs change and outputs are read at the falling edge, half a cycle away from every register.
"""

import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, First, Timer, ValueChange

from onnxhw.engines.cosim.mailbox import Mailbox

PERIOD = 10
"""Nanoseconds per cycle."""
PIPELINE = 16
"""Cycles after which any access has had its effect."""
CHUNK = 4096
"""Cycles between looks at whether the engine still wants an answer."""
CONTROL, INPUT = 0, 11
FROM_MEMORY = ("external__request__ready", "external__w_next", "external__r_data", "external__r_valid", "started")
"""Inputs of a core with external memory, which there is none of here: a run without moves needs none."""
LATENCY = 21
PATIENCE = 1 << 18
"""Longer than it takes until a word of input is in its place, with all the padding that may come before it."""


class BenchError(Exception):
    """Something that the engine shall report; the testbench goes on."""


class HostPortDriver:
    """The core's host port."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut

    async def reset(self) -> None:
        """Two cycles of reset; afterwards every output must be known."""
        dut = self.dut
        memory = FROM_MEMORY if hasattr(dut, "started") else ()
        for name in ("host_space", "host_addr", "host_wdata", "host_wstrb", "host_we", "host_re", *memory):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        await self.cycles(3)
        dut.rst.value = 0
        await self.cycles(PIPELINE)
        for name in ("host_rdata", "host_rvalid", "running"):
            known(getattr(dut, name), name)

    async def cycles(self, count: int) -> None:
        """Wait; afterwards the clock has just fallen."""
        for _ in range(count):
            await FallingEdge(self.dut.clk)

    async def write(self, space: int, address: int, words: npt.NDArray[Any]) -> None:
        """One word per cycle; of INPUT, as the core takes them, until it has nothing left to do with them."""
        dut = self.dut
        dut.host_space.value, dut.host_wstrb.value = space, 15
        for i, word in enumerate(words.tolist()):
            while space == INPUT and known(dut.host_waiting, "host_waiting"):
                dut.host_we.value = 0
                await FallingEdge(dut.clk)
            dut.host_we.value, dut.host_addr.value, dut.host_wdata.value = 1, address + i, word
            await FallingEdge(dut.clk)
        dut.host_we.value = 0
        if space == INPUT:
            await self.cycles(PIPELINE)
            while known(dut.input_busy, "input_busy"):
                await FallingEdge(dut.clk)

    async def infer(self, after: int, words: npt.NDArray[Any]) -> None:
        """What the loader does with the last frame of input, the words from `after` on, whose CRC is right: cycle by
        cycle from its write of the register LATENCY on, until it starts the run."""
        dut, read, written, since = self.dut, 0, 0, 0
        coming, busy = [False, False], 1  # the loader hears of `input_busy` a cycle late
        dut.host_wstrb.value = 15
        for cycle in range(PATIENCE + len(words)):
            access = (CONTROL, LATENCY, 0) if cycle == 0 else None
            if coming.pop(0):
                access, written = (INPUT, after + written, int(words[written])), written + 1
            if read == len(words) and since >= 7 and not busy:
                await FallingEdge(dut.clk)
                break
            reads = read < len(words) and not known(dut.host_waiting, "host_waiting")
            coming.append(reads)
            since += read == len(words)
            read += reads
            busy = known(dut.input_busy, "input_busy")
            dut.host_we.value = int(access is not None)
            if access:
                dut.host_space.value, dut.host_addr.value, dut.host_wdata.value = access
            await FallingEdge(dut.clk)
        else:
            raise BenchError("the core does not take its inputs")
        await self.write(CONTROL, 0, np.array([1]))

    async def read(self, space: int, address: int, count: int) -> npt.NDArray[np.uint32]:
        """One word per cycle, pipelined."""
        dut = self.dut
        answers: list[int] = []
        dut.host_space.value = space
        for i in range(count + PIPELINE):
            dut.host_re.value, dut.host_addr.value = int(i < count), address + min(i, count - 1)
            await FallingEdge(dut.clk)
            if known(dut.host_rvalid, "host_rvalid"):
                answers.append(known(dut.host_rdata, f"host_rdata of space {space}, address {address + len(answers)}"))
        dut.host_re.value = 0
        if len(answers) != count:
            raise BenchError(f"the host port answered {len(answers)} of {count} reads of space {space}")
        return np.array(answers, np.uint32)


def known(signal: Any, name: str) -> int:
    """The value of a signal; a `BenchError` if it has unknown bits."""
    value = signal.value
    if not value.is_resolvable:
        raise BenchError(f"{name} is {value}: unknown bits")
    return int(value.to_unsigned()) if hasattr(value, "to_unsigned") else int(value)


def act_words(dut: Any, depth: int, size: int, addresses: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Words of activation memory, read in place, uint8 ``[n, size]``."""
    out = np.zeros((len(addresses), size), np.uint8)
    for i, address in enumerate(addresses.tolist()):
        bank = dut.act[f"bank_{address // depth}"]
        word = known(bank.memory[address % depth], f"activation word {address}")
        out[i] = np.frombuffer(word.to_bytes(size, "little"), np.uint8)
    return out


async def run(
    dut: Any, port: HostPortDriver, mailbox: Mailbox, facts: dict[str, Any], arrays: dict[str, Any]
) -> dict[str, Any]:
    """One run, with a look at activation memory whenever a wanted number of vector instructions has completed."""
    seen: dict[str, Any] = {}
    if len(arrays["inputs"]):
        await port.write(INPUT, 0, arrays["first_inputs"])
        await port.infer(facts["after"], arrays["inputs"])
    else:
        await port.write(CONTROL, 0, np.array([1]))
    for _ in range(PIPELINE):
        if known(dut.running, "running"):
            break
        await FallingEdge(dut.clk)
    else:
        raise BenchError("the core does not start to run")
    completed = dut.control.completed__vector__count
    left = facts["limit"]
    for stop, late in facts["stops"]:
        while known(dut.running, "running") and known(completed, "completed__vector") < stop and left > 0:
            left -= await _until(dut, ValueChange(completed), mailbox)
            await FallingEdge(dut.clk)
        if known(completed, "completed__vector") < stop:
            break
        for _ in range(late):
            await FallingEdge(dut.clk)
        seen[f"stop_{stop}"] = act_words(dut, facts["act_depth"], facts["word"], arrays[f"stop_{stop}"])
    while known(dut.running, "running") and left > 0:
        left -= await _until(dut, FallingEdge(dut.running), mailbox)
    await FallingEdge(dut.clk)
    return seen


async def _until(dut: Any, event: Any, mailbox: Mailbox) -> int:
    """Wait for an event, at most `CHUNK` cycles; the cycles counted against the limit if it did not come."""
    late = Timer(CHUNK * PERIOD, unit="ns")
    if await First(event, late) is late:
        if mailbox.stopped:
            raise BenchError("interrupted")
        return CHUNK
    return 0


async def answer(dut: Any, port: HostPortDriver, mailbox: Mailbox, number: int, problem: str) -> None:
    """Perform one job, unless there is a `problem` already."""
    facts, arrays = mailbox.take("job", number)
    found: dict[str, Any] = {}
    try:
        if problem:
            raise BenchError(problem)
        for i, (space, address) in enumerate(facts["writes"]):
            await port.write(space, address, arrays[f"write_{i}"])
        await port.cycles(PIPELINE)
        if facts["run"]:
            found |= await run(dut, port, mailbox, facts, arrays)
        for i, (space, address, count) in enumerate(facts["reads"]):
            found[f"read_{i}"] = await port.read(space, address, count)
    except BenchError as error:
        problem = str(error)
    mailbox.put("answer", number, {"problem": problem}, found)


@cocotb.test()
async def serve(dut: Any) -> None:
    """Answer jobs until told to stop, or until the engine's process is gone."""
    mailbox = Mailbox(Path(os.environ["ONNXHW_COSIM"]))
    parent = os.getppid()
    Clock(dut.clk, PERIOD, unit="ns").start(start_high=False)
    port = HostPortDriver(dut)
    problem = ""
    try:
        await port.reset()
    except BenchError as error:
        problem = f"after reset: {error}"
    number = 0
    while not mailbox.stopped and os.getppid() == parent:
        if mailbox.there("job", number):
            await answer(dut, port, mailbox, number, problem)
            number += 1
        else:
            mailbox.wait()
