"""Properties of the timeline; that the hardware keeps to it is tested with the RTL."""

import dataclasses
import random
from itertools import pairwise

import pytest

from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.isa import Array, Depthwise, Load, Vector
from onnxhw.isa.instructions import SETTINGS, Ordered, follows
from onnxhw.isa.timeline import _Run, timeline
from onnxhw.isa.timing import (
    FINISH,
    MIN_TILE,
    ORDER,
    START,
    array_latency,
    column_hops,
    shadow_free,
    shadow_ready,
    vector_issue_interval,
    vector_latency,
)
from onnxhw.presets import PRESETS


def test_an_empty_program_ends() -> None:
    assert (
        timeline(PRESETS["mini"], {}).cycles
        == timeline(PRESETS["mini"], {"load": [], "array": [], "vector": []}).cycles
    )


@pytest.mark.parametrize(
    ("code", "stuck"),
    [
        ({"array": [Array()]}, r"array\[0\]"),  # no weights
        ({"load": [Load(tiles=1)], "array": [Array(kw_n=2)]}, r"array\[0\]"),
        ({"load": [Load(tiles=2)], "array": []}, r"load\[0\]"),  # weights that nobody takes
        ({"vector": [Vector(after_vector=1)]}, r"vector\[0\]"),  # waits for itself
        ({"vector": [Vector(), Vector(after_array=1)]}, r"vector\[1\]"),  # waits for nobody
        (
            {"load": [Load(tiles=1, after_vector=1)], "array": [Array()], "vector": [Vector(after_array=1)]},
            r"load\[0\]",
        ),
    ],
)
def test_a_deadlock_is_named(code, stuck: str) -> None:
    with pytest.raises(InternalError, match=f"E1110 .*deadlock: {stuck} never issues: ") as caught:
        timeline(PRESETS["mini"], code)
    assert caught.value.code == "E1110"


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda config: config.name)
@pytest.mark.parametrize(("pixels", "columns"), [(1, 1), (3, 1), (40, 1), (1, 3), (1, 4), (2, 2), (1, 24), (9, 31)])
def test_the_recurrences_hold(config: HwConfig, pixels: int, columns: int) -> None:
    code = {
        "load": [
            Load(tiles=3, nt_n=columns, nt_step=9),
            Load(tiles=5, nt_n=columns, after_array=1),
            Load(tiles=1, nt_n=columns),
        ],
        "array": [
            Array(kw_n=2, nt_n=columns, ow_n=pixels),
            Array(kw_n=7, nt_n=columns, ow_n=pixels, after_vector=1),
        ],
        "vector": [Vector(after_array=1, ow_n=9)],
    }
    times = timeline(config, code)
    starts, tiles = times.load_start, times.tile_start
    loads = [unit for unit, tiles_of in enumerate((3, 5, 1)) for _ in range(tiles_of * columns)]
    arrays = [unit for unit, tiles_of in enumerate((2, 7)) for _ in range(tiles_of * columns)]
    for n in range(9 * columns):
        load, array = times.spans["load"][loads[n]], times.spans["array"][arrays[n]]
        least = [load.issue + 1]
        if n:
            least += [starts[n - 1] + config.tile_words, tiles[n - 1] + shadow_free(config)]
        assert starts[n] == max(least)
        least = [array.issue + START, starts[n] + shadow_ready(config)]
        if n:
            again = columns * pixels < MIN_TILE or arrays[n - 1] != arrays[n]
            least.append(tiles[n - 1] + max(pixels, MIN_TILE if again else 1))
        assert tiles[n] == max(least)


WINDOWS = dataclasses.replace(PRESETS["mini"], depthwise=16)


def test_tiles_of_both_units_share_the_load_unit() -> None:
    """In one order, of different numbers of weight words; each waits for the tile before of its own unit."""
    config = dataclasses.replace(WINDOWS, cols=16, rows=2, load_rows=2, word=16, unaligned=0)
    strip = Depthwise(oh_n=3, ow_n=3)
    code = {
        "load": [Load(tiles=2), Load(tiles=2, depthwise=1), Load(tiles=1)],
        "array": [Array(kw_n=2, ow_n=90), Array()],
        "depthwise": [strip, strip],
    }
    times = timeline(config, code)
    starts, tiles, windows = times.load_start, times.tile_start, times.window_start
    hops = column_hops(config.cols - 1) + 1
    ready = 4 + hops
    assert (config.tile_words, config.depthwise_words, shadow_ready(config, 1)) == (1, 5, ready)
    assert starts[1] == max(starts[0] + 1, tiles[0] + shadow_free(config))
    assert starts[2] == max(times.spans["load"][1].issue + 1, starts[1] + 1) < tiles[1]
    assert windows[0] == starts[2] + ready < tiles[1], "beside the array"
    assert starts[3] == max(starts[2] + 5, windows[0] + shadow_free(config, 1))
    assert windows[1] == max(times.spans["depthwise"][1].issue + START, windows[0] + 9, starts[3] + ready)
    assert starts[4] == max(times.spans["load"][2].issue + 1, starts[3] + 5, tiles[1] + shadow_free(config))
    for kind, unit in enumerate(("array", "depthwise")):
        assert {span.done - span.end for span in times.spans[unit]} == {array_latency(config, kind)}


