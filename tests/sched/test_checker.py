"""The program checker: every scheduled program passes, every broken one is caught."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from onnxhw.emu import Machine, run
from onnxhw.emu.order import steps, time_order
from onnxhw.errors import InternalError
from onnxhw.isa.instructions import VectorOp
from onnxhw.isa.timeline import timeline
from onnxhw.program.model import DeviceProgram
from onnxhw.sched import check, schedule
from onnxhw.sched.input_release import check_window, input_free

PAD = (1, 1, 1, 1)


@pytest.fixture
def program(new_net: Any, configure: Any) -> DeviceProgram:
    """A residual network with several tiles and reused memory."""
    net = new_net(3)
    x = net.conv(net.input(3, 12, 10), 8, pads=PAD)
    x = net.add(x, net.conv(net.conv(x, 8, pads=PAD), 8, pads=PAD))
    y = net.max_pool(x, (2, 2), strides=(2, 2))
    y = net.table(net.conv(net.conv(y, 8, pads=PAD), 12, pads=PAD, strides=(2, 2)))
    graph = net.graph(net.conv(net.global_average(y), 5, (1, 1)))
    return schedule(graph, configure(4, 4, 4, 2, act_depth=256))


def broken(program: DeviceProgram, unit: str, index: int, **fields: int) -> DeviceProgram:
    """The program with some fields of one instruction changed, and the cycles that this gives."""
    code = {name: list(instructions) for name, instructions in program.code.items()}
    code[unit][index] = dataclasses.replace(code[unit][index], **fields)  # type: ignore[arg-type]  # all fields are int
    return dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles)


def refused(program: DeviceProgram, *codes: str) -> None:
    """The checker refuses, with one of these codes and the instruction's text."""
    with pytest.raises(InternalError) as caught:
        check(program)
    assert caught.value.code in codes, caught.value


def first(program: DeviceProgram, op: VectorOp) -> int:
    """Index of the first vector instruction of that operation."""
    return next(i for i, v in enumerate(program.code["vector"]) if v.op == op)


def test_a_scheduled_program_passes(program: DeviceProgram) -> None:
    assert check(program).cycles == program.cycles


def test_every_ordering_field_of_the_array_matters(program: DeviceProgram) -> None:
    after = 0
    for index, array in enumerate(program.code["array"]):
        if array.after_vector > after:  # else an earlier instruction has waited already
            refused(broken(program, "array", index, after_vector=after), "E1206", "E1207", "E1208", "E1209", "E1210")
            after = array.after_vector
    assert after


def test_every_ordering_field_of_the_vector_unit_matters(program: DeviceProgram) -> None:
    after = 0
    for index, vector in enumerate(program.code["vector"]):
        if vector.after_array > after:
            refused(broken(program, "vector", index, after_array=after), "E1206", "E1207", "E1208", "E1209", "E1210")
            after = vector.after_array
    assert after


def test_an_accumulator_bank_is_not_filled_before_it_has_been_read(program: DeviceProgram) -> None:
    known, waits = 0, 0
    for index, array in enumerate(program.code["array"]):
        if array.more_reads and array.after_vector + array.more_reads > known:
            for fewer in {0, array.more_reads - 1}:
                refused(broken(program, "array", index, more_reads=fewer), "E1208", "E1209", "E1210")
            waits += 1
        known = max(known, array.after_vector + array.more_reads)
    assert waits


def test_a_vector_instruction_waits_for_what_it_reads(program: DeviceProgram) -> None:
    waits = [index for index, vector in enumerate(program.code["vector"]) if vector.after_vector]
    assert waits
    for index in waits:
        after = program.code["vector"][index].after_vector
        if after > max(vector.after_vector for vector in program.code["vector"][:index]):
            refused(broken(program, "vector", index, after_vector=after - 1), "E1207")


