"""Random legal programs: every field of every instruction, in a conservative order."""

import random

import numpy as np

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.isa import Array, Load, Vector, VectorOp
from onnxhw.isa.timing import sums, tiles, timeline
from onnxhw.program import Program


def random_scale(rng: random.Random, op: VectorOp) -> Scale:
    if op == VectorOp.ADD:
        shift = rng.randint(20, 28)
        return Scale(rng.randrange(1 << 26), shift, rng.randrange(1 << 26))
    bias = rng.choice([rng.randint(-5000, 5000), rng.randint(-(1 << 31), (1 << 31) - 1)])
    if rng.random() < 0.3:  # powers of two: ties
        return Scale(1 << 23, rng.randint(23, 32), rng.randint(-64, 64))
    return Scale(rng.randrange(1 << 23, 1 << 24), rng.randint(16, 40), bias)


class Builder:
    """Instructions that touch only memory they may."""

    def __init__(self, config: HwConfig, seed: int) -> None:
        self.config, self.rng = config, random.Random(seed)
        self.code: dict[str, list] = {"load": [], "array": [], "vector": []}
        numbers = np.random.default_rng(seed)
        self.weights = numbers.integers(0, 256, (config.weight_depth, config.weight_word), np.uint8)
        self.params: list[list[int]] = []
        self.tables = numbers.integers(-128, 128, (config.tables, 256)).astype(np.int8)
        self.act = numbers.integers(-128, 128, (config.act_words, config.word)).astype(np.int8)
        bank = config.act_depth
        self.act[numbers.integers(0, config.act_words, config.act_words // 4)] = numbers.choice([-128, 127])
        self.read_area, self.write_area = (0, bank), (2 * bank, bank)

    def wait_all(self) -> dict[str, int]:
        return {"after_array": len(self.code["array"]), "after_vector": len(self.code["vector"])}

    def array(self, *, accumulate: bool = False, bank: int = 0, wait: bool = True) -> tuple[int, int]:
        c, r = self.config, self.rng
        kh, kw = r.randint(1, 3), r.randint(1, 3)
        oh, ow = (r.randint(1, 5), r.randint(1, 5)) if r.random() < 0.8 else (1, r.randint(1, 2))
        kt = r.randint(1, 2)
        sub = r.randint(1, c.row_groups)
        nt = r.choice([n for n in range(1, 6) if 7 + n * oh * ow <= c.acc_depth])
        in_h, in_w = r.randint(1, 8), r.randint(1, 8)
        instruction = Array(
            **(self.wait_all() if wait else {}),
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

    def depthwise(self, *, bank: int = 0) -> tuple[int, int]:
        c, r = self.config, self.rng
        kh, kw, kt = r.randint(1, 2), r.randint(1, 2), r.randint(1, 2)
        oh, ow = r.randint(3, 9), r.choice([3, r.randint(3, 8), min(c.depthwise, 9)])
        instruction = Array(
            **self.wait_all(),
            act_base=r.randrange(0, 16),
            kt_n=kt,
            kh_n=kh,
            kw_n=kw,
            oh_n=oh,
            ow_n=ow,
            a_kt=r.randint(0, 40),
            a_kh=r.randint(0, 9),
            a_kw=r.randint(0, 3),
            a_oh=r.randint(0, 10),
            a_ow=r.randint(0, 2),
            ih0=r.randint(-3, 3),
            iw0=r.randint(-3, 3),
            ih_kh=r.randint(0, 3),
            iw_kw=r.randint(0, 3),
            ih_oh=r.randint(0, 2),
            iw_ow=r.randint(0, 2),
            in_h=r.randint(1, 8),
            in_w=r.randint(1, 8),
            pad=r.randint(-128, 127),
            acc_base=r.randint(0, 7),
            acc_bank=bank,
            depthwise=1,
            dw_group=r.randrange(c.word // c.depthwise_lanes),
            dw_sh=r.randint(1, 3),
            dw_sw=r.choice([1, 2, 7]),
        )
        self.code["array"].append(instruction)
        tiles = kt * kh * kw
        base = r.randrange(0, c.weight_depth - tiles * c.depthwise_words)
        self.code["load"].append(Load(base=base, tiles=tiles, depthwise=1))
        return sums(instruction)

    def vector(self, op: VectorOp, *, bank: int = 0, cb: int = 0, oh: int = 0, ow: int = 0) -> None:
        c, r = self.config, self.rng
        limit = c.col_groups if op == VectorOp.DRAIN else c.lane_groups
        groups = 1 if op == VectorOp.DOT else r.randint(1, min(limit, c.lane_groups))
        lane_group = r.randint(0, c.lane_groups - groups)
        window = op in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT)
        oh, ow = oh or r.randint(1, 4), ow or r.randint(1, 4)
        cb = cb or r.randint(1, 2)
        kh, kw = (r.randint(1, 3), r.randint(1, 3)) if window else (1, 1)
        lo, hi = sorted((r.randint(-128, 127), r.randint(-128, 127))) if r.random() < 0.5 else (-128, 127)
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
            column_group=r.randint(0, c.col_groups - groups) if op == VectorOp.DRAIN else 0,
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

    def program(self) -> Program:
        cycles = timeline(self.config, self.code).cycles
        return Program(
            self.config,
            "random",
            self.code,
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


def random_program(config: HwConfig, seed: int, length: int = 6) -> tuple[Program, np.ndarray]:
    """A program of about `length` vector instructions, and the initial activation memory."""
    build = Builder(config, seed)
    for _ in range(length):
        if build.rng.random() < 0.5:
            bank = build.rng.randint(0, 1)
            if config.depthwise and build.rng.random() < 0.7:
                if build.rng.random() < 0.5:  # right behind an array instruction
                    build.array(bank=1 - bank)
                build.depthwise(bank=bank)
                if build.rng.random() < 0.5:  # right before one
                    build.array(bank=1 - bank, wait=False)
                    build.depthwise(bank=bank)
            else:
                build.array(bank=bank)
            if build.rng.random() < 0.4:  # the same rows again, at once
                again = build.code["array"][-1]
                build.code["array"].append(type(again)(**{**vars(again), "accumulate": 1, "after_array": 0}))
                build.code["load"].append(Load(0, 0, 0, 0, tiles(again) // again.nt_n, again.nt_n, 0, again.depthwise))
            done = build.code["array"][-1]
            oh, ow = sums(done)
            build.vector(VectorOp.DRAIN, bank=bank, cb=done.nt_n, oh=oh, ow=ow)
            build.code["vector"][-1] = type(build.code["vector"][-1])(
                **{**vars(build.code["vector"][-1]), "a_base": build.code["array"][-1].acc_base}
            )
        else:
            build.vector(build.rng.choice([VectorOp.SUM, VectorOp.MAX, VectorOp.ADD, VectorOp.MUL, VectorOp.DOT]))
    return build.program(), build.act
