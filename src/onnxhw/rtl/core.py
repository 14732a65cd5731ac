"""`Core`: the accelerator behind its host port."""

from typing import Any

from amaranth import Module, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.instructions import UNITS
from ..isa.memory import Space, host_stride, word_bytes
from .control import ADDRESS_BITS, RunControl
from .delay import delay
from .fetch import Fetcher
from .load import LoadUnit
from .memory import ActMemory
from .stream import ArrayUnit
from .vector import VectorUnit

ADDRESS = 24


class Core(wiring.Component):
    """One accelerator.

    The host port takes one access per cycle: 32-bit word ``host_addr`` of space ``host_space``; byte enables
    ``host_wstrb``. ``host_rvalid`` shows the answer `HOST_READ_LATENCY` cycles after ``host_re``; only CONTROL and
    ACT can be read. During a run only CONTROL may be accessed.
    """

    HOST_READ_LATENCY = 1 + ActMemory.latency + 2

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
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.control = control = RunControl(config)
        m.submodules.act = act = ActMemory(config)
        idle = ResetInserter(~control.running)
        load, array, vector = LoadUnit(config), ArrayUnit(config), VectorUnit(config)
        units: dict[str, Any] = {"load": load, "array": array, "vector": vector}
        depths = {"load": config.load_ucode, "array": config.array_ucode, "vector": config.vector_ucode}
        fetchers = {name: Fetcher(UNITS[name], depths[name]) for name in units}
        for name, unit in units.items():
            fetch = fetchers[name]
            m.submodules[name] = idle(unit)
            m.submodules[f"{name}_fetch"] = idle(fetch)
            m.d.comb += [
                fetch.count.eq(getattr(control, f"count_{name}")),
                unit.valid.eq(fetch.valid),
                unit.bits.eq(fetch.bits),
                fetch.take.eq(unit.take),
                getattr(control, f"done_{name}").eq(unit.done),
                getattr(control, f"take_{name}").eq(unit.take),
                getattr(control, f"index_{name}").eq(fetch.index),
                getattr(control, f"waiting_{name}").eq(fetch.waiting & unit.free),
                *(getattr(fetch, f"completed_{n}").eq(getattr(control, f"completed_{n}")) for n in UNITS),
            ]
        m.d.comb += [
            self.running.eq(control.running),
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
            array.drain_bank.eq(vector.drain_bank),
            array.drain_row.eq(vector.drain_row),
            vector.drain.eq(array.drain),
            # counters
            control.starved.eq(array.starved),
            control.streaming.eq(array.streaming),
            control.vector_busy.eq(vector.busy | vector.take),
        ]
        self._parameters(m, vector, fetchers["vector"])
        self._host(m, control, act, load, vector, fetchers)
        return m

    def _parameters(self, m: Module, vector: VectorUnit, fetch: Fetcher) -> None:
        """The vector unit's fetch goes on with the instruction's parameter entries."""
        params = vector.params
        asked = Signal()  # the parameters of the instruction in `fetch` have been asked for
        go = Signal()
        m.d.comb += go.eq(fetch.complete & ~asked)
        with m.If(vector.take | ~self.running):
            m.d.sync += asked.eq(0)
        with m.Elif(go):
            m.d.sync += asked.eq(1)
        m.d.comb += [
            params.go.eq(go),
            params.base.eq(fetch.fields.param_base),
            params.groups.eq(fetch.fields.groups),
            params.per_channel.eq(fetch.fields.per_channel),
            fetch.extra_done.eq(params.complete),
        ]

    def _host(
        self,
        m: Module,
        control: RunControl,
        act: ActMemory,
        load: LoadUnit,
        vector: VectorUnit,
        fetchers: dict[str, Fetcher],
    ) -> None:
        """Decode host accesses."""
        config = self.config
        # Cycle 1: the access, registered.
        space, address, data = Signal(4), Signal(ADDRESS), Signal(32)
        strobe, write, read = Signal(4), Signal(), Signal()
        m.d.sync += [
            space.eq(self.host_space),
            address.eq(self.host_addr),
            data.eq(self.host_wdata),
            strobe.eq(self.host_wstrb),
            write.eq(self.host_we),
            read.eq(self.host_re),
        ]

        def wide(target: Space, w_addr: Value, w_data: Value, w_en: Value) -> Value:
            """Write lanes of a wide memory word; returns the host word's place in it."""
            size = word_bytes(config, target)
            shift = (host_stride(size) - 1).bit_length()
            place = address[:shift] if shift else Signal(1, name=f"place_{target.name.lower()}")
            lanes = Signal(4 * host_stride(size), name=f"lanes_{target.name.lower()}")
            with m.If(write & (space == target)):
                m.d.comb += lanes.word_select(place, 4).eq(strobe)
            m.d.comb += [w_addr.eq(address[shift:]), w_en.eq(lanes), w_data.eq(data.replicate(host_stride(size)))]
            return place

        place = wide(Space.ACT, act.write_host.addr, act.write_host.data, act.write_host.en)
        wide(Space.WEIGHT, load.w_addr, load.w_data, load.w_en)
        wide(Space.PARAM, vector.params.w_addr, vector.params.w_data, vector.params.w_en)
        m.d.comb += [
            vector.tables.w_addr.eq(address),
            vector.tables.w_data.eq(data),
            vector.tables.w_en.eq(write & (space == Space.TABLE)),
            control.addr.eq(address[:ADDRESS_BITS]),
            control.w_data.eq(data),
            control.w_en.eq(write & (space == Space.CONTROL) & ~address[ADDRESS_BITS:].any()),
        ]
        for name, target in (("load", Space.LOAD_UCODE), ("array", Space.ARRAY_UCODE), ("vector", Space.VECTOR_UCODE)):
            m.d.comb += [
                fetchers[name].w_addr.eq(address),
                fetchers[name].w_data.eq(data),
                fetchers[name].w_en.eq(write & (space == target)),
            ]

        # Reads: activation words take `ActMemory.latency` cycles, registers fewer.
        shift = (host_stride(config.word) - 1).bit_length()
        m.d.comb += [
            act.read_host.en.eq(read & (space == Space.ACT)),
            act.read_host.addr.eq(address[shift:]),
        ]
        place_5 = delay(m, place, act.latency, name="place", reset=False)
        register_5 = delay(m, control.r_data, act.latency - control.latency, name="register", reset=False)
        space_5 = delay(m, space, act.latency, name="space", reset=False)
        word_5 = Signal(32 * host_stride(config.word))
        m.d.comb += word_5.eq(act.word_host)
        value_6 = Signal(32, reset_less=True)
        act_6 = Signal()
        register_6 = Signal(32, reset_less=True)
        m.d.sync += [
            value_6.eq(word_5.word_select(place_5, 32)),
            register_6.eq(register_5),
            act_6.eq(space_5 == Space.ACT),
            self.host_rvalid.eq(delay(m, read, act.latency + 1, name="read")),
        ]
        with m.If(act_6):
            m.d.sync += self.host_rdata.eq(value_6)
        with m.Else():
            m.d.sync += self.host_rdata.eq(register_6)
