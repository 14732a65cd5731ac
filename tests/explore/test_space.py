"""The search space: every choice is a configuration, and the presets are choices."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.board import find
from onnxhw.explore.space import EXTERNAL, PARAMETERS, SearchSpace, restated
from onnxhw.presets import PRESETS

CHOICES = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in PARAMETERS.items()})
WITH_EXTERNAL = st.fixed_dictionaries(
    {name: st.sampled_from(values) for name, values in {**PARAMETERS, **EXTERNAL}.items()}
)


@given(CHOICES, st.sampled_from(["ulx3s-12f", "ulx3s-85f"]))
def test_every_choice_is_a_configuration_of_the_board_s_multipliers(values, board):
    """Whatever contradicts itself is repaired; of the array, as few multipliers as possible are fabric."""
    config = SearchSpace(find(board)).config(values)
    cells, have = config.array_dsps + config.lanes * config.requant_dsps, find(board).resources.dsp
    assert config.lanes <= values["lanes"]
    assert config.acc_bits == values["acc_bits"]
    assert cells <= have or config.array_dsps == 0
    assert config.array_fabric == 0 or cells == have or config.array_dsps == 0


@pytest.mark.parametrize(
    ("name", "board"), [("ulx3s-25f", "ulx3s-25f"), ("ulx3s-85f", "ulx3s-85f"), ("mini", "ulx3s-25f")]
)
def test_presets_are_choices_but_for_the_depths_that_programs_decide(name, board):
    space = SearchSpace(find(board))
    made = space.config(space.values(PRESETS[name]))
    depths = {field: getattr(PRESETS[name], field) for field in (
        "name", "weight_depth", "param_depth", "tables", "load_ucode", "array_ucode", "depthwise_ucode", "vector_ucode",
    )}  # fmt: skip
    assert dataclasses.replace(made, **depths) == PRESETS[name]


@given(WITH_EXTERNAL)
def test_with_external_memory_all_memories_are_chosen(values):
    board = find("ulx3s-85f")
    space = SearchSpace(board, board.external_memory())
    config = space.config(values)
    assert config.external == board.external_memory()
    assert 1024 * values["weight_kib"] - config.weight_word < config.weight_bytes <= 1024 * values["weight_kib"]
    for name in set(EXTERNAL) - {"weight_kib"}:
        assert getattr(config, name) == values[name]
    assert restated(values) == values


@pytest.mark.parametrize(("board", "names"), [
    ("ulx3s-25f", {"ulx3s-25f", "ulx3s-25f-dense", "mini"}), ("ulx3s-85f", {"ulx3s-85f", "ulx3s-85f-dense", "mini"}),
])  # fmt: skip
def test_presets_with_external_memory_are_choices_but_for_some_of_their_weight_memory(board, names):
    space = SearchSpace(find(board), find(board).external_memory())
    for name in names:
        wanted = space.with_external(PRESETS[name])
        made = space.config(space.values(wanted))
        assert 0.8 * wanted.weight_bytes < made.weight_bytes <= wanted.weight_bytes
        assert dataclasses.replace(made, name=f"{name}+sdram", weight_depth=wanted.weight_depth) == wanted


def test_what_is_no_choice_is_said_to_be_none():
    assert SearchSpace(find("ulx3s-85f")).values(dataclasses.replace(PRESETS["mini"], acc_bits=26)) is None
    first = {name: values[0] for name, values in PARAMETERS.items()}
    assert restated(first) == first
    with pytest.raises(ValueError, match="not a choice"):
        restated({**first, "word": 5})
    with pytest.raises(KeyError):
        restated({"word": 8})


@given(CHOICES, st.integers(0, 200))
def test_a_line_buffer_is_no_longer_than_rows_are(values, longest):
    made = SearchSpace(find("ulx3s-85f")).config(values)
    config = SearchSpace.with_line_buffer(made, longest)
    assert config.depthwise <= made.depthwise
    assert config.depthwise in PARAMETERS["depthwise"]
    assert config.depthwise == made.depthwise or longest <= config.depthwise
    assert bool(config.depthwise) == bool(longest and made.depthwise)
    assert dataclasses.replace(config, depthwise=made.depthwise, window_depth=made.window_depth) == made
    assert config.window_depth == (made.window_depth if config.depthwise else 512)


@given(CHOICES, st.integers(0, 300_000))
def test_activation_memory_has_room_for_the_largest_tensor_if_a_choice_has(values, least):
    made = SearchSpace(find("ulx3s-85f")).config(values)
    config = SearchSpace.with_activations(made, least)
    assert dataclasses.replace(config, act_depth=made.act_depth) == made
    deepest = dataclasses.replace(made, act_depth=max(PARAMETERS["act_depth"]))
    if config.act_depth != made.act_depth:
        assert config.act_depth in PARAMETERS["act_depth"]
        assert made.act_bytes < least <= config.act_bytes < 2 * least
    else:
        assert made.act_bytes >= least or deepest.act_bytes < least


def test_variations_keep_the_array_and_are_other_configurations():
    space = SearchSpace(find("ulx3s-25f"))
    values = space.values(PRESETS["ulx3s-25f"])
    found = space.variations(values, 40)
    assert found == space.variations(values, 40)
    assert 30 < len(found) <= 40
    assert len({space.config(each) for each in found} | {space.config(values)}) == len(found) + 1
    for each in found:
        assert all(each[name] == values[name] for name in ("word", "halved_rows", "cols", "inner_product"))
    changes = [sum(each[name] != values[name] for name in each) for each in found]
    assert min(changes) >= 1, "a value may be drawn again"
    assert max(changes) > 6


def test_neighbours_differ_in_one_parameter_and_are_other_configurations():
    space = SearchSpace(find("ulx3s-25f"))
    values = space.values(PRESETS["ulx3s-25f"])
    near = space.neighbours(values)
    assert all(sum(each[name] != values[name] for name in values) == 1 for each in near)
    configs = {space.config(each) for each in near}
    assert len(configs | {space.config(values)}) == len(near) + 1
    assert {each["load_rows"] for each in near} == {1, 2, 4, 8}, "more are no more than all rows"
    assert {each["cols"] for each in near} == set(PARAMETERS["cols"])
