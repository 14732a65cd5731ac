"""Random legal programs: every field of every instruction, in a conservative order."""

import random
from dataclasses import replace

import numpy as np

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.isa import UNITS, Array, Depthwise, Load, Vector, VectorOp
from onnxhw.isa.external_instructions import code_for
from onnxhw.isa.instructions import WINDOW_BANK, wait_reads
from onnxhw.isa.timeline import timeline
from onnxhw.isa.timing import sums, tiles
from onnxhw.program import DeviceProgram
from onnxhw.sched.early_completion import with_early


def random_scale(rng: random.Random, op: VectorOp) -> Scale:
    if op == VectorOp.ADD:
        shift = rng.randint(20, 28)
        return Scale(rng.randrange(1 << 26), shift, rng.randrange(1 << 26))
    if op == VectorOp.DOT:  # sums are large: results that do not saturate
        return Scale(rng.randrange(1 << 23, 1 << 24), rng.randint(32, 36))
    bias = rng.choice([rng.randint(-5000, 5000), rng.randint(-(1 << 31), (1 << 31) - 1)])
    if rng.random() < 0.3:  # powers of two: ties
        return Scale(1 << 23, rng.randint(23, 32), rng.randint(-64, 64))
    return Scale(rng.randrange(1 << 23, 1 << 24), rng.randint(16, 40), bias)


