"""What the testbenches share: clock and reset, sampling half a cycle from the edge, X checks, random operands.

Inputs change and outputs are read at the falling edge. A value set before `tick` is seen by the registers in that
tick; a component of latency n shows its answer n ticks later.
"""

import json
import os
import random
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from onnxhw.config import HwConfig

RESET_CYCLES = 32
"""Of reset: what was unknown before has then left the registers that have none."""


def config() -> HwConfig:
    """The configuration under test."""
    return HwConfig.from_json(json.loads(os.environ["ONNXHW_SIM"])["config"])


def parameters() -> dict[str, Any]:
    """Further parameters of the bench."""
    found: dict[str, Any] = json.loads(os.environ["ONNXHW_SIM"])
    return found


def ports(dut: Any, width_of_inputs: dict[str, int] | None = None) -> dict[str, Any]:
    """The handles of the top module's ports, by name, without clock and reset."""
    names = json.loads(os.environ["ONNXHW_SIM"])["inputs" if width_of_inputs is None else "outputs"]
    return {name: getattr(dut, name) for name in names}


async def start(dut: Any) -> np.random.Generator:
    """Start the clock, hold every input at 0 through a reset, and check that no output is unknown afterwards.

    Returns a generator of numbers that depends on cocotb's seed.
    """
    # The first edge comes half a cycle later: no register may take an input that is not driven yet.
    Clock(dut.clk, 10, unit="ns").start(start_high=False)
    facts = json.loads(os.environ["ONNXHW_SIM"])
    for name in facts["inputs"]:
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for _ in range(RESET_CYCLES):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    await FallingEdge(dut.clk)
    for name in facts["outputs"]:
        known(getattr(dut, name), f"{name} after reset")
    cocotb.log.info("seed %s", cocotb.RANDOM_SEED if hasattr(cocotb, "RANDOM_SEED") else "of the run")
    return np.random.default_rng(random.getrandbits(64))


async def tick(dut: Any, count: int = 1) -> None:
    """Some cycles."""
    for _ in range(count):
        await FallingEdge(dut.clk)


def known(signal: Any, name: str = "") -> int:
    """The unsigned value; fails if a bit is unknown."""
    value = signal.value
    assert value.is_resolvable, f"{name or signal._name} is {value}"
    return int(value.to_unsigned()) if hasattr(value, "to_unsigned") else int(value)


def signed(signal: Any, bits: int, name: str = "") -> int:
    """The value in two's complement."""
    value = known(signal, name)
    return value - (1 << bits) if value >> (bits - 1) else value


def drive(signal: Any, value: int, bits: int) -> None:
    """Set an input to a value of either sign."""
    signal.value = int(value) & ((1 << bits) - 1)


def edgy(random_: np.random.Generator, bits: int, count: int = 1) -> list[int]:
    """Signed numbers: half of them uniform, half at or beside the extremes, zero and powers of two."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    out = []
    for _ in range(count):
        if random_.random() < 0.5:
            out.append(int(random_.integers(low, high, endpoint=True)))
        else:
            corner = random_.choice(
                [low, high, 0, 1 << int(random_.integers(0, bits - 1)), -(1 << int(random_.integers(0, bits)))]
            )
            out.append(int(min(high, max(low, int(corner) + int(random_.integers(-1, 2))))))
    return out
