"""The device cells: the portable form follows its definition, and each family's netlist equals the portable form."""

import random
import shutil

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from netlist import Step, simulate, synthesize_netlist

from onnxhw.board import families
from onnxhw.devices import block_ram, find_family
from onnxhw.isa.timing import MULTIPLY
from onnxhw.rtl.cells import BlockRam, DuplicatedRegister, Multiplier

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")

# width, depth, granularity: every aspect, lanes that do not fill bytes, odd widths and depths, two and three segments.
MEMORIES = [
    (32, 512, 8),
    (256, 512, 256),
    (36, 300, None),
    (64, 1024, 32),
    (24, 1500, 8),
    (32, 4096, 8),
    (8, 8192, 8),
    (5, 16384, None),
    (40, 5000, 20),
    (16, 12288, 16),
    (37, 2049, 37),
    (1, 2, None),
    (12, 20000, 3),
]
PRODUCTS = [(8, 8), (9, 9), (18, 18), (1, 5), (18, 2), (7, 13), (16, 11), (3, 4)]
BLOCKS = {"ecp5": len(PRODUCTS), "gowin": 4 + 8 // 2}
"""Multiplier blocks: one for each of the style "dsp"; of a GW2A one for each wide one of these, and half of one for
each of either style with operands of up to 9 bits."""


class Memories(wiring.Component):
    """Every memory of `MEMORIES` behind ports of its own."""

    def __init__(self, rng):
        self.rams = [
            BlockRam(width=width, depth=depth, granularity=granularity, init=init_words(rng, width, depth))
            for width, depth, granularity in MEMORIES
        ]
        ports = {}
        for index, ram in enumerate(self.rams):
            for name, member in ram.signature.members.items():
                ports[f"m{index}_{name}"] = member
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        for index, ram in enumerate(self.rams):
            m.submodules[f"ram_{index}"] = ram
            for name, member in ram.signature.members.items():
                outer, inner = getattr(self, f"m{index}_{name}"), getattr(ram, name)
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m


class Multipliers(wiring.Component):
    """Every product of `PRODUCTS` in both styles; the device's cell has `MULTIPLY` stages at least."""

    def __init__(self, stages):
        self.stages = {"dsp": max(stages, MULTIPLY), "fabric": stages}
        self.cells = {
            f"{style}{index}": Multiplier(*bits, style=style, stages=count)
            for index, bits in enumerate(PRODUCTS)
            for style, count in self.stages.items()
        }
        ports = {}
        for index, (a_bits, b_bits) in enumerate(PRODUCTS):
            ports |= {f"a{index}": In(a_bits), f"b{index}": In(b_bits)}
            ports |= {f"dsp{index}": Out(a_bits + b_bits), f"fabric{index}": Out(a_bits + b_bits)}
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        for name, cell in self.cells.items():
            m.submodules[name] = cell
            index = name.removeprefix("dsp").removeprefix("fabric")
            m.d.comb += [
                cell.a.eq(getattr(self, f"a{index}")),
                cell.b.eq(getattr(self, f"b{index}")),
                getattr(self, name).eq(cell.p),
            ]
        return m


def init_words(rng, width, depth):
    """Contents of the first and last addresses, so that every EBR's parameters are told apart."""
    return tuple(rng.getrandbits(width) for _ in range(min(depth, 2500)))


def addresses(rng, depth):
    """Addresses near segment borders, in a small busy range, or anywhere."""
    borders = [base + delta for base in range(0, depth, 2048) for delta in (-1, 0, 1) if 0 <= base + delta < depth]
    return rng.choice([rng.randrange(depth), rng.randrange(min(8, depth)), rng.choice(borders), depth - 1])


def memory_traffic(rng, cycles, *, collide):
    """Random reads and writes of all memories; without `collide` never of one address in one cycle."""
    steps = []
    for _ in range(cycles):
        values = {}
        for index, (width, depth, granularity) in enumerate(MEMORIES):
            lanes = -(-width // (granularity or width))
            write, read = addresses(rng, depth), addresses(rng, depth)
            enables = rng.choice([0, (1 << lanes) - 1, rng.getrandbits(lanes)])
            if read == write and not collide:
                enables = 0
            values |= {
                f"m{index}_w_addr": write, f"m{index}_r_addr": read,
                f"m{index}_w_data": rng.getrandbits(width), f"m{index}_w_en": enables,
            }  # fmt: skip
        steps.append(Step(values))
    return steps


def portable(design, steps, outputs):
    """Outputs before each rising edge of the portable form in Amaranth's simulator."""
    seen = []

    async def bench(ctx):
        for step in steps:
            for name, value in step.inputs.items():
                ctx.set(getattr(design, name), value)
            seen.append({name: ctx.get(getattr(design, name)) for name in outputs})
            await ctx.tick()

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


def memory_definition(rams, steps):
    """Outputs by the words of `BlockRam`'s docstring."""
    contents = [dict(enumerate(ram.init)) for ram in rams]
    read = [[0, 0] for _ in rams]
    seen = []
    for step in steps:
        seen.append({f"m{index}_r_data": values[0] for index, values in enumerate(read)})
        for index, ram in enumerate(rams):
            get = {name: step.inputs[f"m{index}_{name}"] for name in ("w_addr", "r_addr", "w_data", "w_en")}
            read[index] = [read[index][1], contents[index].get(get["r_addr"], 0)]
            word = contents[index].get(get["w_addr"], 0)
            for bit in range(ram.width):
                if get["w_en"] >> bit // ram.granularity & 1:
                    word = word & ~(1 << bit) | get["w_data"] & 1 << bit
            contents[index][get["w_addr"]] = word
    return seen


@pytest.fixture(scope="module")
def memories():
    return Memories(random.Random(1))


def test_portable_memory_follows_its_definition(memories):
    steps = memory_traffic(random.Random(2), 300, collide=True)
    names = [f"m{index}_r_data" for index in range(len(MEMORIES))]
    assert portable(memories, steps, names)[2:] == memory_definition(memories.rams, steps)[2:]


@pytest.fixture(scope="module", params=families())
def memory_netlist(request):
    return synthesize_netlist(Memories(random.Random(1)), family=request.param)


@needs_icarus
@pytest.mark.parametrize("collision", ["old", "x"])
def test_memory_netlist_equals_the_portable_form(memories, memory_netlist, collision):
    count = 1500 if memory_netlist.family == "ecp5" else 500
    steps = memory_traffic(random.Random(3), count, collide=collision == "old")
    found = simulate(memory_netlist, steps, collision=collision)
    wanted = memory_definition(memories.rams, steps)
    assert len(found) == len(wanted)
    for cycle, (one, other) in enumerate(zip(found[2:], wanted[2:], strict=True), start=2):
        assert one == other, f"cycle {cycle}"


@needs_icarus
def test_a_read_of_the_address_being_written_is_undefined_in_the_netlist(memory_netlist):
    hit = {"m0_w_addr": 5, "m0_r_addr": 5, "m0_w_data": 1, "m0_w_en": 1}
    found = simulate(memory_netlist, [Step(hit), Step({}), Step({})])
    assert found[2]["m0_r_data"] is None


def test_memory_netlist_has_the_planned_block_rams(memory_netlist):
    planned = sum(len(block_ram.plan(width, depth, granularity or width)) for width, depth, granularity in MEMORIES)
    assert memory_netlist.ebrs == planned


def test_plan_covers_every_bit_of_every_word_once():
    for width, depth, granularity in MEMORIES:
        tiles = block_ram.plan(width, depth, granularity or width)
        for address in (0, depth // 2, depth - 1):
            bits = [
                slot.low + bit
                for tile in tiles
                if tile.base <= address < tile.base + tile.words
                for slot in tile.slots
                for bit in range(slot.bits)
            ]
            assert sorted(bits) == list(range(width))


@pytest.mark.parametrize(
    ("width", "depth", "granularity", "count"),
    [(32, 512, 8, 1), (32, 512, 32, 1), (36, 512, 36, 1), (256, 512, 256, 8), (128, 2048, 8, 16), (128, 12288, 32, 96)],
)
def test_plan_uses_few_block_rams(width, depth, granularity, count):
    assert len(block_ram.plan(width, depth, granularity)) == count


def operands(rng, bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return rng.choice([low, high, low + 1, 0, -1, high // 3, rng.randint(low, high), rng.randint(low, high)])


@needs_icarus
@pytest.mark.parametrize(
    ("family", "stages", "count"),
    # Wide products of style "fabric" are Yosys' own on a GW2A, which take Icarus ten times as long.
    [("ecp5", 2, 1000), ("ecp5", MULTIPLY, 4000), ("ecp5", 4, 1000), ("gowin", 2, 100), ("gowin", MULTIPLY, 400)],
)
def test_multiplier_netlists_equal_the_product(family, stages, count):
    rng = random.Random(4)
    design = Multipliers(stages)
    pairs = [[(operands(rng, a), operands(rng, b)) for a, b in PRODUCTS] for _ in range(count)]
    steps = []
    for row in pairs:
        values = {}
        for index, (a, b) in enumerate(row):
            values |= {f"a{index}": a & (1 << PRODUCTS[index][0]) - 1, f"b{index}": b & (1 << PRODUCTS[index][1]) - 1}
        steps.append(Step(values))
    netlist = synthesize_netlist(design, family=family)
    assert netlist.dsps == BLOCKS[family]
    found = simulate(netlist, steps)
    for style, late in design.stages.items():
        for cycle in range(late, len(steps)):
            for index, (a_bits, b_bits) in enumerate(PRODUCTS):
                a, b = pairs[cycle - late][index]
                assert found[cycle][f"{style}{index}"] == a * b & (1 << (a_bits + b_bits)) - 1, (cycle, a, b)
    short = portable(design, steps[:100], list(netlist.outputs))
    late = max(design.stages.values())
    assert short[late:] == found[late:100]


@needs_icarus
@pytest.mark.parametrize("family", families())
def test_copies_stay_registers_of_their_own_where_wires_are_short(family):
    netlist = synthesize_netlist(OneDuplicated(DuplicatedRegister(3, 4, init=5)), family=family)
    apart = find_family(family).primitives(find_family(family).small, None).apart
    assert apart is (family == "ecp5")
    assert netlist.ffs == 3 * (4 if apart else 1)
    steps = [Step({"i": value}) for value in (3, 0, 7, 6, 1, 2)]
    found = simulate(netlist, steps)  # runs a few cycles of reset first, in which the input is 0
    expected = portable(OneDuplicated(DuplicatedRegister(3, 4, init=5)), steps, list(netlist.outputs))
    assert [row["o3"] for row in expected] == [5, 3, 0, 7, 6, 1]
    assert found[1:] == expected[1:]
    set_bits = {"ecp5": netlist.verilog.count('.REGSET("SET")'), "gowin": netlist.cells.get("DFFS")}[family]
    assert set_bits == 2 * (4 if apart else 1)


class OneDuplicated(wiring.Component):
    """DuplicatedRegister with a port for each."""

    def __init__(self, copies):
        self.copies = copies
        super().__init__({"i": In(copies.width)} | {f"o{j}": Out(copies.width) for j in range(copies.count)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.copies = self.copies
        m.d.comb += self.copies.i.eq(self.i)
        m.d.comb += [getattr(self, f"o{j}").eq(self.copies.o[j]) for j in range(self.copies.count)]
        return m


class OneFabricMultiplier(wiring.Component):
    """A single 8 x 8 multiplier."""

    def __init__(self, bits):
        self.cell = Multiplier(bits, bits, style="fabric")
        super().__init__(dict(self.cell.signature.members.items()))

    def elaborate(self, platform):
        m = Module()
        m.submodules.cell = self.cell
        m.d.comb += [self.cell.a.eq(self.a), self.cell.b.eq(self.b), self.p.eq(self.cell.p)]
        return m


@pytest.mark.parametrize(("bits", "limit"), [(8, 96), (9, 120)])
def test_fabric_multiplier_is_small_and_uses_no_multiplier_block(bits, limit):
    netlist = synthesize_netlist(OneFabricMultiplier(bits))
    assert netlist.dsps == 0
    assert netlist.luts <= limit