class Builder:
    """Instructions that touch only memory they may."""

    def __init__(self, config: HwConfig, seed: int) -> None:
        self.config, self.rng = config, random.Random(seed)
        self.code: dict[str, list] = {unit: [] for unit in UNITS}
        numbers = np.random.default_rng(seed)
        self.weights = numbers.integers(0, 256, (config.weight_depth, config.weight_word), np.uint8)
        self.params: list[list[int]] = []
        self.tables = numbers.integers(-128, 128, (config.tables, 256)).astype(np.int8)
        self.act = numbers.integers(-128, 128, (config.act_words, config.word)).astype(np.int8)
        bank = config.act_depth
        self.act[numbers.integers(0, config.act_words, config.act_words // 4)] = numbers.choice([-128, 127])
        self.read_area, self.write_area = (0, bank), (2 * bank, bank)

    def wait_all(self) -> dict[str, int]:
        return {f"after_{unit}": len(self.code[unit]) for unit in UNITS if unit != "load"}

    def wait_reads(self) -> dict[str, int]:
        """What an array instruction waits for: it meets no word that a vector instruction writes."""
        waits = self.wait_all()
        return waits if self.rng.random() < 0.4 else {**waits, **wait_reads(0, waits["after_vector"])}

    def follow(self) -> None:
        """A part of the last vector instruction again, elsewhere, as soon as the unit takes it."""
        last, r = self.code["vector"][-1], self.rng
        fields = {f"{level}_n": r.randint(1, getattr(last, f"{level}_n")) for level in ("cb", "oh", "ow")}
        fields |= {"o_base": self.write_area[0] + r.randrange(0, 64), "o_oh": r.randint(8, 12)}
        fields |= {"after_array": 0, "after_depthwise": 0, "after_vector": 0}
        fields |= {"zy": last.zy if r.random() < 0.8 else r.randint(-128, 127)}
        self.code["vector"].append(replace(last, **fields))

    def array(self, *, accumulate: bool = False, bank: int = 0, wait: bool = True) -> tuple[int, int]:
        c, r = self.config, self.rng
        kh, kw = r.randint(1, 3), r.randint(1, 3)
        oh, ow = (r.randint(1, 5), r.randint(1, 5)) if r.random() < 0.8 else (1, r.randint(1, 2))
        kt = r.randint(1, 2)
        sub = r.randint(1, c.row_groups)
        nt = r.choice([n for n in range(1, 6) if 7 + n * oh * ow <= c.acc_depth])
        in_h, in_w = r.randint(1, 8), r.randint(1, 8)
        instruction = Array(
            **(self.wait_reads() if wait else {}),
            act_base=r.randrange(0, 16),
            kt_n=kt,
            sub_n=sub,
            kh_n=kh,
            kw_n=kw,
            nt_n=nt,
            oh_n=oh,
            ow_n=ow,
            a_kt=r.randint(0, 40),
            a_kh=r.randint(0, 9),
            a_kw=r.randint(0, 3),
            a_oh=r.randint(0, 10),
            a_ow=r.randint(0, 3),
            ih0=r.randint(-3, 3),
            iw0=r.randint(-3, 3),
            ih_kh=r.randint(0, 3),
            iw_kw=r.randint(0, 2),
            ih_oh=r.randint(0, 2),
            iw_ow=r.randint(0, 2),
            in_h=in_h,
            in_w=in_w,
            pad=r.randint(-128, 127),
            acc_base=r.randint(0, 7),
            acc_bank=bank,
            accumulate=int(accumulate),
        )
        if c.unaligned and r.random() < 0.7:
            instruction, sub = replace(self.unaligned(instruction), sub_n=1), 1
        tiles = kt * sub * kh * kw
        self.code["array"].append(instruction)
        split = r.randint(1, tiles)
        for count in (split, tiles - split):
            if count:
                room = c.weight_depth - count * c.tile_words
                step = r.randint(0, room // nt)
                base = r.randint(0, room - (nt - 1) * step)
                self.code["load"].append(Load(base=base, tiles=count, nt_n=nt, nt_step=step))
        return oh, ow

    def unaligned(self, i: Array) -> Array:
        """The instruction with bytes for words."""
        c, r = self.config, self.rng
        steps = {
            name: (getattr(i, name) * c.word + r.randrange(c.word)) // c.unaligned * c.unaligned
            for name in ("act_base", "a_kt", "a_kh", "a_kw", "a_oh", "a_ow")
        }
        split = r.randrange(0, c.word, c.unaligned)
        return replace(i, unaligned=1, split=split, jump=r.randint(0, 63) if split else 0, **steps)

    def depthwise(self, *, beside: bool = False, row: int = -1, reads: int = -1) -> tuple[int, int]:
        """A strip: of bank 3, `beside` array instructions; its sums from a `row` on, one window, beside a drain: behind
        what the first `reads` vector instructions have read."""
        c, r = self.config, self.rng
        kh, kw = (r.randint(1, 2), r.randint(1, 2)) if row < 0 else (1, 1)
        oh, ow = r.randint(3, 9), r.choice([3, r.randint(3, 8), min(c.depthwise, 9)])
        waits = self.wait_reads()
        if row >= 0:
            waits |= wait_reads(0, reads)
        if beside:
            waits["after_array"] = 0
        instruction = Depthwise(
            **waits,
            act_base=(3 * c.act_depth if beside else 0) + r.randrange(30, 46),
            kh_n=kh,
            kw_n=kw,
            oh_n=oh,
            ow_n=ow,
            a_kh=r.randint(0, 9),
            a_oh=r.randint(0, 10),
            ih0=r.randint(-3, 3),
            iw0=r.randint(-3, 3),
            in_h=r.randint(1, 8),
            in_w=r.randint(1, 8),
            pad=r.randint(-128, 127),
            acc_base=r.randint(0, 7) if row < 0 else row,
            group=r.randrange(c.word // c.depthwise_lanes),
            sh=r.randint(1, 3),
            sw=r.choice([1, 2, 7]),
        )
        self.code["depthwise"].append(instruction)
        base = r.randrange(0, c.weight_depth - kh * kw * c.depthwise_words)
        self.code["load"].append(Load(base=base, tiles=kh * kw, depthwise=1))
        return sums(instruction)

    def drain(self, instruction: Array | Depthwise) -> None:
        """A drain of an instruction's sums."""
        oh, ow = sums(instruction)
        if isinstance(instruction, Array):
            self.vector(VectorOp.DRAIN, bank=instruction.acc_bank, cb=instruction.nt_n, oh=oh, ow=ow)
        else:
            self.vector(VectorOp.DRAIN, bank=WINDOW_BANK, cb=1, oh=oh, ow=ow)
        self.code["vector"][-1] = replace(self.code["vector"][-1], a_base=instruction.acc_base)

    def strips(self) -> None:
        """Instructions of the depthwise unit beside those of the array, and sums that are filled beside a drain."""
        r, code = self.rng, self.code
        first = r.random() < 0.6
        if first:
            self.array(bank=r.randint(0, 1))
        self.depthwise(beside=True)
        if r.random() < 0.6:
            self.array(bank=r.randint(0, 1), wait=not first)
        self.drain(code["depthwise"][-1])
        if r.random() < 0.6:
            before, reads = code["depthwise"][-1], len(code["vector"]) - 1
            oh, ow = sums(before)
            rows, cols = self.depthwise(beside=True, row=before.acc_base + oh * ow, reads=reads)
            last = code["depthwise"][-1]
            if last.acc_base + rows * cols > self.config.window_depth:
                code["depthwise"][-1] = replace(last, acc_base=0, **wait_reads(0, reads + 1))
            self.drain(code["depthwise"][-1])

    def vector(self, op: VectorOp, *, bank: int = 0, cb: int = 0, oh: int = 0, ow: int = 0, groups: int = 0) -> None:
        c, r = self.config, self.rng
        columns = c.depthwise_lanes // c.lanes if bank == WINDOW_BANK else c.col_groups
        limit = columns if op == VectorOp.DRAIN else c.lane_groups
        groups = groups or (1 if op == VectorOp.DOT else r.randint(1, min(limit, c.lane_groups)))
        lane_group = r.randint(0, c.lane_groups - groups)
        window = op in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT)
        oh, ow = oh or r.randint(1, 4), ow or r.randint(1, 4)
        cb = cb or r.randint(1, 2)
        kh, kw = (r.randint(1, 3), r.randint(1, 3)) if window else (1, 1)
        clamped = op != VectorOp.DOT and r.random() < 0.5
        lo, hi = sorted((r.randint(-128, 127), r.randint(-128, 127))) if clamped else (-128, 127)
        extent = dict(ih0=0, iw0=0, in_h=99, in_w=99)
        if op == VectorOp.SUM:
            extent = dict(ih0=r.randint(-2, 2), iw0=r.randint(-2, 2), in_h=r.randint(1, 6), in_w=r.randint(1, 6))
        if op == VectorOp.MAX and r.random() < 0.5:  # every window keeps a position inside
            extent = dict(ih0=1 - kh, iw0=1 - kw, in_h=99, in_w=99)
        if op == VectorOp.DOT and r.random() < 0.5:  # long rows
            kw = r.randint(4, 40)
        per_channel = r.random() < 0.6
        instruction = Vector(
            **self.wait_all(),
            op=op,
            per_channel=int(per_channel),
            exact=r.randint(0, 1),
            use_table=int(r.random() < 0.3),
            table_index=r.randrange(c.tables),
            cb_n=cb,
            oh_n=oh,
            ow_n=ow,
            kh_n=kh,
            kw_n=kw,
            a_base=r.randint(0, 7) if op == VectorOp.DRAIN else 20 + r.randint(0, 7),
            acc_bank=bank,
            a_cb=oh * ow if op == VectorOp.DRAIN else r.randint(0, 50),
            a_oh=ow if op == VectorOp.DRAIN else r.randint(0, 9),
            a_ow=1 if op == VectorOp.DRAIN else r.randint(0, 3),
            a_kh=r.randint(0, 9),
            a_kw=r.randint(0, 3),
            ih_kh=1,
            iw_kw=1,
            ih_oh=r.randint(0, 2),
            iw_ow=r.randint(0, 2),
            **extent,
            b_base=c.act_depth + r.randint(0, 9),
            b_cb=r.randint(0, 50),
            b_oh=r.randint(0, 9),
            b_ow=r.randint(0, 3),
            b_kw=r.randint(0, 4),
            o_base=self.write_area[0] + r.randrange(0, 64),
            o_cb=64,
            o_oh=8,
            o_ow=1,
            groups=groups,
            column_group=r.randint(0, columns - groups) if op == VectorOp.DRAIN else 0,
            lane_group=lane_group,
            param_base=len(self.params),
            param_cb=r.randint(0, 3),
            za=r.randint(-128, 127),
            zb=r.randint(-128, 127),
            zy=r.randint(-128, 127),
            lo=lo,
            hi=hi,
        )
        rows = (cb - 1) * instruction.param_cb + (groups if per_channel else 1)
        self.params += [[random_scale(r, op).pack() for _ in range(c.lanes)] for _ in range(rows)]
        self.code["vector"].append(instruction)

    def program(self) -> DeviceProgram:
        code = with_early(code_for(self.config, self.code), self.config)
        cycles = timeline(self.config, code).cycles
        return DeviceProgram(
            self.config,
            "random",
            code,
            self.weights,
            np.array(self.params, np.uint64),
            self.tables,
            {},
            [],
            [],
            [],
            cycles,
            0,
        )


def random_program(config: HwConfig, seed: int, length: int = 6) -> tuple[DeviceProgram, np.ndarray]:
    """A program of about `length` vector instructions and two more, and the initial activation memory."""
    build = Builder(config, seed)
    for _ in range(length):
        if build.rng.random() < 0.5:
            if config.depthwise and build.rng.random() < 0.7:
                build.strips()
                continue
            build.array(bank=build.rng.randint(0, 1))
            if build.rng.random() < 0.4:  # the same rows again, at once
                again = build.code["array"][-1]
                build.code["array"].append(replace(again, accumulate=1, after_array=0))
                build.code["load"].append(Load(tiles=tiles(again) // again.nt_n, nt_n=again.nt_n))
            build.drain(build.code["array"][-1])
        else:
            build.vector(build.rng.choice([VectorOp.SUM, VectorOp.MAX, VectorOp.ADD, VectorOp.MUL, VectorOp.DOT]))
        for _ in range(build.rng.choice([0, 0, 1, 3])):
            build.follow()
    build.vector(VectorOp.MUL, groups=config.lane_groups)
    build.vector(VectorOp.DOT)  # right behind words of several groups
    return build.program(), build.act