def test_one_instruction_too_early_is_caught(program: DeviceProgram) -> None:
    for index, array in enumerate(program.code["array"]):
        before = max((a.after_vector for a in program.code["array"][:index]), default=0)
        if array.after_vector - 1 >= before:
            changed = broken(program, "array", index, after_vector=array.after_vector - 1)
            refused(changed, "E1206", "E1207", "E1208", "E1209", "E1210")


def test_shifted_addresses_are_caught(program: DeviceProgram) -> None:
    words = program.config.act_words
    drain = program.code["vector"][0]
    refused(broken(program, "vector", 0, o_base=words), "E1204")
    refused(broken(program, "vector", 0, o_base=drain.o_base + 400), "E1206", "E1207", "E1210", "E1211")
    refused(broken(program, "array", 0, act_base=words), "E1204")
    refused(broken(program, "array", 0, act_base=program.code["array"][0].act_base + 300), "E1206")


def test_column_tiles_together_are_checked(new_net: Any, configure: Any) -> None:
    net = new_net(5)
    x = net.conv(net.input(24, 1, 1), 40, (1, 1))
    program = schedule(net.graph(net.conv(x, 24, (1, 1))), configure(4, 4, 4, 2, load_rows=4))
    array = next(i for i, a in enumerate(program.code["array"]) if a.nt_n > 1)
    drain = next(i for i, v in enumerate(program.code["vector"]) if v.cb_n > 1)
    refused(broken(program, "load", array, nt_step=len(program.weights)), "E1204")
    refused(broken(program, "vector", drain, param_cb=len(program.params)), "E1204")
    refused(broken(program, "vector", drain, a_cb=program.config.acc_depth), "E1204")
    more = program.code["vector"][drain].cb_n + 1
    refused(broken(program, "vector", drain, cb_n=more), "E1204", "E1206", "E1207", "E1208", "E1211")


def test_rows_met_again_too_soon_are_caught(new_net: Any, configure: Any) -> None:
    net = new_net(6)
    program = schedule(net.graph(net.conv(net.input(24, 1, 1), 24, (1, 1))), configure(4, 4, 4, 2, load_rows=4))
    array, load = program.code["array"][0], program.code["load"][0]
    assert array.kt_n > 1
    assert array.nt_n > 1
    # The same channels in two instructions, the second of which begins with the row that the first ends with.
    parts = [dataclasses.replace(array, kt_n=1), dataclasses.replace(array, kt_n=array.kt_n - 1, accumulate=1)]
    loads = [dataclasses.replace(load, tiles=1), dataclasses.replace(load, tiles=load.tiles - 1)]
    vectors = [dataclasses.replace(v, after_array=v.after_array + 1) for v in program.code["vector"]]
    code = {"load": loads + program.code["load"][1:], "array": parts + program.code["array"][1:], "vector": vectors}
    split = dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles, input_free=(0, 0))
    check(split)
    at = {"acc_base": array.nt_n - 1}
    refused(broken(split, "array", 1, **at, nt_n=array.nt_n), "E1208")


def test_a_wrong_lane_group_is_caught(program: DeviceProgram) -> None:
    drain = next(i for i, v in enumerate(program.code["vector"]) if v.op == VectorOp.DRAIN and v.lane_group == 0)
    groups = program.config.lane_groups
    narrow = dataclasses.replace(program.code["vector"][drain], groups=1)
    assert program.code["vector"][drain].groups == groups
    refused(broken(program, "vector", drain, groups=narrow.groups), "E1206", "E1211")


def test_memories_are_bounded(program: DeviceProgram) -> None:
    depth = program.config.acc_depth
    refused(broken(program, "array", 0, acc_base=depth - 1), "E1204")
    refused(broken(program, "vector", 0, a_base=depth - 1), "E1204")
    refused(broken(program, "vector", 0, param_base=len(program.params)), "E1204")
    refused(broken(program, "load", 0, base=len(program.weights)), "E1204")
    table = next(i for i, v in enumerate(program.code["vector"]) if v.use_table)
    refused(broken(program, "vector", table, table_index=7), "E1204")
    refused(broken(program, "vector", 0, column_group=2), "E1204")
    array = dataclasses.replace(program.code["array"][0], sub_n=2)
    refused(dataclasses.replace(program, code={**program.code, "array": [array]}), "E1204")
    refused(broken(program, "vector", 0, kh_n=2), "E1204")
    refused(dataclasses.replace(program, weights=np.zeros((1 << 16, 4), np.uint8)), "E1203")
    small = dataclasses.replace(program.config, array_ucode=16)
    refused(dataclasses.replace(program, config=small), "E1203")


