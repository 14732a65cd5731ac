"""`VectorUnit` equals the emulator in every write of random instructions.

Memories answer with garbage when they were not asked.
"""

from typing import Any

import cocotb
import numpy as np
from bench import config, edgy, known, parameters, start, tick

from onnxhw.emu import Machine
from onnxhw.fixed import Scale
from onnxhw.isa import Vector, VectorOp
from onnxhw.isa.timing import vector_cycles

PARAM_ROWS = 9 + 3 + 8 + 1
"""Rows that an instruction may read: a base of 9, the second channel block 3 farther, 8 groups."""


def random_scale(random: np.random.Generator, op: VectorOp) -> Scale:
    if op == VectorOp.ADD:
        return Scale(int(random.integers(1 << 26)), int(random.integers(20, 29)), int(random.integers(1 << 26)))
    return Scale(int(random.integers(1 << 23, 1 << 24)), int(random.integers(16, 41)), edgy(random, 14)[0])


def random_vector(random: np.random.Generator, op: VectorOp) -> Vector:
    """An instruction that reads banks 0 and 1 and writes bank 2."""
    c = config()

    def upto(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    window = op in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT)
    most = {VectorOp.DRAIN: min(c.lane_groups, c.col_groups), VectorOp.DOT: 1}.get(op, c.lane_groups)
    groups = upto(1, most)
    kh, kw = (upto(1, 3), upto(1, 3)) if window else (1, 1)
    extent = {"in_h": 99, "in_w": 99}
    if op == VectorOp.SUM:
        extent = {"ih0": upto(-2, 2), "iw0": upto(-2, 2), "in_h": upto(1, 6), "in_w": upto(1, 6)}
    elif op == VectorOp.MAX:  # every window keeps a position inside
        extent = {"ih0": 1 - kh, "iw0": 1 - kw, "in_h": 99, "in_w": 99}
    lo, hi = sorted(edgy(random, 8, 2)) if random.random() < 0.4 else (-128, 127)
    return Vector(
        op=op, per_channel=upto(0, 1), exact=upto(0, 1), use_table=int(random.random() < 0.3),
        table_index=upto(0, c.tables - 1), cb_n=1 if op == VectorOp.DRAIN else upto(1, 2), oh_n=upto(1, 4),
        ow_n=upto(1, 4), kh_n=kh, kw_n=kw, a_base=upto(0, 7) if op == VectorOp.DRAIN else 20 + upto(0, 7),
        acc_bank=upto(0, 1), a_cb=upto(0, 20), a_oh=upto(0, 9), a_ow=upto(0, 3), a_kh=upto(0, 9), a_kw=upto(0, 3),
        ih_kh=1, iw_kw=1, ih_oh=upto(0, 2), iw_ow=upto(0, 2), **extent, b_base=c.act_depth + upto(0, 9),
        b_cb=upto(0, 20), b_oh=upto(0, 9), b_ow=upto(0, 3), b_kw=upto(0, 3), o_base=2 * c.act_depth + upto(0, 20),
        o_cb=32, o_oh=8, o_ow=1, groups=groups,
        column_group=upto(0, c.col_groups - groups) if op == VectorOp.DRAIN else 0,
        lane_group=upto(0, c.lane_groups - groups), param_base=upto(0, 9), param_cb=upto(0, 3),
        za=edgy(random, 8)[0], zb=edgy(random, 8)[0], zy=edgy(random, 8)[0], lo=lo, hi=hi,
    )  # fmt: skip


@cocotb.test()
async def equals_emulator(dut: Any) -> None:
    random = await start(dut)
    c = config()
    latency = {"a": parameters()["act_read"], "b": parameters()["act_read"], "drain": parameters()["drain_read"]}
    machine = Machine(c)
    machine.act[:] = random.integers(-128, 128, machine.act.shape)
    machine.tables[:] = random.integers(-128, 128, machine.tables.shape)
    machine.acc[:] = random.integers(-(1 << 14), 1 << 14, machine.acc.shape)
    for index, value in enumerate(machine.tables.reshape(-1)):
        dut.table_addr.value, dut.table_data.value, dut.table_en.value = index, int(value) & 0xFF, 1
        await tick(dut)
    dut.table_en.value = 0

    written = machine.act.copy()
    pipes: dict[str, list[int | None]] = {"a": [], "b": [], "drain": []}

    def memories() -> None:
        """Answer this cycle's requests a fixed number of cycles later; what was not asked for is garbage."""
        for port in ("a", "b"):
            request = known(getattr(dut, f"read__{port}__request"), port)
            pipes[port].append(int.from_bytes(machine.act[request >> 1].tobytes(), "little") if request & 1 else None)
        row = machine.acc[known(dut.drain__array__bank, "bank"), known(dut.drain__array__row, "row") % c.acc_depth]
        pipes["drain"].append(sum((int(v) & ((1 << c.acc_bits) - 1)) << (i * c.acc_bits) for i, v in enumerate(row)))
        for port, target, size in (
            ("a", "read__a__word", c.word * 8),
            ("b", "read__b__word", c.word * 8),
            ("drain", "drain__array__sums", c.cols * c.acc_bits),
        ):
            value = pipes[port].pop(0) if len(pipes[port]) > latency[port] else None
            garbage = int.from_bytes(random.bytes(size // 8), "little")
            getattr(dut, target).value = garbage if value is None else value

    def writes() -> None:
        request = known(dut.write__request, "write")
        enable, address = request & ((1 << c.word) - 1), request >> c.word & 0xFFFF
        data = request >> (c.word + 16)
        for lane in range(c.word):
            if enable >> lane & 1:
                written[address, lane] = np.int8(np.uint8(data >> (8 * lane) & 0xFF))

    async def cycle() -> None:
        memories()
        writes()
        await tick(dut)

    for op in list(VectorOp) * 5:
        instruction = random_vector(random, op)
        dut.param_en.value = (1 << 8 * c.lanes) - 1
        for row in range(PARAM_ROWS):
            entries = [random_scale(random, op).pack() for _ in range(c.lanes)]
            machine.params[row] = entries
            dut.param_addr.value = row
            dut.param_data.value = sum(entry << 64 * lane for lane, entry in enumerate(entries))
            await cycle()
        dut.param_en.value = 0
        dut.issue__bits.value = sum(word << (32 * i) for i, word in enumerate(instruction.encode()))
        for _ in range(int(random.integers(1, 4))):  # a fetcher's instruction stands a cycle before it is valid
            await cycle()
        dut.issue__valid.value = 1
        await cycle()
        dut.issue__valid.value = 0
        dut.issue__bits.value = 0
        cycles = 0
        while not known(dut.status__done, "done"):
            cycles += 1
            assert cycles < vector_cycles(instruction, c) + 200, f"not done: {instruction.text()}"
            await cycle()
        await cycle()
        machine.execute(instruction)
        for at in np.argwhere(written != machine.act)[:1]:
            word, lane = at
            want = machine.act[word, lane]
            raise AssertionError(f"word {word}, lane {lane}: {written[word, lane]}, not {want}: {instruction.text()}")
