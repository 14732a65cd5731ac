"""Properties of the timeline; that the hardware keeps to it is tested with the RTL."""

import dataclasses
from itertools import pairwise

import pytest

from onnxhw.config import PRESETS, HwConfig
from onnxhw.errors import InternalError
from onnxhw.isa import Array, Load, Vector
from onnxhw.isa.timing import MIN_TILE, SHADOW_READY, START, shadow_free, timeline


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
@pytest.mark.parametrize(("pixels", "columns"), [(1, 1), (3, 1), (40, 1), (1, 3), (1, 4), (2, 2)])
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
        least = [array.issue + START, starts[n] + SHADOW_READY]
        if n:
            again = columns * pixels < MIN_TILE or arrays[n - 1] != arrays[n]
            least.append(tiles[n - 1] + max(pixels, MIN_TILE if again else 1))
        assert tiles[n] == max(least)


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda config: config.name)
def test_an_instruction_waits_for_what_it_names(config: HwConfig) -> None:
    code = {
        "load": [Load(tiles=1), Load(tiles=1, after_vector=1)],
        "array": [Array(ow_n=20), Array(after_load=2)],
        "vector": [Vector(after_array=1), Vector(after_array=2, after_load=1)],
    }
    times = timeline(config, code)
    spans = times.spans
    for unit, units in spans.items():
        for span, instruction in zip(units, code[unit], strict=True):
            assert span.ready <= span.issue <= span.end < span.done < times.cycles
            for other in spans:
                if count := getattr(instruction, f"after_{other}"):
                    assert spans[other][count - 1].done <= span.ordered <= span.issue
        assert all(a.issue < b.issue for a, b in pairwise(units))


def test_waiting_less_is_never_slower() -> None:
    code = {"load": [Load(tiles=2)], "array": [Array(kw_n=2, ow_n=30)], "vector": [Vector(), Vector(after_array=1)]}
    config = PRESETS["ulx3s-85f"]
    cycles = timeline(config, code).cycles
    code["vector"][1] = dataclasses.replace(code["vector"][1], after_array=0)
    assert timeline(config, code).cycles < cycles