def test_fields_that_do_not_fit_their_bits_are_caught(program: DeviceProgram) -> None:
    refused(broken(program, "vector", 0, zy=200), "E1204")
    refused(broken(program, "vector", 0, oh_n=0), "E1204")


def test_a_wrong_accumulator_bank_is_caught(program: DeviceProgram) -> None:
    for unit in ("array", "vector"):
        bank = program.code[unit][0].acc_bank
        refused(broken(program, unit, 0, acc_bank=1 - bank), "E1208", "E1209")


def test_operands_in_one_bank_are_caught(program: DeviceProgram) -> None:
    index = first(program, VectorOp.ADD)
    add = program.code["vector"][index]
    refused(broken(program, "vector", index, b_base=add.a_base), "E1210")


@pytest.fixture
def product(new_net: Any, configure: Any) -> DeviceProgram:
    """A product of two inputs, channel by channel, in two groups of lanes."""
    net = new_net(6)
    y = net.mat_mul(net.input(4, 6, 6), net.input(4, 6, 6))
    return schedule(net.graph(y), configure(4, 4, 4, 2, act_depth=256))


def test_a_product_reads_what_it_may(product: DeviceProgram) -> None:
    dots = [index for index, i in enumerate(product.code["vector"]) if i.op == VectorOp.DOT]
    assert len(dots) >= 2
    for index in dots:
        i = product.code["vector"][index]
        assert (i.groups, i.kh_n, i.kw_n) == (1, 1, 6)
        refused(broken(product, "vector", index, b_base=i.a_base), "E1210")
        refused(broken(product, "vector", index, lane_group=0, groups=2), "E1204")
        refused(broken(product, "vector", index, kw_n=1023, kh_n=2, a_kw=0, b_kw=0), "E1204")
        refused(broken(product, "vector", index, kw_n=300, a_kw=0, b_kw=0, za=127, zb=-128), "E1204")
        refused(broken(product, "vector", index, kw_n=50), "E1204", "E1206")
        refused(broken(product, "vector", index, b_kw=-i.b_kw & 0xFFFF), "E1204", "E1206", "E1210")
        refused(broken(product, "vector", index, o_base=i.a_base), "E1207")


def test_tiles_loaded_are_tiles_taken(program: DeviceProgram) -> None:
    last = len(program.code["load"]) - 1
    tiles = program.code["load"][last].tiles
    with pytest.raises(InternalError, match="deadlock"):
        broken(program, "load", last, tiles=tiles - 1)
    code = {**program.code, "load": [*program.code["load"], program.code["load"][0]]}
    refused(dataclasses.replace(program, code=code), "E1205")


def test_the_predicted_cycles_must_be_right(program: DeviceProgram) -> None:
    refused(dataclasses.replace(program, cycles=program.cycles + 1), "E1201")


def test_the_tensor_table_must_be_right(program: DeviceProgram) -> None:
    output = program.outputs[0].tensor
    for name, entry in program.tensors.items():
        if entry.ready:
            early = dataclasses.replace(entry, ready=entry.ready - 1)
            refused(dataclasses.replace(program, tensors={**program.tensors, name: early}), "E1211", "E1206")
        if entry.last < len(program.code["vector"]):
            late = dataclasses.replace(entry, last=entry.last + 1)
            refused(dataclasses.replace(program, tensors={**program.tensors, name: late}), "E1211")
    place = dataclasses.replace(program.tensors[output].place, base=program.config.act_words)
    moved = dataclasses.replace(program.tensors[output], place=place)
    refused(dataclasses.replace(program, tensors={**program.tensors, output: moved}), "E1211")


