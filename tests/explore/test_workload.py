"""Cycles of a point are those that `compile` predicts."""

import dataclasses
import json
import math

import pytest
from onnx import TensorProto, helper

from onnxhw import compiler, sched
from onnxhw.board import find
from onnxhw.errors import DoesNotFitError, InternalError, UnsupportedError
from onnxhw.explore.workload import LEAST, Measured, MemoryNeeds, Workload, measure
from onnxhw.presets import PRESETS
from onnxhw.program.external_use import moved_bytes


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


def test_a_point_of_a_search_is_not_proved_and_one_of_the_front_is(workload, monkeypatch):
    config = PRESETS["mini"]
    expected = measure(workload, config)

    def refused(program):
        raise InternalError("E1201", "proved")

    monkeypatch.setattr("onnxhw.sched.scheduler.check", refused)
    assert measure(workload, config, exact=False) == expected
    with pytest.raises(InternalError, match="proved"):
        measure(workload, config)


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


@pytest.fixture(scope="module")
def larger(workload):
    """A configuration whose memories are smaller than the network, with external memory."""
    return dataclasses.replace(PRESETS["mini"], weight_depth=64, external=find("ulx3s-85f").external_memory())


def test_what_is_larger_than_the_chip_has_a_forecast_and_its_own_cycles(larger, workload, digits):
    program = compiler.compile(digits, larger)
    found, forecast = measure(workload, larger), measure(workload, larger, exact=False)
    assert (found.cycles, found.forecast) == ((program.latency,), False)
    assert found.moved == (sum(map(moved_bytes, program.programs)),) != (0,)
    assert (found.traffic, found.needs) == ((0,), LEAST), "its memories are what they are"
    assert forecast.forecast
    assert forecast.cycles == pytest.approx(found.cycles, rel=0.25)
    assert forecast.moved == pytest.approx(found.moved, rel=0.25)
    for each in (found, forecast):
        assert Measured.from_record(json.loads(json.dumps(each.record()))) == each


def test_on_the_chip_alone_external_memory_changes_a_cycle_or_two(larger, workload):
    roomy = dataclasses.replace(larger, weight_depth=PRESETS["mini"].weight_depth)
    found = measure(workload, roomy, exact=False)
    assert (found.moved, found.forecast) == ((0,), False)
    assert found.needs.weight_depth == measure(workload, PRESETS["mini"]).needs.weight_depth
    assert 0 <= found.cycles[0] - measure(workload, PRESETS["mini"]).cycles[0] <= 2


def test_weights_are_those_of_the_largest_part(workload):
    assert workload.weight_bytes == sum(op.weight.size for _, (graph,) in workload.models for op in graph.ops)
    small = dataclasses.replace(PRESETS["mini"], cols=2, lanes=2, load_rows=1)
    assert workload.least(small).weight_depth * small.weight_word >= workload.weight_bytes


def test_activations_are_those_of_the_largest_tensor(workload):
    tensors = [tensor for _, (graph,) in workload.models for tensor in graph.tensors.values()]
    assert workload.activation_bytes == max(math.prod(tensor.shape) for tensor in tensors)


def test_all_parts_are_begun_before_one_is_finished(digits, monkeypatch):
    begun, begin = [], sched.begin

    def begin_or_refuse(groups, config):
        begun.append(groups)
        if len(begun) == 2:
            raise DoesNotFitError("E5101", "of the second")
        return begin(groups, config)

    monkeypatch.setattr(sched, "begin", begin_or_refuse)
    monkeypatch.setattr("onnxhw.sched.scheduler.finish", lambda *_: pytest.fail("finished"))
    with pytest.raises(DoesNotFitError, match="of the second"):
        measure(Workload.of({"one": digits, "two": digits}), PRESETS["mini"])


def test_weights_parameters_and_tables_are_told_before_a_part_is_finished(digits, monkeypatch):
    both, told = Workload.of({"one": digits, "two": digits}), []
    needs = measure(both, PRESETS["mini"]).needs

    def too_much(needs):
        told.append(needs)
        raise DoesNotFitError("E5102", "too many weights")

    monkeypatch.setattr("onnxhw.sched.scheduler.finish", lambda *_: pytest.fail("finished"))
    with pytest.raises(DoesNotFitError, match="too many weights"):
        measure(both, PRESETS["mini"], require=too_much)
    known = {name: getattr(needs, name) for name in ("weight_depth", "param_depth", "tables")}
    assert told == [dataclasses.replace(LEAST, **known)]


def test_needs_together_are_the_larger_of_each():
    a, b = MemoryNeeds(1, 5, 2, 3, 3, 9, 1), MemoryNeeds(4, 1, 2, 3, 7, 2, 8)
    assert a.with_those_of(b) == b.with_those_of(a) == MemoryNeeds(4, 5, 2, 3, 7, 9, 8)
    assert a.with_those_of(LEAST) == a


def test_a_model_without_hardware_operations_is_refused():
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    with pytest.raises(UnsupportedError):
        Workload.of({"relu": helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()})
