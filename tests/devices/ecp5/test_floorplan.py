"""Sites of the floor plan: each once, on the device, as many as the preset needs."""

import dataclasses
import re
from itertools import pairwise

import pytest

from onnxhw.devices import block_ram
from onnxhw.devices import memories as core_memories
from onnxhw.devices.ecp5 import estimate
from onnxhw.devices.ecp5.cells import Cells
from onnxhw.devices.ecp5.floorplan import array_sites, lane_sites, memory_sites
from onnxhw.devices.ecp5.parts import die
from onnxhw.isa.timing import weight_skew
from onnxhw.presets import PRESETS, preset
from onnxhw.rtl.weight_blocks import blocks, tail

DEVICE = "LFE5U-85F"
MULTIPLIERS, BLOCK_RAMS = 156, 208
"""Of the LFE5U-85F, by its data sheet."""
SEVERAL = dataclasses.replace(
    PRESETS["ulx3s-85f"], name="several words per tile", cols=8, lanes=8, load_rows=2, weight_depth=6144,
    inner_product="plain", param_depth=512, requant_dsps=3, depthwise=128,
)  # fmt: skip
KEYS = {
    "activations": "act_", "accumulators": "acc_", "weights": "weights ",
    "load microcode": "ucode_load", "array microcode": "ucode_array", "vector microcode": "ucode_vector",
    "depthwise microcode": "ucode_depthwise", "parameters": "params",
}  # fmt: skip
"""How the names of the planned memories begin."""


@pytest.mark.parametrize("name", ["ulx3s-85f", "ulx3s-85f+sdram", "ulx3s-85f-dense", "ulx3s-45f", "mini"])
def test_sites_are_unique_and_as_many_as_the_preset_needs(name):
    config = preset(name)
    array = array_sites(DEVICE, config)
    first, rows = -1 if config.fast else 0, config.rows // config.element_rows
    assert set(array) == {(r, c) for r in range(rows) for c in range(first, config.cols)}
    dsp = [*array.values(), *(site for lane in lane_sites(DEVICE, config) for site in lane)]
    memories = memory_sites(DEVICE, config)
    ram = [site for sites in memories.values() for site in sites]
    banks = {f"act_{bank}" for bank in range(config.act_banks)}
    weights = {f"weights {block.name}" for block in blocks(config)}
    optional = {key for key in memories if key in ("params", "tables", "window", "link") or key.startswith("ucode_")}
    assert not memories or set(memories) - optional == {*banks, "acc_0", "acc_1", *weights}
    for name, (count, shape) in core_memories.memories(config).items() if memories else ():
        if name in KEYS:
            mine = [sites for key, sites in memories.items() if key.startswith(KEYS[name])]
            expected = [len(block_ram.plan(*shape))] * count
            if name == "activations":
                expected[0] = len(block_ram.plan(*shape, config.slices))
            assert [len(sites) for sites in mine] == expected or (not mine and KEYS[name] not in optional)
    assert len(memories.get("tables", ())) in (0, config.lanes)
    link = sum(len(block_ram.plan(*shape)) for shape in core_memories.LINK_MEMORIES)
    assert len(memories.get("link", ())) in (0, link)
    for sites, kind, available in ((dsp, r"MULT18_[0145]", MULTIPLIERS), (ram, r"EBR[0-3]", BLOCK_RAMS)):
        assert len(set(sites)) == len(sites) <= available
        assert all(re.fullmatch(rf"X\d+/Y\d+/{kind}", site) for site in sites)
    assert not {site.rsplit("/", 1)[0].split("/")[1] for site in dsp} & {site.split("/")[1] for site in ram}


def test_lanes_multipliers_lie_above_their_tables():
    """The array's last row has a column less than the others: it leaves every sixth site."""
    config = PRESETS["ulx3s-85f"]
    sites = [site.split("/")[:2] for (site,) in lane_sites(DEVICE, config)]
    columns = [int(x[1:]) for x, _ in sites]
    assert columns[:8] == [27, 41, 54, 70, 83, 97, 110, 114]
    assert [y for _, y in sites] == ["Y58"] * 11 + ["Y34"] * 4 + ["Y10"]
    tables = [int(site[1:].split("/")[0]) for site in memory_sites(DEVICE, config)["tables"]]
    assert max(abs(mine - theirs) for mine, theirs in zip(columns, tables, strict=True)) <= 26


def test_elements_of_fabric_leave_their_sites_to_the_lanes():
    whole = PRESETS["ulx3s-85f"]
    config = dataclasses.replace(whole, name="more in lanes", array_fabric=32, requant_dsps=3)
    array, lanes = array_sites(DEVICE, config), lane_sites(DEVICE, config)
    fabric = {(r, c) for r in range(8) for c in (-1, 13, 14, 15)}
    assert array == {place: site for place, site in array_sites(DEVICE, whole).items() if place not in fabric}
    assert [len(lane) for lane in lanes] == [3] * config.lanes
    placed = [*array.values(), *(site for lane in lanes for site in lane)]
    assert len(set(placed)) == len(placed) == config.array_dsps + 3 * config.lanes == 152


