"""`Core`: the accelerator behind its host port."""

from typing import Any

from amaranth import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.memory import Space, host_stride
from ..isa.units import Unit, units_of
from .cells import DuplicatedRegister
from .control import ADDRESS_BITS, RunControl
from .delay import delay
from .fetch import Fetcher
from .load import LoadUnit
from .memory import ActMemory
from .stream import ArrayUnit
from .vector import VectorUnit
from .window import WindowUnit

ADDRESS = 24


class Core(wiring.Component):
    """One accelerator.

    The host port takes one access per cycle: 32-bit word ``host_addr`` of space ``host_space``; byte enables
    ``host_wstrb``. ``host_rvalid`` shows the answer `HOST_READ_LATENCY` cycles after ``host_re``; only CONTROL and
    ACT can be read. During a run CONTROL may be accessed, and ACT written where the run leaves it alone, as it does
    with its inputs while `input_free`: the run's own writes of a bank go first. 4 cycles after ``host_we``
    `host_waiting` tells that the word still waits; no other may follow before it has fallen.
    """

    HOST_READ_LATENCY = 2 + ActMemory.latency + 2

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "host_space": In(4),
                "host_addr": In(ADDRESS),
                "host_wdata": In(32),
                "host_wstrb": In(4),
                "host_we": In(1),
                "host_re": In(1),
                "host_rdata": Out(32),
                "host_rvalid": Out(1),
                "running": Out(1),
                "input_free": Out(1),
                "host_waiting": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.control = control = RunControl(config)
        m.submodules.act = act = ActMemory(config)
        # A cycle late, for it goes everywhere: a register for each unit and each fetcher.
        names = units_of(config)
        m.submodules.resting = resting = DuplicatedRegister(1, 2 * len(names), init=1)
        m.d.comb += resting.i.eq(~control.running)
        load, array, vector = LoadUnit(config), ArrayUnit(config), VectorUnit(config)
        units: dict[Unit, Any] = {Unit.LOAD: load, Unit.ARRAY: array, Unit.VECTOR: vector}
        if config.depthwise:
            units[Unit.DEPTHWISE] = WindowUnit(config)
        fetchers = {name: Fetcher(name, config) for name in names}
        for number, name in enumerate(names):
            unit, fetch = units[name], fetchers[name]
            m.submodules[name] = ResetInserter(resting.o[2 * number])(unit)
            m.submodules[f"{name}_fetch"] = ResetInserter(resting.o[2 * number + 1])(fetch)
            m.d.comb += [
                fetch.count.eq(getattr(control, f"count_{name}")),
                unit.valid.eq(fetch.valid),
                unit.bits.eq(fetch.bits),
                fetch.take.eq(unit.take),
                getattr(control, f"done_{name}").eq(unit.done),
                getattr(control, f"take_{name}").eq(unit.take),
                getattr(control, f"index_{name}").eq(fetch.index),
                getattr(control, f"waiting_{name}").eq(fetch.waiting & unit.free),
                *(getattr(fetch, f"completed_{n}").eq(getattr(control, f"completed_{n}")) for n in (*names, "reads")),
            ]
        if config.depthwise:
            self._window(m, control, act, load, units[Unit.DEPTHWISE], vector)
        m.d.comb += [
            self.running.eq(control.running),
            self.input_free.eq(control.input_free),
            self.host_waiting.eq(act.waiting),
            # weights: load -> array
            array.loaded.eq(load.started),
            load.taken.eq(array.taken),
            array.weights.eq(load.weights),
            array.row_enable.eq(load.row_enable),
            # activations
            act.read_array.eq(array.read),
            array.word.eq(act.word_array),
            act.read_a.eq(vector.read_a),
            vector.word_a.eq(act.word_a),
            act.read_b.eq(vector.read_b),
            vector.word_b.eq(act.word_b),
            act.write_vector.eq(vector.write),
            # accumulators: array -> vector
            array.drain_bank.eq(vector.drain_bank[0]),
            array.drain_row.eq(vector.drain_row),
            vector.drain.eq(array.drain),
            # counters
            control.starved_array.eq(array.starved),
            control.streaming_array.eq(array.streaming),
            control.vector_busy.eq(vector.busy | vector.take),
            control.done_reads.eq(vector.done_reads),
        ]
        self._host(m, control, act, load, vector, fetchers)
        return m

    def _window(
        self, m: Module, control: RunControl, act: ActMemory, load: LoadUnit, window: WindowUnit, vector: VectorUnit
    ) -> None:
        """The depthwise unit among the others."""
        m.d.comb += [
            window.loaded.eq(load.started_depthwise),
            load.taken_depthwise.eq(window.taken),
            window.weights.eq(load.weights),
            window.enable.eq(load.depthwise_enable),
            act.read_depthwise.eq(window.read),
            window.word.eq(act.word_depthwise),
            window.drain_row.eq(vector.drain_row),
            vector.drain_window.eq(window.drain),
            control.starved_depthwise.eq(window.starved),
            control.streaming_depthwise.eq(window.streaming),
        ]

    def _host(
        self,
        m: Module,
        control: RunControl,
        act: ActMemory,
        load: LoadUnit,
        vector: VectorUnit,
        fetchers: dict[Unit, Fetcher],
    ) -> None:
        """Decode host accesses."""
        # Cycle 1: the access, registered.
        space_1, address_1, data_1 = Signal(4), Signal(ADDRESS), Signal(32)
        strobe_1, write_1, read_1 = Signal(4), Signal(), Signal()
        m.d.sync += [
            space_1.eq(self.host_space),
            address_1.eq(self.host_addr),
            data_1.eq(self.host_wdata),
            strobe_1.eq(self.host_wstrb),
            write_1.eq(self.host_we),
            read_1.eq(self.host_re),
        ]

        # Cycle 2: registers of each memory's own, near its block RAMs.
        def own(target: Space, bits: int = ADDRESS) -> tuple[Signal, Signal, Signal]:
            """Address, data and write enable; it has no more than so many bits of address."""
            name = target.name.lower()
            address, data = Signal(bits, name=f"address_{name}"), Signal(32, name=f"data_{name}")
            write = Signal(name=f"write_{name}")
            m.d.sync += write.eq(write_1 & (space_1 == target) & ~address_1[bits:].any())
            with m.If(space_1 == target):  # else they would be equal in all spaces, and one register for all
                m.d.sync += [address.eq(address_1), data.eq(data_1)]
            return address, data, write

        def wide(target: Space, w_addr: Value, w_data: Value, w_en: Value, late: bool = False) -> tuple[Value, Value]:
            """Write lanes of a wide memory word; returns the word's address and the host word's place in it.

            A `late` memory is written in cycle 3: it has more block RAMs than one register reaches from afar.
            """
            address, data, write = own(target)
            strobe = Signal(4, name=f"strobe_{target.name.lower()}")
            with m.If(space_1 == target):
                m.d.sync += strobe.eq(strobe_1)
            stride = host_stride(len(w_data) // 8)
            shift = (stride - 1).bit_length()
            place = address[:shift] if shift else Signal(1, name=f"place_{target.name.lower()}")
            lanes = Signal(4 * stride, name=f"lanes_{target.name.lower()}")
            with m.If(write):
                m.d.comb += lanes.word_select(place, 4).eq(strobe)
            cycles, low = int(late), target.name.lower()
            m.d.comb += [
                w_addr.eq(delay(m, address[shift:], cycles, name=f"w_addr_{low}", reset=False)),
                w_en.eq(delay(m, lanes, cycles, name=f"w_en_{low}", reset=False)),
                w_data.eq(delay(m, data, cycles, name=f"w_data_{low}", reset=False).replicate(stride)),
            ]
            return address[shift:], place

        word_2, place_2 = wide(Space.ACT, act.write_host.addr, act.write_host.data, act.write_host.en)
        wide(Space.WEIGHT, load.w_addr, load.w_data, load.w_en, late=True)
        wide(Space.PARAM, vector.params.w_addr, vector.params.w_data, vector.params.w_en, late=True)
        address, data, write = own(Space.TABLE)
        m.d.comb += [vector.tables.w_addr.eq(address), vector.tables.w_data.eq(data), vector.tables.w_en.eq(write)]
        address, data, write = own(Space.CONTROL, ADDRESS_BITS)
        m.d.comb += [control.addr.eq(address), control.w_data.eq(data), control.w_en.eq(write)]
        for unit, fetch in fetchers.items():
            address, data, write = own(unit.microcode)
            m.d.comb += [fetch.w_addr.eq(address), fetch.w_data.eq(data), fetch.w_en.eq(write)]

        m.d.comb += act.read_host.addr.eq(word_2)
        self._host_reads(m, control, act, read_1, space_1, place_2)

    def _host_reads(
        self, m: Module, control: RunControl, act: ActMemory, read_1: Signal, space_1: Signal, place_2: Value
    ) -> None:
        """Answer the host: activation words take `ActMemory.latency` cycles, registers fewer."""
        read_act, from_act = Signal(), Signal()
        m.d.sync += [read_act.eq(read_1 & (space_1 == Space.ACT)), from_act.eq(space_1 == Space.ACT)]
        m.d.comb += act.read_host.en.eq(read_act)
        place_7 = delay(m, place_2, act.latency, name="place", reset=False)
        from_act_8 = delay(m, from_act, act.latency + 1, name="from_act", reset=False)
        register_7 = delay(m, control.r_data, act.latency - control.latency, name="register", reset=False)
        word_7 = Signal(32 * host_stride(self.config.word))
        value_8, register_8 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        m.d.comb += word_7.eq(act.word_host)
        m.d.sync += [
            value_8.eq(word_7.word_select(place_7, 32)),
            register_8.eq(register_7),
            self.host_rdata.eq(Mux(from_act_8, value_8, register_8)),
            self.host_rvalid.eq(delay(m, read_1, act.latency + 2, name="read")),
        ]
