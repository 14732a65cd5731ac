"""The search space: every choice is a configuration, and the presets are choices."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.board import find
from onnxhw.explore.space import PARAMETERS, SearchSpace, restated
from onnxhw.presets import PRESETS

CHOICES = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in PARAMETERS.items()})


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


def test_what_is_no_choice_is_said_to_be_none():
    assert SearchSpace(find("ulx3s-85f")).values(dataclasses.replace(PRESETS["mini"], acc_bits=26)) is None
    first = {name: values[0] for name, values in PARAMETERS.items()}
    assert restated(first) == first
    with pytest.raises(ValueError, match="not a choice"):
        restated({**first, "word": 5})
    with pytest.raises(KeyError):
        restated({"word": 8})
