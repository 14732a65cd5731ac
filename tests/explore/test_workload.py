"""Cycles of a point are those that `compile` predicts."""

import dataclasses

import pytest
from onnx import TensorProto, helper

from onnxhw import compiler
from onnxhw.errors import UnsupportedError
from onnxhw.explore.workload import LEAST, MemoryNeeds, Workload, measure
from onnxhw.presets import PRESETS


@pytest.mark.parametrize("name", ["mini", "ulx3s-25f"])
def test_cycles_are_those_of_compile(name, workload, digits):
    config = PRESETS[name]
    found = measure(workload, config)
    program = compiler.compile(digits, config)
    assert found.cycles == (program.latency,)
    assert found.needs.weight_depth == len(program.programs[0].weights) <= config.weight_depth
    assert found.needs.vector_ucode <= config.vector_ucode


@pytest.mark.parametrize("change", [{"requant_dsps": 0}, {"array_fabric": 16}, {"weight_depth": 1 << 14, "tables": 16}])
def test_what_is_no_choice_of_the_schedule_changes_no_cycle(change, workload):
    config = PRESETS["mini"]
    assert measure(workload, dataclasses.replace(config, **change)) == measure(workload, config)


def test_more_cycles_per_result_of_fewer_lanes(workload):
    few = dataclasses.replace(PRESETS["mini"], lanes=1)
    assert measure(workload, few).cycles > measure(workload, PRESETS["mini"]).cycles


def test_two_models_are_two_figures(digits):
    both = Workload.of({"one": digits, "two": digits})
    (one, two), needs = (found := measure(both, PRESETS["mini"])).cycles, found.needs
    assert one == two
    assert needs == measure(Workload.of({"one": digits}), PRESETS["mini"]).needs
    assert both.names == ("one", "two")
    assert both.digest != Workload.of({"one": digits}).digest


def test_needs_together_are_the_larger_of_each():
    a, b = MemoryNeeds(1, 5, 2, 3, 3, 9, 1), MemoryNeeds(4, 1, 2, 3, 7, 2, 8)
    assert a.with_those_of(b) == b.with_those_of(a) == MemoryNeeds(4, 5, 2, 3, 7, 9, 8)
    assert a.with_those_of(LEAST) == a


def test_a_model_without_hardware_operations_is_refused():
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    with pytest.raises(UnsupportedError):
        Workload.of({"relu": helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()})
