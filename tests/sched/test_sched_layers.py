"""Which layer an instruction belongs to, where operations take turns on a unit."""

from typing import Any

from onnxhw.ir.graph import Graph
from onnxhw.isa.instructions import UNITS
from onnxhw.program import container
from onnxhw.program.parts import Program
from onnxhw.report.busy_cycles import busy
from onnxhw.report.profile import profile
from onnxhw.report.trace import layer_of
from onnxhw.sched import schedule


def graph(new_net: Any) -> Graph:
    """A residual block whose sums and pooling are made while later convolutions run, tile by tile."""
    net = new_net(3)
    x = net.input(4, 12, 12)
    a = net.conv(x, 12, (3, 3), pads=(1, 1, 1, 1))
    b = net.conv(x, 12, (1, 1))
    y = net.add(a, b)
    z = net.conv(y, 12, (3, 3), pads=(1, 1, 1, 1))
    result: Graph = net.graph(net.max_pool(net.add(z, y)))
    return result


def test_every_instruction_belongs_to_one_layer(new_net: Any, configure: Any) -> None:
    program = schedule(graph(new_net), configure(4, 4, 4, 2))
    for unit in UNITS:
        owned = [index for layer in program.layers for index in layer.indices(unit)]
        assert sorted(owned) == list(range(len(program.code[unit])))
        assert "" not in layer_of(program, unit)
    crossing = [
        (a.name, b.name)
        for a in program.layers
        for b in program.layers
        if a is not b and (p := a.span("vector")) and (q := b.span("vector")) and p[0] < q[0] < p[1]
    ]
    assert crossing, "no two layers take turns: this graph shows nothing"
    assert container.loads(container.dumps(Program.of(program))).only().layers == program.layers


def test_a_vector_instruction_belongs_to_the_layer_of_what_it_writes(new_net: Any, configure: Any) -> None:
    program = schedule(graph(new_net), configure(4, 4, 4, 2))
    for layer in program.layers:
        for index in layer.indices("vector"):
            base = program.code["vector"][index].o_base
            owners = {
                entry.op
                for entry in program.tensors.values()
                if index < entry.ready and base in entry.place.addresses(program.config.word)
            }
            assert owners & set(layer.name.split(" + ")), (index, layer.name)


def test_busy_cycles_of_the_layers_add_up_to_those_of_the_units(new_net: Any, configure: Any) -> None:
    program = schedule(graph(new_net), configure(4, 4, 4, 2))
    found = profile(program)
    units = {row.unit: row for row in found.units}
    assert sum(row.array_busy for row in found.layers) == units["array"].busy
    assert sum(row.vector_busy for row in found.layers) == units["vector"].busy
    assert sum(row.wait_weights for row in found.layers) == units["array"].weights
    assert sum(row.wait_array for row in found.layers) == units["array"].order
    assert sum(row.wait_vector for row in found.layers) == units["vector"].order
    assert sum(row.cycles for row in found.layers) == found.cycles
    for layer, row in zip(program.layers, found.layers, strict=True):
        own = [program.code["vector"][index] for index in layer.indices("vector")]
        assert row.vector_busy == sum(busy(instruction, program.config) for instruction in own)