def test_an_instruction_in_the_wrong_list_is_caught(program: DeviceProgram) -> None:
    code = {**program.code, "array": program.code["vector"]}
    refused(dataclasses.replace(program, code=code), "E1202")


def test_reading_the_bank_that_the_array_reads_is_caught(new_net: Any, configure: Any) -> None:
    # A table of one input runs beside a convolution of another; moved into one bank, both would read it at once.
    net = new_net(4)
    x, w = net.input(4, 8, 8), net.input(4, 8, 8)
    program = schedule(net.graph(net.conv(x, 8, pads=PAD), net.table(w)), configure(4, 4, 4, 2, act_depth=256))
    assert program.tensors[x].place.base // 256 != program.tensors[w].place.base // 256
    index = first(program, VectorOp.SUM)
    changed = broken(program, "vector", index, a_base=program.tensors[x].place.base)
    refused(changed, "E1210")


def test_the_window_of_the_inputs_is_as_early_as_it_can_be(program: DeviceProgram) -> None:
    """One instruction earlier on either unit, or no such instruction, is refused."""
    array, vector = program.input_free
    assert 0 < array < len(program.code["array"])
    for earlier in ((array - 1, vector), (array, vector - 1)):
        if min(earlier) >= 0 and earlier != (0, 0):
            refused(dataclasses.replace(program, input_free=earlier), "E1212")
    refused(dataclasses.replace(program, input_free=(len(program.code["array"]) + 1, vector)), "E1212")
    check(dataclasses.replace(program, input_free=(0, 0)))  # not known: nothing to prove
    late = next(i for i, v in enumerate(program.code["vector"]) if i >= vector and v.op == VectorOp.DRAIN)
    (port,) = program.inputs
    moved = dataclasses.replace(program.code["vector"][late], o_base=program.tensors[port.tensor].place.base)
    changed = {**program.code, "vector": [*program.code["vector"]]}
    changed["vector"][late] = moved
    with pytest.raises(InternalError, match="E1212"):
        check_window(dataclasses.replace(program, code=changed), timeline(program.config, changed))


def test_inputs_that_are_overwritten_once_they_are_free_change_no_result(program: DeviceProgram) -> None:
    (port,) = program.inputs
    place = program.tensors[port.tensor].place
    rng = np.random.default_rng(0)
    values = {port.tensor: rng.integers(-128, 128, place.shape).astype(np.int8)}
    wanted = run(program, values).outputs
    words = place.addresses(program.config.word).ravel()

    def outputs(free: tuple[int, int]) -> bool:
        machine = Machine(program.config)
        machine.load(program)
        machine.write(place, values[port.tensor])
        done = {"load": 0, "array": 0, "vector": 0}
        for unit, index in steps(program.code, time_order(timeline(program.config, program.code))):
            if done["array"] >= free[0] and done["vector"] >= free[1]:
                machine.act[words] = rng.integers(-128, 128, machine.act[words].shape)
            machine.execute(program.code[unit][index])
            done[unit] += 1
        return all(np.array_equal(machine.read(program.tensors[name].place), wanted[name]) for name in wanted)

    assert outputs(program.input_free)
    assert not outputs((program.input_free[0] - 1, program.input_free[1]))


def test_outputs_that_lie_where_inputs_do_leave_no_window(program: DeviceProgram) -> None:
    """The next inputs must then come after the outputs have been read."""
    (source,), (result,) = program.inputs, program.outputs
    moved = dataclasses.replace(program.tensors[result.tensor], place=program.tensors[source.tensor].place)
    shared = dataclasses.replace(program, tensors={**program.tensors, result.tensor: moved})
    times = timeline(shared.config, shared.code)
    assert input_free(shared, times) == (0, 0)
    with pytest.raises(InternalError, match=r"E1212 .*an output lies where an input does"):
        check_window(shared, times)
