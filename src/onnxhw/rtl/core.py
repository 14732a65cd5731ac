"""`Core`: the accelerator behind its host port."""

from typing import Any

from amaranth import Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.memory import Space, host_stride
from ..isa.units import STREAMING, Unit, units_of
from .cells import DuplicatedRegister, primitives_of
from .control import ADDRESS_BITS, RunControl
from .delay import delay
from .external.controller import requester
from .fetch import Fetcher
from .input_path import InputPath
from .memory import ActMemory
from .ports import by_name, write_request
from .units import COMPONENTS
from .units.move import MOVED

ADDRESS = 24


class Core(wiring.Component):
    """One accelerator.

    The host port takes one access per cycle: 32-bit word ``host_addr`` of space ``host_space``; byte enables
    ``host_wstrb``. ``host_rvalid`` shows the answer `HOST_READ_LATENCY` cycles after ``host_re``; only CONTROL and
    ACT can be read. During a run CONTROL may be accessed, and ACT and INPUT written where the run leaves memory alone,
    as it does with its inputs while `input_free`: the run's own writes of a bank go first. 4 cycles after ``host_we``
    `host_waiting` tells that a word of ACT still waits; no other may follow before it has fallen. Of INPUT a word may
    be written in each cycle in which `host_waiting` is low, or has been for one; word 0 begins anew. 8 cycles after the
    last one `input_busy` tells that what has been written is not in its place yet, and else `input_over` that all
    inputs are.

    With external memory ``external`` goes to its controller, which `asks` for the sequence that a run with moves begins
    with, until it has `started`; `clear` tells, while no run is in progress, to forget requests; `stopped`, for a
    cycle, that a run with moves was ended before it had finished: memories no longer hold a program's first words.
    """

    HOST_READ_LATENCY = 2 + ActMemory.latency + 2

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        external: dict[str, Any] = {}
        if config.external is not None:
            external = {
                "external": Out(requester(config.external)), "asks": Out(1), "started": In(1), "clear": Out(1),
                "stopped": Out(1),
            }  # fmt: skip
        super().__init__(
            {
                **external,
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
                "input_busy": Out(1),
                "input_over": Out(1),
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
        units: dict[str, Any] = {name: COMPONENTS[name](config) for name in names}
        streams = [name for name in names if name in STREAMING]
        fetchers = {name: Fetcher(name, config) for name in names}
        status, progress, read, write = map(by_name, (control.status, control.progress, act.read, act.write))
        for number, name in enumerate(names):
            ports, unit, fetch = name.ports, units[name], fetchers[name]
            m.submodules[name] = ResetInserter(resting.o[2 * number])(unit)
            m.submodules[f"{name}_fetch"] = ResetInserter(resting.o[2 * number + 1])(fetch)
            for one, other in (
                (control.completed, fetch.completed),
                (fetch.progress, progress[name]),
                (fetch.issue, unit.issue),
                (unit.status, status[name]),
                *((by_name(unit.read)[port], read[port]) for port in ports.reads),
                *([(unit.write, write[name])] if ports.writes else []),
                *((by_name(unit.tiles)[stream], units[stream].tiles) for stream in streams if ports.loads),
                *((by_name(unit.drain)[stream], units[stream].drain) for stream in streams if ports.drains),
            ):
                wiring.connect(m, one, other)
        m.d.comb += [
            self.running.eq(control.active if config.external else control.running),
            self.input_free.eq(control.input_free),
        ]
        moved = None
        if Unit.MOVE in units:
            moved = units[Unit.MOVE].moved
            wiring.connect(m, units[Unit.MOVE].external, wiring.flipped(self.external))
            m.d.comb += [self.asks.eq(control.asks), control.started.eq(self.started), self.clear.eq(~control.running)]
            m.d.comb += self.stopped.eq(control.stopped)
        m.submodules.inputs = path = InputPath(config)
        m.d.comb += [self.input_busy.eq(path.busy), self.input_over.eq(path.complete)]
        m.d.sync += self.host_waiting.eq(act.blocked | path.full)
        self._host(m, control, act, path, units, fetchers, moved, apart=primitives_of(platform).apart)
        return m

    def _host(
        self, m: Module, control: RunControl, act: ActMemory, path: InputPath, units: dict[str, Any],
        fetchers: dict[Unit, Fetcher], moved: Any, *, apart: bool,
    ) -> None:  # fmt: skip
        """Decode host accesses, and words that are `moved` from external memory: never both to one memory. Registers of
        the memories are one register where they need not lie `apart`."""
        comes = dict(zip(MOVED, moved.valid, strict=True)) if moved is not None else {}
        # Cycle 1: the access, registered.
        space_1, address_1, data_1 = Signal(4), Signal(ADDRESS), Signal(32)
        strobe_1, write_1, read_1 = Signal(4), Signal(), Signal()
        m.d.sync += [
            space_1.eq(self.host_space), address_1.eq(self.host_addr), data_1.eq(self.host_wdata),
            strobe_1.eq(self.host_wstrb), write_1.eq(self.host_we), read_1.eq(self.host_re),
        ]  # fmt: skip

        # Cycle 2: registers of each memory's own, near its block RAMs.
        def own(target: Space, bits: int = ADDRESS) -> tuple[Signal, Signal, Signal]:
            """Address, data and write enable; it has no more than so many bits of address."""
            name = target.name.lower()
            address, data = Signal(bits, name=f"address_{name}"), Signal(32, name=f"data_{name}")
            write = Signal(name=f"write_{name}")
            m.d.sync += write.eq(write_1 & (space_1 == target) & ~address_1[bits:].any())
            # Without the condition they are equal in all spaces, and one register for all.
            with m.If(space_1 == target if apart else Const(1)):
                m.d.sync += [address.eq(address_1), data.eq(data_1)]
            if target in comes:
                with m.If(comes[target]):
                    m.d.sync += [address.eq(moved.addr), data.eq(moved.data), write.eq(~moved.addr[bits:].any())]
            return address, data, write

        def wide(target: Space, w_addr: Value, w_data: Value, w_en: Value, late: bool = True) -> tuple[Value, Value]:
            """Write lanes of a wide memory word; returns the word's address and the host word's place in it.

            A `late` memory is written in cycle 3: it has more block RAMs than one register reaches from afar.
            """
            address, data, write = own(target)
            strobe = Signal(4, name=f"strobe_{target.name.lower()}")
            with m.If(space_1 == target if apart else Const(1)):
                m.d.sync += strobe.eq(strobe_1)
            if target in comes:
                with m.If(comes[target]):
                    m.d.sync += strobe.eq(0xF)
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

        # The host's own writes, or those of the input port: never both, for the host waits for either.
        into, own_write = act.write.host.request, Signal(write_request(self.config))
        word_2, place_2 = wide(Space.ACT, own_write.addr, own_write.data, own_write.en, late=False)
        for name in ("en", "addr", "data"):
            m.d.comb += into[name].eq(Mux(path.o.valid, path.o.payload[name], own_write[name]))
        own_lanes = Signal()
        m.d.sync += own_lanes.eq(write_1 & (space_1 == Space.ACT))
        m.d.comb += [act.host_writes.eq(path.o.valid | own_lanes), path.o.ready.eq(~act.blocked)]
        address, data, write = own(Space.INPUT)
        m.d.comb += [path.w_data.eq(data), path.w_en.eq(write), path.begins.eq(~address.any())]
        address, data, write = own(Space.INPUT_TABLE, len(path.table_addr))
        m.d.comb += [path.table_addr.eq(address), path.table_data.eq(data), path.table_en.eq(write)]
        address, data, write = own(Space.CONTROL, ADDRESS_BITS)
        m.d.comb += [control.addr.eq(address), control.w_data.eq(data), control.w_en.eq(write)]
        memories = {space: memory for unit in units.values() for space, memory in unit.memories.items()}
        for space, memory in (memories | {name.microcode: fetch for name, fetch in fetchers.items()}).items():
            if len(memory.w_en) > 1:
                wide(space, memory.w_addr, memory.w_data, memory.w_en)
            else:
                address, data, write = own(space)
                m.d.comb += [memory.w_addr.eq(address), memory.w_data.eq(data), memory.w_en.eq(write)]

        m.d.comb += act.read.host.request.addr.eq(word_2)
        self._host_reads(m, control, act, read_1, space_1, place_2)

    def _host_reads(
        self, m: Module, control: RunControl, act: ActMemory, read_1: Signal, space_1: Signal, place_2: Value
    ) -> None:
        """Answer the host: activation words take `ActMemory.latency` cycles, registers fewer."""
        read_act, from_act = Signal(), Signal()
        m.d.sync += [read_act.eq(read_1 & (space_1 == Space.ACT)), from_act.eq(space_1 == Space.ACT)]
        m.d.comb += act.read.host.request.en.eq(read_act)
        place_7 = delay(m, place_2, act.latency, name="place", reset=False)
        from_act_8 = delay(m, from_act, act.latency + 1, name="from_act", reset=False)
        register_7 = delay(m, control.r_data, act.latency - control.latency, name="register", reset=False)
        word_7 = Signal(32 * host_stride(self.config.word))
        value_8, register_8 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        m.d.comb += word_7.eq(act.read.host.word)
        m.d.sync += [
            value_8.eq(word_7.word_select(place_7, 32)),
            register_8.eq(register_7),
            self.host_rdata.eq(Mux(from_act_8, value_8, register_8)),
            self.host_rvalid.eq(delay(m, read_1, act.latency + 2, name="read")),
        ]
