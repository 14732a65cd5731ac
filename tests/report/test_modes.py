"""Layers judged by the mode they run in: every cycle of a unit is the mode's work or a loss with one cause."""

import dataclasses
import random
from itertools import pairwise

import pytest

from onnxhw.config import HwConfig
from onnxhw.isa.external_instructions import kinds
from onnxhw.isa.instructions import UNITS, Array, Depthwise, Load, Vector, VectorOp
from onnxhw.isa.memory import Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.timing import pixels, tiles
from onnxhw.isa.units import Unit
from onnxhw.presets import preset
from onnxhw.program.model import Layer
from onnxhw.report.modes import LOSSES, LayerModes
from onnxhw.report.profile import profile

DEPTHWISE = HwConfig("depthwise", rows=4, cols=4, word=4, lanes=2, acc_bits=24, depthwise=32)


def made(program, code, layers, config=None):
    """`program` with other instructions."""
    config = config or program.config
    return dataclasses.replace(
        program, config=config, code=code, layers=layers, cycles=timeline(config, code).cycles,
        macs=sum(layer.macs for layer in layers),
    )  # fmt: skip


def uses(program):
    """Use of each layer, by name."""
    judge = LayerModes(program, timeline(program.config, program.code))
    return {layer.name: judge.use(layer) for layer in program.layers}


def shuffled(program, seed):
    """Layers that take turns on the units, with random sizes and orders."""
    draw = random.Random(seed)
    code = {unit: [] for unit in UNITS}
    layers = [Layer(f"layer{n}", "Conv", draw.randint(1, 3000), {unit: [] for unit in UNITS}) for n in range(4)]
    for _ in range(16):
        layer = draw.choice(layers)
        layer.instructions["load"].append((len(code["load"]), len(code["load"]) + 1))
        done = {f"after_{unit}": draw.randint(0, len(code[unit])) for unit in UNITS}
        rows, cols = draw.choice([(1, 1), (draw.randint(3, 9), draw.randint(3, 5))])
        fields = {"kh_n": draw.randint(1, 3), "oh_n": rows, "ow_n": cols, **done}
        strip = rows > 1 and not layer.instructions["array"] and draw.random() < 0.5
        streamed = Depthwise(sh=draw.randint(1, 2), **fields) if strip else Array(**fields)
        unit = streamed.UNIT
        layer.instructions[unit].append((len(code[unit]), len(code[unit]) + 1))
        code["load"].append(Load(tiles=tiles(streamed), depthwise=int(strip)))
        code[unit].append(streamed)
        for _ in range(draw.randint(0, 2)):
            layer = draw.choice(layers)
            layer.instructions["vector"].append((len(code["vector"]), len(code["vector"]) + 1))
            done = {f"after_{unit}": draw.randint(0, len(code[unit])) for unit in UNITS}
            code["vector"].append(Vector(oh_n=draw.randint(1, 9), groups=draw.randint(1, 3), **done))
    return made(program, code, layers, DEPTHWISE)


@pytest.mark.parametrize("seed", range(40))
def test_every_cycle_has_one_cause_and_one_layer(program, seed):
    drawn = shuffled(program, seed)
    times = timeline(drawn.config, drawn.code)
    found = uses(drawn)
    for use in found.values():
        assert use.window == use.least + sum(use.losses.values())
        assert min(use.losses.values()) >= 0, use
        assert use.losses.keys() <= LOSSES.keys()
        assert 0 <= use.share <= 1
    on_array = [found[layer.name] for layer in drawn.layers if layer.indices("array")]
    assert sum(use.window for use in on_array) == (times.spans["array"][-1].end if on_array else 0)


