"""The machine equals the loops of the instructions' docstrings, written out literally."""

import random
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.errors import InternalError
from onnxhw.fixed import Scale, lane_add, lane_drain
from onnxhw.isa import Array, Depthwise, Load, Vector, VectorOp
from onnxhw.isa.instructions import WINDOW_BANK

DEPTHS = {"act_banks": 4, "act_depth": 512, "weight_depth": 512, "acc_depth": 64, "param_depth": 256, "tables": 3}
GEOMETRIES = [
    HwConfig("4x4", rows=4, cols=4, word=4, lanes=2, acc_bits=20, **DEPTHS),
    HwConfig("5x3", rows=5, cols=3, word=5, lanes=1, acc_bits=21, **DEPTHS),
    HwConfig("8x16", rows=8, cols=16, word=8, lanes=8, load_rows=2, acc_bits=24, **DEPTHS),
    HwConfig("two row groups", rows=4, cols=6, word=8, lanes=4, load_rows=4, acc_bits=20, **DEPTHS),  # C % Q = 2
    HwConfig("partial row group", rows=3, cols=5, word=5, lanes=1, load_rows=3, acc_bits=20, **DEPTHS),
    HwConfig("8x6", rows=8, cols=6, word=8, lanes=2, load_rows=4, acc_bits=32, **DEPTHS),
    HwConfig("fast 8x6", rows=8, cols=6, word=8, lanes=2, acc_bits=20, inner_product="fast", **DEPTHS),
    HwConfig("fast 4x3", rows=4, cols=3, word=5, lanes=1, load_rows=2, acc_bits=20, inner_product="fast", **DEPTHS),
]
WINDOWS = [
    HwConfig("4x5 and windows", rows=4, cols=5, word=4, lanes=2, acc_bits=20, depthwise=7, **DEPTHS),
    HwConfig("half words", rows=8, cols=6, word=8, lanes=2, load_rows=4, acc_bits=24, depthwise=9, **DEPTHS),
]
READ, WRITE = 700, 1300
"""Middle of the words that random instructions read and write."""


