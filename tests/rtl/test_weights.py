"""The weight memory: words in block RAMs and, beyond them, in lookup tables come out alike."""

import random

import numpy as np
import pytest
from amaranth.sim import Simulator
from netlist import synthesize_netlist

from onnxhw.build.memory_contents import require_block_rams
from onnxhw.compiler import compile
from onnxhw.config import HwConfig
from onnxhw.errors import UsageError
from onnxhw.isa.timing import LOAD_TO_SHADOW, weight_skew
from onnxhw.presets import PRESETS
from onnxhw.rtl.weight_blocks import MOST_TAIL, blocks, tail
from onnxhw.rtl.weights import WeightMemory

DENSE = PRESETS["ulx3s-85f-dense"]


def config(depth: int, **changes: int) -> HwConfig:
    """A small array whose weight words are whole tiles."""
    fields = {"rows": 4, "cols": 4, "word": 4, "lanes": 2, "load_rows": 4, "acc_bits": 24, "weight_depth": depth}
    return HwConfig("tiny", **fields | changes)


@pytest.mark.parametrize(
    ("depth", "words"),
    [(512, 0), (513, 1), (1040, 16), (512 + MOST_TAIL, MOST_TAIL), (512 + MOST_TAIL + 1, 0), (16, 0)],
)
def test_a_short_rest_lies_in_lookup_tables(depth: int, words: int) -> None:
    assert tail(config(depth)) == tail(config(depth, load_rows=2)) == words


@pytest.mark.rtl
@pytest.mark.parametrize(("depth", "load_rows"), [(512, 4), (530, 4), (1040, 4), (1552, 4), (530, 1), (1040, 2)])
def test_words_come_out_late_by_their_skew_wherever_they_lie(depth: int, load_rows: int) -> None:
    small = config(depth, load_rows=load_rows)
    memory, width, rng = WeightMemory(small), small.weight_word, random.Random(depth)
    edges = (0, 16, 512, 1024, depth)
    near = [address for edge in edges for address in range(edge - 2, edge + 2) if 0 <= address < depth]
    written = [(address, rng.randrange(width), rng.randrange(256)) for address in near * 40]
    reads = rng.choices(near, k=300)
    wanted = np.zeros((depth, width), np.uint8)
    found = np.zeros((len(reads), width), np.uint8)
    latest = LOAD_TO_SHADOW + max(weight_skew(small, *divmod(byte, small.cols)) for byte in range(width))

    async def bench(ctx) -> None:
        for address, byte, value in written:
            ctx.set(memory.w_addr, address)
            ctx.set(memory.w_data, value << 8 * byte)
            ctx.set(memory.w_en, 1 << byte)
            wanted[address, byte] = value
            await ctx.tick()
        ctx.set(memory.w_en, 0)
        for cycle in range(len(reads) + latest):
            if cycle < len(reads):
                ctx.set(memory.r_addr, reads[cycle])
            row = ctx.get(memory.r_data).to_bytes(width, "little")
            for byte in range(width):
                index = cycle - LOAD_TO_SHADOW - weight_skew(small, *divmod(byte, small.cols))
                if 0 <= index < len(reads):
                    found[index, byte] = row[byte]
            await ctx.tick()

    simulator = Simulator(memory)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    np.testing.assert_array_equal(found, wanted[reads])


@pytest.mark.synth
@pytest.mark.slow
def test_weights_of_the_dense_preset_take_a_block_ram_for_two_bytes() -> None:
    netlist = synthesize_netlist(WeightMemory(DENSE), device="LFE5U-85F")
    assert netlist.ebrs == len(blocks(DENSE)) == DENSE.weight_word // 2
    assert netlist.cells["TRELLIS_DPR16X4"] == 8 * DENSE.weight_word // 4


def test_a_standalone_bitstream_has_no_weights_in_lookup_tables(reference_models) -> None:
    program = compile(reference_models / "ad_autoencoder_int8_qdq.onnx", DENSE).only()
    with pytest.raises(UsageError, match=r"E2333 .*1040 weight words, block RAMs of ulx3s-85f-dense hold 1024"):
        require_block_rams(program)
