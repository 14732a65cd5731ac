"""Memories are as large as needed, and larger only where that is free."""

import dataclasses

import pytest

from onnxhw.board import find
from onnxhw.devices import family_of
from onnxhw.explore.sizing import fitted, less_microcode, limited, with_spare_block_rams
from onnxhw.explore.workload import MemoryNeeds
from onnxhw.presets import PRESETS

ESTIMATE = family_of(find("ulx3s-25f")).estimate


@pytest.mark.parametrize("name", ["mini", "ulx3s-25f", "ulx3s-85f"])
@pytest.mark.parametrize("needs", [MemoryNeeds(1, 1, 1, 1, 1, 1, 1), MemoryNeeds(700, 33, 2, 513, 90, 300, 1100)])
def test_there_is_room_and_no_more_block_ram_than_for_the_needs(name, needs):
    config = PRESETS[name]
    made = fitted(config, needs, ESTIMATE)
    exact = dataclasses.replace(config, **{
        each: words for each, words in needs.record().items() if each != "depthwise_ucode" or config.depthwise
    })  # fmt: skip
    assert all(getattr(made, each) >= words for each, words in needs.record().items())
    assert ESTIMATE(made).ebr <= ESTIMATE(exact).ebr
    assert ESTIMATE(made).lut <= ESTIMATE(exact).lut


def test_microcode_fills_its_block_ram():
    made = fitted(PRESETS["mini"], MemoryNeeds(4096, 512, 2, 100, 100, 1, 100), ESTIMATE)
    assert (made.load_ucode, made.array_ucode, made.vector_ucode) == (512, 512, 512)


@pytest.mark.parametrize("most", [36, 56])
def test_a_memory_is_no_deeper_than_the_device_can_have_it(most):
    needs = MemoryNeeds(100, 1, 1, 1, 1, 1, 1)
    config = dataclasses.replace(PRESETS["mini"], weight_depth=1 << 17, vector_ucode=8192, tables=16)
    made = limited(config, needs, ESTIMATE, most)
    small = fitted(config, needs, ESTIMATE)
    for name in ("weight_depth", "param_depth", "load_ucode", "vector_ucode"):
        depth = getattr(made, name)
        assert ESTIMATE(dataclasses.replace(small, **{name: depth})).ebr <= most
        if depth < getattr(config, name):
            assert ESTIMATE(dataclasses.replace(small, **{name: depth + 16})).ebr > most
    assert made.weight_depth < config.weight_depth
    assert limited(config, needs, ESTIMATE, 10_000) == config


def test_the_largest_microcode_is_cut_until_all_fits():
    config, needs = dataclasses.replace(PRESETS["mini"]), MemoryNeeds(100, 1, 1, 1500, 600, 1, 2100)
    most = ESTIMATE(fitted(config, needs, ESTIMATE)).ebr
    assert less_microcode(config, needs, ESTIMATE, most) == needs
    assert less_microcode(config, needs, ESTIMATE, most - 2) == dataclasses.replace(needs, vector_ucode=1536)
    less = less_microcode(config, needs, ESTIMATE, most - 3)
    assert less == dataclasses.replace(needs, vector_ucode=1024)
    assert less_microcode(config, needs, ESTIMATE, 1) is None


def test_microcode_is_in_block_ram_where_one_is_left():
    config = dataclasses.replace(PRESETS["ulx3s-25f"], depthwise_ucode=352)
    in_luts = ESTIMATE(config)
    made = with_spare_block_rams(config, ESTIMATE, in_luts.ebr + 1)
    assert made == dataclasses.replace(config, depthwise_ucode=512)
    assert ESTIMATE(made).lut < in_luts.lut - 1000
    assert with_spare_block_rams(config, ESTIMATE, in_luts.ebr) == config
    without = dataclasses.replace(config, depthwise=0)
    assert with_spare_block_rams(without, ESTIMATE, 56) == without
