"""Any design becomes a library: ports, memories, waveforms, the cache, and what is said when a tool fails."""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from onnxhw.engines.cxxrtl import build as module
from onnxhw.engines.cxxrtl import compiler
from onnxhw.engines.cxxrtl.build import Library, build, elaborate
from onnxhw.engines.cxxrtl.design import Design
from onnxhw.engines.cxxrtl.split import TranslationUnits, split, whole
from onnxhw.errors import InternalError, ToolError

pytestmark = [pytest.mark.rtl]

FILE = 1500
"""Characters per file of `Mill` that make a few of them; each takes a second or two to compile."""


class Mill(wiring.Component):
    """Something of everything the C++ splitter must handle: registers of several widths, wide and narrow memories, a
    memory read without a clock, and combinational outputs.

    Each enabled cycle: ``sum += value``; ``memory[count % 20] = sum * 3``; ``wide`` shifts ``value`` in; `now` is
    ``memory[at]`` at once, `later` a cycle later.
    """

    enable: In(1)
    value: In(16)
    at: In(5)
    sum: Out(40)
    wide: Out(100)
    now: Out(42)
    later: Out(42)
    twice: Out(17)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.store = store = memory.Memory(shape=42, depth=20, init=[7])
        write, now, later = store.write_port(), store.read_port(domain="comb"), store.read_port()
        count = Signal(range(20))
        with m.If(self.enable):
            m.d.sync += [self.sum.eq(self.sum + self.value), self.wide.eq((self.wide << 16) | self.value)]
            m.d.sync += count.eq(count + 1)
            with m.If(count == 19):
                m.d.sync += count.eq(0)
        m.d.comb += [
            write.en.eq(self.enable),
            write.addr.eq(count),
            write.data.eq(self.sum * 3),
            now.addr.eq(self.at),
            later.addr.eq(self.at),
            later.en.eq(1),
            self.now.eq(now.data),
            self.later.eq(later.data),
            self.twice.eq(self.value * 2),
        ]
        return m


class MillModel:
    """The same in Python."""

    def __init__(self) -> None:
        self.sum = self.wide = self.later = self.count = 0
        self.store = [7] + [0] * 19

    def outputs(self, value: int, at: int) -> dict[str, int]:
        """What the ports show in a cycle."""
        now = self.store[at] if at < 20 else 0
        return {"sum": self.sum, "wide": self.wide, "now": now, "later": self.later, "twice": 2 * value}

    def cycle(self, enable: int, value: int, at: int) -> None:
        """One clock edge."""
        self.later = self.store[at] if at < 20 else 0
        if enable:
            self.store[self.count] = self.sum * 3 % (1 << 42)
            self.count = (self.count + 1) % 20
            self.sum = (self.sum + value) % (1 << 40)
            self.wide = (self.wide << 16 | value) % (1 << 100)


@pytest.fixture(scope="module")
def mill(tmp_path_factory: pytest.TempPathFactory) -> Library:
    compiler.command()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONNXHW_CACHE", str(tmp_path_factory.mktemp("cache")))
        return build(lambda: elaborate(Mill()), waves=True)


def compare(design: Design, cycles: int, seed: int) -> None:
    rng, model = random.Random(seed), MillModel()
    for _ in range(cycles):
        enable, value, at = rng.random() < 0.8, rng.choice([0, 0xFFFF, rng.randrange(1 << 16)]), rng.randrange(32)
        design.set("enable", enable)
        design.set("value", value)
        design.set("at", at)
        assert {name: design.get(name) for name in ("sum", "wide", "now", "later", "twice")} == model.outputs(value, at)
        model.cycle(enable, value, at)
        design.step()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("seed", range(3))
def test_a_design_equals_its_model(mill: Library, seed: int) -> None:
    with Design(mill.path) as design:
        compare(design, 300, seed)
        assert design.cycles == 300


