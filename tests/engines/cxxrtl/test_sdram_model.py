"""The two models of the memory, C++ and Verilog, say the same of any trace: the violation, and what DQ shows."""

import random
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "rtl"))

import external_mutants as mutants
from external_bench import SMALL

from onnxhw.engines.cxxrtl.sdram_model import SdramModel, SdramNumbers

NUMBERS = SdramNumbers.of(SMALL)
REPLAY = Path(__file__).with_name("sdram_replay.v")


@pytest.fixture(scope="module")
def verilog(tmp_path_factory):
    """Runs a trace in Icarus: the violation, and DQ of each cycle as text."""
    if not shutil.which("iverilog"):
        pytest.skip("iverilog is not installed")
    folder = tmp_path_factory.mktemp("sdram")
    source = resources.files("onnxhw.engines.cosim").joinpath("sdram.v")
    values = [f"-Preplay.{name.upper()}={getattr(NUMBERS, name)}" for name in SdramNumbers.__dataclass_fields__]
    command = ["iverilog", "-g2012", "-s", "replay", "-o", "replay.vvp", *values, str(REPLAY), str(source)]
    subprocess.run(command, cwd=folder, check=True)

    def run(trace):
        np.savetxt(folder / "trace.hex", trace, fmt="%x")
        words = ["vvp", "replay.vvp", "+trace=trace.hex", "+out=out.txt"]
        said = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
        found = re.search(r"SDRAM: cycle (\d+): (\S+)", said)
        return (int(found[1]), found[2]) if found else None, (folder / "out.txt").read_text().split()

    return run


def both(trace, verilog):
    """Compare the two models; the rule that was violated, if any."""
    with SdramModel(NUMBERS) as memory:
        dq, known = memory.run(trace)
        told = re.match(r"cycle (\d+): (\S+):", memory.violation)
    violation, levels = verilog(trace)
    assert violation == ((int(told[1]), told[2]) if told else None)
    # In the cycle of a violation the bus may be in dispute.
    for cycle in range(len(dq) - (1 if told else 0)):
        level = levels[cycle]
        if known[cycle]:
            assert level == f"{dq[cycle]:016b}", cycle
        elif not trace[cycle, mutants.DRIVEN]:
            assert set(level) <= {"x", "z"}, cycle
    return violation


@pytest.fixture(scope="module")
def right():
    return {cycles: mutants.traced(SMALL, cycles).pins() for cycles in (mutants.SHORT, mutants.LONG)}


def test_of_a_right_controller(right, verilog):
    for trace in right.values():
        assert both(trace, verilog) is None


@pytest.mark.parametrize("name", mutants.PINS)
def test_of_mutations(name, right, verilog):
    change, finds = mutants.PINS[name]
    trace = right[mutants.LONG if name in mutants.LONG_ONES else mutants.SHORT].copy()
    change(trace)
    violation = both(trace, verilog)
    assert (violation is None) == (finds in ("words", "lost"))


@pytest.mark.parametrize("seed", range(20))
def test_of_any_levels(seed, right, verilog):
    """Commands at random places of a right trace."""
    rng = random.Random(seed)
    trace = right[mutants.SHORT].copy()
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(60, len(trace))
        trace[at, rng.randrange(mutants.RAS, mutants.DRIVEN)] ^= 1 << rng.randrange(2)
        trace[at, mutants.DQM] &= 3
        trace[:, mutants.CAS : mutants.WE + 1] &= 1
        trace[:, mutants.RAS] &= 1
    both(trace, verilog)