@pytest.mark.parametrize("seed", range(12))
def test_tiles_in_a_row_are_those_one_after_the_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and instructions of random sizes, of both units, which wait for each other."""
    rng = random.Random(seed)
    config = dataclasses.replace(
        WINDOWS, rows=8, cols=4, word=8, load_rows=rng.choice([1, 2, 8]), unaligned=0,
        inner_product=rng.choice(["plain", "fast"]),
    )  # fmt: skip
    code: dict[str, list[Ordered]] = {"load": [], "array": [], "depthwise": [], "vector": []}
    for _ in range(12):
        if rng.random() < 0.3:
            code["depthwise"].append(Depthwise(oh_n=rng.randint(3, 9), ow_n=rng.randint(3, 9), kw_n=rng.randint(1, 9)))
            code["load"] += [Load(tiles=1, depthwise=1)] * code["depthwise"][-1].kw_n
            continue
        kt, nt = rng.randint(1, 40), rng.choice([1, 1, 2, 5])
        waits = {"after_vector": len(code["vector"])} if rng.random() < 0.4 else {}
        code["array"].append(Array(kt_n=kt, nt_n=nt, ow_n=rng.choice([1, 2, 7, 60]), **waits))
        cut = rng.randint(1, kt)
        code["load"] += [Load(tiles=each, nt_n=nt) for each in (cut, kt - cut) if each]
        code["vector"].append(Vector(ow_n=rng.randint(1, 90), after_array=len(code["array"])))
    found = timeline(config, code)
    monkeypatch.setattr(_Run, "_loads_and_tiles", lambda *_: 0)
    assert timeline(config, code) == found
    assert max(found.cycles, len(found.tile_start)) > 100


def test_tiles_without_loads_start_as_soon_as_their_unit_can() -> None:
    code = {"array": [Array(kw_n=3, ow_n=9)], "depthwise": [Depthwise(kw_n=2, after_array=1)]}
    times = timeline(WINDOWS, code, weightless=True)
    first = times.spans["array"][0].issue + START
    assert times.tile_start == [first, first + 9, first + 18]
    second = times.spans["array"][0].done + ORDER + START
    assert times.window_start == [second, second + 9]
    assert times.load_start == []


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda config: config.name)
def test_an_instruction_waits_for_what_it_names(config: HwConfig) -> None:
    code = {
        "load": [Load(tiles=1), Load(tiles=1, after_vector=1)],
        "array": [Array(ow_n=20), Array(after_load=2)],
        "vector": [Vector(after_array=1), Vector(after_array=2, after_load=1)],
    }
    if config.depthwise:
        code["load"].append(Load(tiles=1, depthwise=1))
        code["depthwise"] = [Depthwise(after_vector=1)]
        code["vector"].append(Vector(after_depthwise=1))
    times = timeline(config, code)
    spans = times.spans
    for unit, units in spans.items():
        for span, instruction in zip(units, code.get(unit, ()), strict=True):
            assert span.ready <= span.issue <= span.end < span.done < times.cycles
            for other in spans:
                if count := getattr(instruction, other.after, 0):
                    assert spans[other][count - 1].done <= span.ordered <= span.issue
        assert all(a.issue < b.issue for a, b in pairwise(units))


def test_a_vector_instruction_follows_one_of_the_same_settings() -> None:
    long, short = Vector(ow_n=100, groups=2), Vector(groups=2)
    other = Vector(groups=2, lo=-5)
    code = [long, short, short, other, other]
    times = timeline(PRESETS["mini"], {"vector": code})
    spans = times.spans["vector"]
    assert [follows(a, b) for a, b in pairwise(code)] == [True, True, False, True]
    assert spans[1].issue == spans[1].free == spans[0].end + 1 > spans[0].issue + vector_issue_interval()
    assert spans[2].issue == spans[2].free == spans[1].issue + vector_issue_interval() > spans[1].end + 1
    assert spans[3].issue == spans[3].free == spans[2].done
    assert all(span.done - span.end == vector_latency() for span in spans)
    assert times.cycles == spans[-1].done + FINISH


def test_settings_are_what_holds_still() -> None:
    """All but counts, addresses, ordering fields, and the bounds of windows."""
    for spec in Vector.specs():
        assert follows(Vector(), Vector(**{spec.name: getattr(Vector(), spec.name) + 1})) == (spec.name not in SETTINGS)
    assert set(SETTINGS) == {
        "op", "per_channel", "exact", "use_table", "table_index", "groups", "column_group", "lane_group",
        "za", "zb", "zy", "lo", "hi",
    }  # fmt: skip


def test_an_array_instruction_waits_for_reads() -> None:
    code = {
        "load": [Load(tiles=1), Load(tiles=1)],
        "array": [Array(), Array(more_reads=1)],
        "vector": [Vector(after_array=1, ow_n=90)],
    }
    spans = timeline(PRESETS["mini"], code).spans
    assert spans["array"][1].issue == spans["vector"][0].end + 1 + ORDER < spans["vector"][0].done
    stuck = {**code, "array": [Array(), Array(after_vector=1, more_reads=1)]}
    with pytest.raises(InternalError, match=r"E1110 .*deadlock: load\[1\]|E1110 .*deadlock: array\[1\]"):
        timeline(PRESETS["mini"], stuck)


def test_waiting_less_is_never_slower() -> None:
    code = {"load": [Load(tiles=2)], "array": [Array(kw_n=2, ow_n=30)], "vector": [Vector(), Vector(after_array=1)]}
    config = PRESETS["ulx3s-85f"]
    cycles = timeline(config, code).cycles
    code["vector"][1] = dataclasses.replace(code["vector"][1], after_array=0)
    assert timeline(config, code).cycles < cycles


def test_a_changed_copy_is_what_replace_makes() -> None:
    before = Vector(a_base=3, oh_n=4)
    changed = before.but(a_base=9, after_array=2)
    assert changed == dataclasses.replace(before, a_base=9, after_array=2)
    assert (type(changed), before.a_base, hash(changed)) == (Vector, 3, hash(dataclasses.replace(changed)))