@pytest.mark.usefixtures("compiler")
def test_pieces_equal_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The splitter at its most eager, a statement per function and several files, and without it: it is the same."""
    made = []

    def eager(*args: Any, **_: Any) -> TranslationUnits:
        made.append(split(*args, 1, FILE))
        return made[-1]

    for name, cut, waves in (
        ("eager", eager, False),
        ("eager, waves", eager, True),
        ("whole", lambda *args, **_: whole(*args), False),
    ):
        monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path / name))
        monkeypatch.setattr(module, "split", cut)
        with Design(build(lambda: elaborate(Mill()), waves=waves).path) as design:
            compare(design, 200, 9)
    assert all(len(units.hot) > 2 for units in made)


@pytest.mark.usefixtures("compiler")
def test_memories_and_names(mill: Library) -> None:
    with Design(mill.path) as design:
        store = design.memory("top store")
        assert store.shape == (20, 2)
        assert store[0].tolist() == [7, 0]
        store[3] = [5, 1]
        design.set("at", 3)
        assert design.get("now") == 5 + (1 << 32)
        assert {"sum", "enable", "clk"} <= set(design.names())
        with pytest.raises(InternalError, match="E1402"):
            design.get("nothing")
        with pytest.raises(InternalError, match="E1404"):
            design.memory("sum")
    with pytest.raises(InternalError, match="E1401"):
        design.get("sum")


@pytest.mark.usefixtures("compiler")
def test_waveform_is_bounded_and_without_memories(mill: Library, tmp_path: Path) -> None:
    path = tmp_path / "mill.vcd"
    with Design(mill.path) as design:
        design.set("enable", 1)
        design.set("value", 1)
        design.waves(path, 10)
        design.step(500)
    text = path.read_text()
    assert " sum " in text
    assert " store" not in text
    times = [int(line[1:]) for line in text.splitlines() if line.startswith("#")]
    assert 90 <= max(times) <= 100
    with Design(mill.path) as design, pytest.raises(ToolError, match="E7406"):
        design.waves(tmp_path / "no" / "folder.vcd", 10)


@pytest.mark.usefixtures("compiler")
def test_second_build_comes_from_the_cache_and_a_broken_one_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    lines: list[str] = []

    def made() -> str:
        lines.append("made")
        return elaborate(Mill())

    first = build(made, parts={"design": "mill"}, progress=lines.append)
    assert lines[:3] == ["elaborate", "made", "yosys"]
    assert not first.cached
    lines.clear()
    second = build(made, parts={"design": "mill"}, progress=lines.append)
    assert (second.cached, second.path, lines) == (True, first.path, [])
    data = bytearray(first.path.read_bytes())
    data[len(data) // 2] ^= 1
    first.path.unlink()  # a library that is loaded must not change in place
    first.path.write_bytes(data)
    assert not build(made, parts={"design": "mill"}).cached
    assert build(made, parts={"design": "mill"}).cached
    assert not build(made, parts={"design": "another"}).cached


def test_code_for_one_processor_is_not_used_on_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the processor is known, and so in the key, is code made for it alone."""
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    commands: list[str] = []

    def run_all(given: Any, *args: Any, **more: Any) -> None:
        commands.extend(word for words in given for word in words)
        raise KeyboardInterrupt

    keys = []
    monkeypatch.setattr(module.cache, "key_of", lambda parts: keys.append(parts["machine"]) or "0" * 40)
    monkeypatch.setattr(compiler, "run_all", run_all)
    for processor in ("one avx2", ""):
        commands.clear()
        monkeypatch.setattr(compiler, "processor", lambda processor=processor: processor)
        with pytest.raises(KeyboardInterrupt):
            build(lambda: elaborate(Mill()))
        assert processor in keys[-1]
        assert ("-march=native" in commands) == bool(processor)
    assert keys[0] != keys[1]


def test_no_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"E7401 .*apt install g\+\+") as caught:
        build(lambda: elaborate(Mill()))
    assert caught.value.exit_status == 7
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolError, match=r"E7401 .*no-such-compiler"):
        build(lambda: elaborate(Mill()))


def test_failing_compiler_shows_the_end_of_its_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "cxx"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake 1 && exit 0\necho "out of cheese" >&2\nexit 3\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ToolError, match=r"(?s)E7403 .*status 3.*out of cheese"):
        build(lambda: elaborate(Mill()))
    assert not list((tmp_path / "cache").rglob("*.so")) if (tmp_path / "cache").exists() else True


def test_an_interrupt_kills_the_compilers(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    sleep = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    sleeper = [sys.executable, "-c", sleep]

    def interrupt(done: int) -> None:
        while not note.exists() or not note.read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiler.run_all([sleeper, [sys.executable, "-c", "pass"]], tmp_path, jobs=2, finished=interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_nothing_is_left_half_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a compilation leaves no entry and no scratch folder."""
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def interrupt(line: str) -> None:
        if "1 of" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(lambda: elaborate(Mill()), progress=interrupt)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