def test_a_full_array_at_work_uses_all_but_its_start(program):
    conv = uses(program)["conv1"]
    assert (conv.mode, conv.peak, conv.least) == ("array", 16, 9 * 4 * 8 * 64 // 16)
    assert conv.losses["edge"] == 0
    assert conv.share > 0.95


def test_rows_and_columns_without_a_channel_are_edges(program):
    half = dataclasses.replace(program.layers[0], macs=program.layers[0].macs // 2)
    before, after = uses(program)["conv1"], uses(dataclasses.replace(program, layers=[half]))["conv1"]
    assert after.losses["edge"] == before.least // 2 == after.least
    assert after.window == before.window


def test_one_pixel_per_weight_is_judged_by_weight_bytes(program):
    count = 30
    code = {
        "load": [Load(tiles=count)],
        "array": [Array(kt_n=count)],
        "vector": [Vector(op=VectorOp.DRAIN, groups=2, per_channel=1, after_array=1)],
    }
    layer = Layer("dense", "Conv", count * 16, {unit: [(0, 1)] for unit in UNITS})
    use = uses(made(program, code, [layer]))["dense"]
    assert (use.mode, use.peak) == ("weights", program.config.weight_word)
    assert use.least == count * program.config.tile_words
    assert use.share > 0.8


def slow_drain(program, words):
    """Two sums of the same accumulators with a drain of `words` words of 2 groups in between."""
    rows = {"oh_n": 8, "ow_n": 8}
    code = {
        "load": [Load(tiles=1), Load(tiles=1)],
        "array": [Array(**rows), Array(**rows, after_vector=1)],
        "vector": [Vector(op=VectorOp.DRAIN, oh_n=words, groups=2, per_channel=1, after_array=1)],
    }
    layer = Layer("conv", "Conv", 2 * 64 * 16, {"load": [(0, 2)], "array": [(0, 2)], "vector": [(0, 1)]})
    return made(program, code, [layer])


def test_waiting_for_a_drain_is_told_from_waiting_for_a_pipeline(program):
    drained = [uses(slow_drain(program, words))["conv"].losses for words in (1, 8, 32, 100)]
    for (few, less), (many, more) in pairwise(zip((1, 8, 32, 100), drained, strict=True)):
        assert more["drain"] - less["drain"] == 2 * (many - few)
        assert more["latency"] == less["latency"]
    assert drained[0]["latency"] > 20


def test_the_reason_names_the_largest_loss_first(program):
    row = profile(slow_drain(program, 400)).layers[0]
    assert row.of_mode < 0.6
    assert row.reason.startswith(f"{100 * row.losses['drain'] / row.window:.0f} % {LOSSES['drain']}")
    assert profile(program).layers[0].reason == "", "a layer that uses its mode well needs no reason"


def test_depthwise_strips_and_idle_lanes(program):
    strip = Depthwise(oh_n=10, ow_n=10, sh=2, sw=2)
    code = {"load": [Load(tiles=1, depthwise=1)], "depthwise": [strip]}
    layer = Layer("depthwise", "Conv", 9 * 2 * 16, {"load": [(0, 1)], "depthwise": [(0, 1)]})
    use = uses(made(program, code, [layer], DEPTHWISE))["depthwise"]
    assert (use.mode, use.peak) == ("depthwise", 9 * DEPTHWISE.depthwise_lanes)
    assert use.losses["strip"] == pixels(strip) - 16
    assert use.least == 16 * 2 // DEPTHWISE.depthwise_lanes
    assert use.losses["edge"] == 16 - use.least


def test_a_layer_of_the_vector_unit_alone(program):
    use = uses(program)["pool1"]
    assert (use.mode, use.least) == ("vector", 32 * (4 + 2 - 1))
    assert use.losses["latency"] > 0


def test_waiting_for_external_memory_is_told_from_waiting_for_a_pipeline(program):
    config = dataclasses.replace(DEPTHWISE, external=preset("mini+sdram").external)
    losses = []
    for words in (64, 640):
        load, array, vector, move = (kinds(config)[unit] for unit in (Unit.LOAD, Unit.ARRAY, Unit.VECTOR, Unit.MOVE))
        code = {
            Unit.LOAD: [load(tiles=1)],
            Unit.ARRAY: [array(oh_n=8, ow_n=8, after_move=1)],
            Unit.VECTOR: [vector(op=VectorOp.DRAIN, oh_n=64, after_array=1)],
            Unit.MOVE: [move(space=Space.ACT, word_n=words)],
        }
        layer = Layer("conv", "Conv", 64 * 16, {Unit.LOAD: [(0, 1)], Unit.ARRAY: [(0, 1)], Unit.VECTOR: [(0, 1)]})
        slow = made(program, code, [layer], config)
        losses.append((uses(slow)["conv"].losses, timeline(config, code).spans[Unit.MOVE][0]))
    (less, early), (more, late) = losses
    assert more["memory"] - less["memory"] == late.done - early.done > 2 * 500
    assert more["latency"] == less["latency"]
