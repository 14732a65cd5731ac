"""One program on every engine: the same outputs, tensors, cycles and counters."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from onnxhw import engines
from onnxhw.config import HwConfig
from onnxhw.engines.cosim.engine import CocotbEngine
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.errors import MismatchError, ToolError, UsageError
from onnxhw.ir.graph import Graph
from onnxhw.isa.memory import Control, Space
from onnxhw.program import DeviceProgram
from onnxhw.program.input_regions import latency

Make = Callable[[int], dict[str, np.ndarray]]

HARDWARE = [
    pytest.param("cxxrtl", marks=[pytest.mark.rtl]),
    pytest.param("cocotb", marks=[pytest.mark.rtl, pytest.mark.slow]),
]


@pytest.fixture(scope="module")
def cxxrtl(small: HwConfig) -> Iterator[CxxrtlEngine]:
    with CxxrtlEngine(small) as engine:
        yield engine


@pytest.mark.parametrize("name", ["emulator", *HARDWARE])
def test_equals_golden_on_every_tensor(
    name: str, small: HwConfig, graph: Graph, program: DeviceProgram, inputs: Make, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue({"cxxrtl": "compiler", "cocotb": "icarus"}.get(name, "small"))
    reference = engines.open("emulator", small)
    with engines.open("golden", small, graph=graph) as golden, engines.open(name, small) as engine:
        assert (golden.name, engine.name) == ("golden", name)
        for seed in range(2):
            want, got = golden.run(program, inputs(seed), True), engine.run(program, inputs(seed), True)
            assert set(got.tensors) == set(program.tensors)
            for tensor, values in got.tensors.items():
                assert np.array_equal(values, want.tensors[tensor]), tensor
            assert list(got.outputs) == [port.tensor for port in program.outputs]
            for tensor, values in got.outputs.items():
                assert values.dtype == np.int8
                assert np.array_equal(values, want.outputs[tensor]), tensor
            assert (got.cycles, got.latency) == (program.cycles, latency(program))
            assert got.counters == reference.run(program, inputs(seed)).counters
        assert not engine.run(program, inputs(0)).tensors


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_a_program_is_loaded_once(cxxrtl: CxxrtlEngine, program: DeviceProgram, inputs: Make) -> None:
    cxxrtl.run(program, inputs(0))
    before = cxxrtl.core.cycles
    cxxrtl.run(program, inputs(1))
    second = cxxrtl.core.cycles - before
    another = dataclasses.replace(program)
    before = cxxrtl.core.cycles
    cxxrtl.run(another, inputs(1))
    loading = len(program.weights) + program.params.size * 2
    assert cxxrtl.core.cycles - before - second >= loading


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_a_run_that_does_not_end_is_named(cxxrtl: CxxrtlEngine, program: DeviceProgram, inputs: Make) -> None:
    array = program.code["array"]
    stuck = dataclasses.replace(array[-1], after_vector=len(program.code["vector"]))
    hopeless = dataclasses.replace(program, code={**program.code, "array": [*array[:-1], stuck]})
    with pytest.raises(MismatchError, match=rf"E8402 .*watchdog.*array {len(array) - 1} of {len(array)}"):
        cxxrtl.run(hopeless, inputs(0))
    assert cxxrtl.run(program, inputs(0)).cycles == program.cycles


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_a_damaged_memory_is_seen(cxxrtl: CxxrtlEngine, program: DeviceProgram, inputs: Make) -> None:
    """The engine computes with what the core holds, not with what it was given."""
    good = cxxrtl.run(program, inputs(0), True)
    cxxrtl.core.write(Space.WEIGHT, 0, np.full(16, 0x7F7F7F7F, np.uint32))
    bad = cxxrtl.run(program, inputs(0), True)
    assert any(not np.array_equal(good.tensors[name], bad.tensors[name]) for name in good.tensors)
    cxxrtl._loaded = None
    again = cxxrtl.run(program, inputs(0), True)
    assert all(np.array_equal(good.tensors[name], again.tensors[name]) for name in good.tensors)


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_the_core_tells_its_configuration(cxxrtl: CxxrtlEngine, small: HwConfig) -> None:
    low, high = cxxrtl.core.control(Control.FINGERPRINT_LOW, 2)
    assert f"{high:08x}{low:08x}" == small.fingerprint


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_waveform_of_a_run(cxxrtl: CxxrtlEngine, program: DeviceProgram, inputs: Make, tmp_path: Path) -> None:
    result = cxxrtl.run(program, inputs(3), waves=tmp_path / "run.vcd", wave_cycles=200)
    plain = cxxrtl.run(program, inputs(3))
    assert result.cycles == plain.cycles
    assert all(np.array_equal(result.outputs[name], plain.outputs[name]) for name in plain.outputs)
    text = (tmp_path / "run.vcd").read_text()
    assert "completed__vector" in text
    assert text.count("\n#") <= 401


@pytest.mark.rtl
@pytest.mark.usefixtures("icarus")
def test_a_dead_simulator_is_named(small: HwConfig, program: DeviceProgram, inputs: Make) -> None:
    with CocotbEngine(small) as engine:
        engine._mailbox.stop()
        assert engine._thread is not None
        engine._thread.join()
        with pytest.raises(ToolError, match="E7413"):
            engine.run(program, inputs(0))


def test_missing_icarus_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small: HwConfig) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"E7410 .*apt install iverilog"):
        engines.open("cocotb", small)


def test_wrong_use(small: HwConfig, program: DeviceProgram, inputs: Make) -> None:
    with pytest.raises(UsageError, match=r"E2402 .*emulator, cxxrtl"):
        engines.open("verilator", small)
    with pytest.raises(UsageError, match="E2403"):
        engines.open("golden", small)
    with engines.open("emulator", small) as engine, pytest.raises(UsageError, match="E2126"):
        engine.run(program, {})


@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_a_closed_engine_says_so(small: HwConfig, program: DeviceProgram, inputs: Make) -> None:
    engine = CxxrtlEngine(small)
    engine.close()
    engine.close()
    with pytest.raises(UsageError, match="E2401"):
        engine.run(program, inputs(0))