class Literal:
    """The docstrings, one scalar at a time, on copies of a machine's memories."""

    def __init__(self, machine: Machine) -> None:
        self.config = machine.config
        self.act, self.acc = machine.act.astype(int).tolist(), machine.acc.tolist()
        self.weights, self.params = machine.weights.tolist(), machine.params.tolist()
        self.tables, self.window = machine.tables.tolist(), machine.window.tolist()
        self.shadow: deque[list[list[int]]] = deque()
        self.windows: deque[list[int]] = deque()

    def load(self, i: Load) -> None:
        r, c, k = self.config.rows, self.config.cols, self.config.load_rows
        if i.depthwise:
            count = -(-9 * self.config.depthwise_lanes // (k * c))
            for tile in range(i.tiles):
                words = self.weights[i.base + tile * count : i.base + (tile + 1) * count]
                self.windows.append([(b + 128) % 256 - 128 for word in words for b in word])
            return
        for tile in range(i.tiles):
            for nt in range(i.nt_n):
                shadow = []
                for step in range(r // k):
                    word = self.weights[i.base + tile * r // k + nt * i.nt_step + step]
                    shadow += [[(b + 128) % 256 - 128 for b in word[row * c : row * c + c]] for row in range(k)]
                self.shadow.append(shadow)

    def array(self, i: Array) -> None:
        r, c, bits = self.config.rows, self.config.cols, self.config.acc_bits
        first = not i.accumulate
        for kt in range(i.kt_n):
            for sub in range(i.sub_n):
                for kh in range(i.kh_n):
                    for kw in range(i.kw_n):
                        for nt in range(i.nt_n):
                            w = self.shadow.popleft()
                            for oh in range(i.oh_n):
                                for ow in range(i.ow_n):
                                    ih = i.ih0 + kh * i.ih_kh + oh * i.ih_oh
                                    iw = i.iw0 + kw * i.iw_kw + ow * i.iw_ow
                                    a = i.act_base + kt * i.a_kt + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
                                    if 0 <= ih < i.in_h and 0 <= iw < i.in_w:
                                        x = (self.act[a % 65536] + [0] * r)[sub * r : sub * r + r]
                                    else:
                                        x = [i.pad] * r
                                    row = self.acc[i.acc_bank][i.acc_base + (nt * i.oh_n + oh) * i.ow_n + ow]
                                    for column in range(c):
                                        total = 0 if first else row[column]
                                        total += sum(x[n] * w[n][column] for n in range(r))
                                        if self.config.inner_product == "fast":
                                            total += sum(w[n][column] * w[n + 1][column] for n in range(0, r, 2))
                                        row[column] = (total + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
                        first = False

    def depthwise(self, i: Depthwise) -> None:
        d, bits = self.config.depthwise_lanes, self.config.acc_bits
        for kh in range(i.kh_n):
            for kw in range(i.kw_n):
                w = self.windows.popleft()
                x: dict[tuple[int, int], list[int]] = {}
                row = i.acc_base
                for oh in range(i.oh_n):
                    for ow in range(i.ow_n):
                        ih, iw = i.ih0 + 3 * kh + oh, i.iw0 + 3 * kw + ow
                        a = i.act_base + kh * i.a_kh + 3 * kw + oh * i.a_oh + ow
                        x[oh, ow] = [i.pad] * d
                        if 0 <= ih < i.in_h and 0 <= iw < i.in_w:
                            x[oh, ow] = self.act[a % 65536][i.group * d : i.group * d + d]
                        if oh < 2 or ow < 2 or (oh - 2) % i.sh or (ow - 2) % i.sw:
                            continue
                        for lane in range(d):
                            total = 0 if kh == kw == 0 else self.window[row][lane]
                            for th in range(3):
                                for tw in range(3):
                                    total += x[oh - 2 + th, ow - 2 + tw][lane] * w[(th * 3 + tw) * d + lane]
                            self.window[row][lane] = (total + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
                        row += 1

    def vector(self, i: Vector) -> None:
        q = self.config.lanes
        for cb in range(i.cb_n):
            for oh in range(i.oh_n):
                for ow in range(i.ow_n):
                    window, beside = [], []
                    for kh in range(i.kh_n):
                        for kw in range(i.kw_n):
                            ih = i.ih0 + kh * i.ih_kh + oh * i.ih_oh
                            iw = i.iw0 + kw * i.iw_kw + ow * i.iw_ow
                            if 0 <= ih < i.in_h and 0 <= iw < i.in_w:
                                a = i.a_base + cb * i.a_cb + kh * i.a_kh + kw * i.a_kw + oh * i.a_oh + ow * i.a_ow
                                window.append(a % 65536)
                                u = i.b_base + cb * i.b_cb + kw * i.b_kw + oh * i.b_oh + ow * i.b_ow
                                beside.append(u % 65536)
                    b = self.act[(i.b_base + cb * i.b_cb + oh * i.b_oh + ow * i.b_ow) % 65536]
                    row = (i.a_base + cb * i.a_cb + oh * i.a_oh + ow * i.a_ow) % 65536
                    o = self.act[(i.o_base + cb * i.o_cb + oh * i.o_oh + ow * i.o_ow) % 65536]
                    for lane in range(i.groups * q):
                        entry = i.param_base + cb * i.param_cb + (lane // q if i.per_channel else 0)
                        p = Scale.unpack(self.params[entry][lane % q])
                        n = i.lane_group * q + lane
                        if i.op == VectorOp.DRAIN:
                            v = self.acc[i.acc_bank][row][i.column_group * q + lane] + p.bias
                            v = (v + (1 << 31)) % (1 << 32) - (1 << 31)
                        elif i.op == VectorOp.SUM:
                            v = sum(self.act[a][n] - i.za for a in window)
                        elif i.op == VectorOp.MAX:
                            v = max(self.act[a][n] - i.za for a in window)
                        elif i.op == VectorOp.MUL:
                            v = (self.act[window[0]][n] - i.za) * (b[n] - i.zb)
                        elif i.op == VectorOp.DOT:
                            pairs = zip(window, beside, strict=True)
                            v = sum((self.act[a][n] - i.za) * (self.act[u][n] - i.zb) for a, u in pairs)
                        rest = (p, bool(i.exact), i.zy, i.lo, i.hi)
                        if i.op == VectorOp.ADD:
                            pair = np.array([self.act[window[0]][n] - i.za]), np.array([b[n] - i.zb])
                            y = int(lane_add(*pair, *rest)[0])
                        else:
                            y = int(lane_drain(np.array([v]), *rest)[0])
                        o[n] = self.tables[i.table_index][y + 128] if i.use_table else y


def filled(config: HwConfig, seed: int) -> Machine:
    """A machine with random memories, rich in extremes, ties and large biases."""
    rng = np.random.default_rng(seed)
    machine = Machine(config)
    machine.act[:] = rng.choice([-128, 127, 0, *rng.integers(-128, 128, 5)], machine.act.shape)
    machine.weights[:] = rng.choice([128, 127, *rng.integers(0, 256, 6)], machine.weights.shape)
    half = 1 << (config.acc_bits - 1)
    machine.acc[:] = rng.choice([half - 1, -half, *rng.integers(-half, half, 9), *range(-40, 40)], machine.acc.shape)
    machine.window[:] = rng.integers(-half, half, machine.window.shape)
    chance = random.Random(seed)
    scales = [
        Scale(chance.choice([1 << 23, chance.randrange(1 << 26)]), chance.choice([23, 24, 26, 33, 40]),
              chance.choice([0, 100, -(1 << 31), (1 << 31) - 1, chance.randrange(1 << 26)]))
        for _ in range(machine.params.size)
    ]  # fmt: skip
    machine.params[:] = np.array([scale.pack() for scale in scales], np.uint64).reshape(machine.params.shape)
    machine.tables[:] = rng.integers(-128, 128, machine.tables.shape)
    return machine


def step(rng: random.Random, most: int) -> int:
    """An address step of either sign."""
    return rng.randint(-most, most) & 0xFFFF


def random_array(config: HwConfig, rng: random.Random) -> Array:
    return Array(
        act_base=READ, kt_n=rng.randint(1, 2), sub_n=rng.randint(1, config.row_groups),
        kh_n=rng.randint(1, 3), kw_n=rng.randint(1, 2), nt_n=rng.choice([1, 1, 2]),
        oh_n=rng.randint(1, 4), ow_n=rng.randint(1, 4),
        a_kt=step(rng, 90), a_kh=step(rng, 9), a_kw=step(rng, 3), a_oh=step(rng, 20), a_ow=step(rng, 3),
        ih0=rng.randint(-3, 2), iw0=rng.randint(-3, 2), ih_kh=rng.randint(0, 2), iw_kw=rng.randint(0, 2),
        ih_oh=rng.randint(0, 3), iw_ow=rng.randint(0, 3), in_h=rng.randint(1, 8), in_w=rng.randint(1, 8),
        pad=rng.randint(-128, 127), acc_base=rng.randint(0, 20), acc_bank=rng.randint(0, 1),
        accumulate=rng.randint(0, 1),
    )  # fmt: skip


def random_vector(config: HwConfig, rng: random.Random, op: VectorOp) -> Vector:
    window = op in (VectorOp.SUM, VectorOp.MAX, VectorOp.DOT)
    kh, kw = (rng.randint(1, 3), rng.randint(1, 3)) if window else (1, 1)
    limits = {"in_h": 99, "in_w": 99}
    if op == VectorOp.MAX:  # each window has a position inside
        limits |= {"ih0": 1 - kh, "iw0": 1 - kw}
    elif op == VectorOp.SUM:
        limits = {"ih0": rng.randint(-3, 2), "iw0": rng.randint(-3, 2), "in_h": rng.randint(1, 7), "in_w": 4}
    drain = op == VectorOp.DRAIN
    groups = 1 if op == VectorOp.DOT else rng.randint(1, min(config.lane_groups, config.col_groups if drain else 99))
    lo, hi = sorted([rng.randint(-128, 127), rng.randint(-128, 127)]) if rng.random() < 0.3 else (-128, 127)
    a_steps = {"a_cb": step(rng, 90), "a_oh": step(rng, 20), "a_ow": step(rng, 3)}
    if drain:
        a_steps = {"a_cb": rng.randint(0, 16), "a_oh": rng.randint(0, 4), "a_ow": rng.randint(0, 3)}
    return Vector(
        op=op, per_channel=rng.randint(0, 1), exact=rng.randint(0, 1), use_table=rng.randint(0, 1),
        table_index=rng.randrange(config.tables), cb_n=rng.randint(1, 2), oh_n=rng.randint(1, 4),
        ow_n=rng.randint(1, 4), kh_n=kh, kw_n=kw, a_base=rng.randint(0, 20) if drain else READ,
        acc_bank=rng.randint(0, 1), **a_steps, a_kh=step(rng, 9),
        a_kw=step(rng, 3), ih_kh=1, iw_kw=1, ih_oh=rng.randint(0, 2), iw_ow=rng.randint(0, 2), **limits,
        b_base=READ, b_cb=step(rng, 90), b_oh=step(rng, 20), b_ow=step(rng, 3),
        b_kw=step(rng, 5),
        o_base=WRITE, o_cb=step(rng, 90), o_oh=step(rng, 20), o_ow=step(rng, 3), groups=groups,
        column_group=rng.randint(0, config.col_groups - groups) if drain else 0,
        lane_group=rng.randint(0, config.lane_groups - groups), param_base=rng.randint(0, 100),
        param_cb=rng.randint(0, 9), za=rng.randint(-128, 127), zb=rng.randint(-128, 127),
        zy=rng.randint(-128, 127), lo=lo, hi=hi,
    )  # fmt: skip


@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda config: config.name)
@pytest.mark.parametrize("seed", range(25))
def test_array_is_its_loop(config: HwConfig, seed: int) -> None:
    rng = random.Random(seed)
    machine = filled(config, seed)
    literal = Literal(machine)
    for _ in range(2):
        i = random_array(config, rng)
        tiles = i.kt_n * i.sub_n * i.kh_n * i.kw_n
        split = rng.randint(1, tiles)
        for count in filter(None, (split, tiles - split)):
            room = config.weight_depth - count * config.tile_words
            step = rng.randint(0, room // i.nt_n)
            base = rng.randint(0, room - (i.nt_n - 1) * step)
            load = Load(base=base, tiles=count, nt_n=i.nt_n, nt_step=step)
            machine.execute(load)
            literal.load(load)
        machine.execute(i)
        literal.array(i)
    assert machine.acc.tolist() == literal.acc
    assert not any(machine.fifo)


@pytest.mark.parametrize("config", WINDOWS, ids=lambda config: config.name)
@pytest.mark.parametrize("seed", range(25))
def test_depthwise_is_its_loop(config: HwConfig, seed: int) -> None:
    rng = random.Random(seed)
    machine = filled(config, seed)
    literal = Literal(machine)
    for _ in range(2):
        i = Depthwise(
            act_base=READ - 200 + rng.randrange(100),
            kh_n=rng.randint(1, 3), kw_n=rng.randint(1, 3),
            oh_n=rng.randint(3, 7), ow_n=rng.randint(3, config.depthwise),
            a_kh=rng.randint(0, 30), a_oh=rng.randint(0, 12),
            ih0=rng.randint(-4, 4), iw0=rng.randint(-4, 4), in_h=rng.randint(1, 12), in_w=rng.randint(1, 12),
            pad=rng.randint(-128, 127), acc_base=rng.randint(0, 9),
            group=rng.randrange(config.word // config.depthwise_lanes),
            sh=rng.randint(1, 3), sw=rng.choice([1, 2, 7]),
        )  # fmt: skip
        tiles = i.kh_n * i.kw_n
        base = rng.randint(0, config.weight_depth - tiles * config.depthwise_words)
        load = Load(base=base, tiles=tiles, depthwise=1)
        machine.execute(load)
        literal.load(load)
        machine.execute(i)
        literal.depthwise(i)
    assert machine.window.tolist() == literal.window
    assert machine.acc.tolist() == literal.acc
    assert not any(machine.fifo)


def test_the_depthwise_units_sums_are_drained_as_those_of_the_array() -> None:
    machine = filled(WINDOWS[0], 1)
    rows = machine.window[3:8, :2].copy()
    machine.acc[0, 3:8, :2] = rows
    results = []
    for bank in (0, WINDOW_BANK):
        drain = Vector(op=VectorOp.DRAIN, acc_bank=bank, a_base=3, a_ow=1, ow_n=5, o_base=WRITE, o_ow=1, lane_group=1)
        machine.execute(drain)
        results.append(machine.act[WRITE : WRITE + 5].copy())
    np.testing.assert_array_equal(*results)
    for fields in ({"acc_bank": 3}, {"acc_bank": WINDOW_BANK, "a_base": machine.config.window_depth}):
        with pytest.raises(InternalError):
            machine.execute(replace(drain, **fields))
    with pytest.raises(InternalError, match="no accumulator bank 2"):
        Machine(GEOMETRIES[0]).execute(drain)


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"ow_n": 8}, "E1121"), ({"group": 1}, "E1121"), ({"oh_n": 2}, "E1122"), ({"ow_n": 2}, "E1122"),
     ({"sh": 0}, "E1122"), ({"sw": 0}, "E1122"), ({"kw_n": 2}, "E1124")],
)  # fmt: skip
def test_a_strip_that_means_nothing_is_refused(fields: dict[str, int], code: str) -> None:
    machine = Machine(WINDOWS[0])
    machine.execute(Load(tiles=1, depthwise=1))
    with pytest.raises(InternalError) as caught:
        machine.execute(replace(Depthwise(), **fields))
    assert caught.value.code == code


def test_a_tile_belongs_to_one_unit() -> None:
    for loaded, taker in enumerate((Depthwise(), Array(oh_n=3, ow_n=3))):
        machine = Machine(WINDOWS[0])
        machine.execute(Load(tiles=1, depthwise=loaded))
        with pytest.raises(InternalError, match=f"E1124 .*{taker.UNIT} unit takes a weight tile that was not loaded"):
            machine.execute(taker)


@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda config: config.name)
@pytest.mark.parametrize("op", VectorOp)
@pytest.mark.parametrize("seed", range(15))
def test_vector_is_its_loop(config: HwConfig, op: VectorOp, seed: int) -> None:
    rng = random.Random(seed * 10 + op)
    machine = filled(config, seed)
    literal = Literal(machine)
    for _ in range(2):
        i = random_vector(config, rng, op)
        machine.execute(i)
        literal.vector(i)
    assert machine.act.tolist() == literal.act


def test_addresses_wrap_at_65536() -> None:
    config = HwConfig("deep", rows=2, cols=2, word=2, lanes=1, act_banks=4, act_depth=16384)
    machine = filled(config, 1)
    literal = Literal(machine)
    load = Load(tiles=1)
    array = Array(act_base=65534, ow_n=5, a_ow=1, iw_ow=1, in_w=5)
    reads = Vector(op=VectorOp.SUM, ow_n=4, a_base=1, a_ow=65535, o_base=99, o_ow=1, iw_ow=1, in_w=4)
    writes = Vector(op=VectorOp.SUM, ow_n=4, a_base=200, a_ow=65533, o_base=65534, o_ow=1, iw_ow=1, in_w=4)
    machine.execute(load)
    literal.load(load)
    machine.execute(array)
    literal.array(array)
    for vector in (reads, writes):
        machine.execute(vector)
        literal.vector(vector)
    assert machine.acc.tolist() == literal.acc
    assert machine.act.tolist() == literal.act


def test_accumulators_wrap_at_their_width() -> None:
    config = GEOMETRIES[0]
    machine = Machine(config)
    machine.acc[0, 0] = (1 << (config.acc_bits - 1)) - 1
    machine.weights[:] = 1
    machine.act[0] = [1, 0, 0, 0]
    machine.execute(Load(tiles=1))
    machine.execute(Array(accumulate=1))
    assert machine.acc[0, 0].tolist() == [-(1 << (config.acc_bits - 1))] * 4


def test_bias_wraps_at_32_bits() -> None:
    machine = Machine(GEOMETRIES[5])
    machine.acc[0, 0] = (1 << 31) - 1
    machine.params[0] = Scale(1 << 23, 23, 1).pack()
    machine.execute(Vector())
    assert machine.act[0].tolist() == [-128, -128, 0, 0, 0, 0, 0, 0]


def test_the_two_roundings_differ_and_are_chosen_by_the_flag() -> None:
    """Near a tie: 24 significant bits first (as float32) or one rounding."""
    scale = Scale(12345677, 37)
    sums = np.arange(1 << 20)
    once, twice = (lane_drain(sums, scale, exact, 0, -128, 127) for exact in (True, False))
    differs = np.resize(sums[once != twice], 8)
    assert differs.tolist() == [339543, 439736] * 4
    machine = Machine(GEOMETRIES[2])
    machine.acc[0, 0, :8] = differs
    machine.params[0] = scale.pack()
    machine.execute(Vector(exact=1))
    machine.execute(Vector(o_base=1))
    assert machine.act[0].tolist() == once[differs].tolist()
    assert machine.act[1].tolist() == twice[differs].tolist()


def test_a_write_keeps_the_other_lanes() -> None:
    machine = filled(GEOMETRIES[3], 3)
    before = machine.act[WRITE].copy()
    machine.execute(Vector(op=VectorOp.SUM, a_base=READ, o_base=WRITE, lane_group=1, lo=5, hi=5))
    assert machine.act[WRITE].tolist() == [*before[:4], 5, 5, 5, 5]