def test_the_link_lies_between_core_and_external_memory():
    """At the left of its row, or in the middle: the pins of the memory are at the right."""
    for name, low, high in (("ulx3s-85f", 0, 15), ("ulx3s-85f+sdram", 50, 70)):
        link = memory_sites(DEVICE, preset(name))["link"]
        assert all(low <= int(site[1:].split("/")[0]) <= high for site in link)


@pytest.mark.parametrize("unaligned", [0, 1, 2, 4])
@pytest.mark.parametrize("name", ["ulx3s-85f", "ulx3s-85f-dense", "ulx3s-45f", "ulx3s-25f", "mini"])
def test_slices_of_bank_0_have_places_of_their_own_or_none(name, unaligned):
    """Each slice takes whole block RAMs, which may be more than the other banks have."""
    config = dataclasses.replace(PRESETS[name], unaligned=unaligned)
    sites = memory_sites(DEVICE, config)
    needed = len(block_ram.plan(8 * config.word, config.act_depth, 8, config.slices))
    assert len(sites.get("act_0", ())) in (0, needed)
    placed = [site for found in sites.values() for site in found]
    assert len(set(placed)) == len(placed)
    if name == "mini":
        assert len(sites["act_0"]) == needed == {0: 2, 1: 4, 2: 2, 4: 2}[unaligned]


def test_nothing_is_placed_beside_a_row_of_the_device():
    """More block RAMs that serve lanes than a row has are left to the placer."""
    config = dataclasses.replace(PRESETS["ulx3s-85f"], act_depth=1024, window_depth=2048)
    sites = memory_sites(DEVICE, config)
    assert "window" not in sites
    assert "act_0" in sites
    placed = [site for found in sites.values() for site in found]
    assert len(set(placed)) == len(placed)


def test_weights_lie_in_the_last_row_where_activations_fill_the_first():
    sites = memory_sites(DEVICE, SEVERAL)
    rows = {key: {site.split("/")[1] for site in found} for key, found in sites.items()}
    assert rows["weights all"] == {"Y82"}
    assert rows["acc_0"] == rows["acc_1"] == {"Y46"}
    assert all(rows[f"act_{bank}"] == {"Y22", "Y46"} for bank in range(4))
    assert not {"params", "tables", "ucode_load"} & set(rows)


def test_microcode_lies_among_the_activations_where_a_weight_word_is_a_whole_tile():
    sites = memory_sites(DEVICE, PRESETS["ulx3s-85f"])
    rows = {key: {site.split("/")[1] for site in found} for key, found in sites.items()}
    assert all(rows[f"ucode_{unit}"] == {"Y22"} for unit in ("load", "array", "depthwise", "vector"))
    assert rows["params"] == rows["tables"] == rows["window"] == {"Y70"}


def test_no_block_ram_of_the_whole_array_is_left_to_the_placer():
    sites = memory_sites(DEVICE, PRESETS["ulx3s-85f"])
    assert sum(map(len, sites.values())) == estimate.estimate(PRESETS["ulx3s-85f"]).ebr


def test_blocks_of_whole_tile_words_lie_from_left_to_right_as_the_rows_of_the_array_do():
    sites = memory_sites(DEVICE, PRESETS["ulx3s-85f"])
    columns = [
        [int(found[0].split("/")[0][1:]) for key, found in sites.items() if key.startswith(f"weights row_{row}_")]
        for row in (0, 4, 8, 12)
    ]
    assert [len(group) for group in columns] == [16] * 4
    for left, right in pairwise(columns):
        assert max(left) < min(right) + 9  # groups of block RAMs are 9 columns apart
        assert sum(left) < sum(right)


def test_each_lane_has_its_parameters_and_its_table_side_by_side():
    sites = memory_sites(DEVICE, PRESETS["ulx3s-85f"])
    columns = {key: [int(site.split("/")[0][1:]) for site in sites[key]] for key in ("params", "tables")}
    lanes = [[*columns["params"][2 * q : 2 * q + 2], columns["tables"][q]] for q in range(8)]
    assert all(max(left) < min(right) for left, right in pairwise(lanes))


def test_an_unknown_device_and_a_large_array_get_no_plan():
    assert array_sites("LFE5U-25F", PRESETS["mini"]) == {}
    assert array_sites(DEVICE, dataclasses.replace(PRESETS["mini"], rows=64, cols=64, word=64, acc_bits=32)) == {}
    assert memory_sites("LFE5U-25F", PRESETS["mini"]) == {}


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda config: config.name)
def test_blocks_share_out_a_weight_word_and_are_not_read_too_late(config):
    parts = blocks(config)
    assert sorted(byte for part in parts for byte in part.bytes) == list(range(config.weight_word))
    for part in parts:
        assert all(part.later <= weight_skew(config, *divmod(byte, config.cols)) for byte in part.bytes)
        if config.tile_words == 1:
            assert len(block_ram.plan(8 * len(part.bytes), config.weight_depth - tail(config), 8)) == 1


def test_devices_with_transceivers_have_the_places_of_those_without():
    for name in ("ulx3s-85f", "ulx3s-85f-dense"):
        with_them, without = Cells("LFE5UM5G-85F", preset(name)).plan, Cells("LFE5U-85F", preset(name)).plan
        assert with_them == without
        assert len(with_them.multipliers) > 100
    assert die("LFE5UM-25F") == die("LFE5U-25F") == "LFE5U-25F"
    assert die("GW2A-18") == "GW2A-18"
