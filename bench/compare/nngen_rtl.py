"""Runs where NNgen is installed: layers and a parallelism in, Verilog of NNgen's accelerator with its memory out.

    python nngen_rtl.py LAYERS.json OUT CHANNELS_IN CHANNELS_OUT BUS_BITS

Writes OUT/top.v, OUT/memory.hex and OUT/facts.json. Weights are small random numbers: NNgen's cycles do not depend
on them. Results wanted are those of NNgen's own software (`ng.eval`).

What this works around in NNgen 1.3.4, each of which gives wrong numbers without a word: its ONNX reader takes pads in
another order than ONNX has them (the graph is made by hand here), and average pooling adds up in 8 bits unless told
otherwise.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import nngen as ng
import numpy as np
import veriloggen.thread as vthread
import veriloggen.types.axi as axi
from veriloggen import Module, Not, Seq

CHUNK = 64
MEMORY_BITS = 32


def network(layers: list[dict[str, Any]], par_in: int, par_out: int) -> tuple[Any, Any]:
    """NNgen's graph of a network, and its input."""
    random = np.random.RandomState(0)
    tensors: dict[str, Any] = {}
    first = layers[0]
    c, h, w = first["shape"]
    source = ng.placeholder(dtype=ng.int8, shape=(1, h, w, c), name="source")
    tensors[first["output"]] = source
    for number, layer in enumerate(layers[1:]):
        inputs = [tensors[name] for name in layer["inputs"]]
        if layer["kind"] == "conv":
            tensors[layer["output"]] = _conv(layer, inputs[0], number, random, par_in, par_out)
        elif layer["kind"] == "add":
            tensors[layer["output"]] = ng.add(*inputs, dtype=ng.int8, name=f"add{number}", par=par_out)
        elif layer["kind"] == "average":
            kernel = (1, *layer["kernel"], 1)
            tensors[layer["output"]] = ng.avg_pool_serial(
                inputs[0], kernel, kernel, "VALID", dtype=ng.int8, sum_dtype=ng.int32, par=par_out
            )
        else:
            raise SystemExit(f"no NNgen form of {layer['kind']} ({layer['output']})")
    return tensors[layers[-1]["output"]], source


def _conv(layer: dict[str, Any], x: Any, number: int, random: Any, par_in: int, par_out: int) -> Any:
    out, channels, rows, cols = layer["weight"]
    if layer["groups"] != 1:
        raise SystemExit("NNgen has no grouped convolution")
    top, left, bottom, right = layer["pads"]
    weight = ng.variable(dtype=ng.int8, shape=(out, rows, cols, channels), name=f"weight{number}")
    bias = ng.variable(dtype=ng.int32, shape=(out,), name=f"bias{number}")
    scale = ng.variable(dtype=ng.int8, shape=(out,), name=f"scale{number}")
    weight.set_value(random.randint(-8, 8, weight.shape))
    bias.set_value(random.randint(-64, 64, out))
    scale.set_value(random.randint(1, 4, out))
    y = ng.conv2d(
        x, weight, (1, *layer["strides"], 1), bias, scale,
        act_func=ng.relu if layer["relu"] else None, padding=(top, bottom, left, right),
        dtype=ng.int8, sum_dtype=ng.int32, name=f"conv{number}",
    )  # fmt: skip
    y.attribute(par_ich=par_in, par_och=par_out, cshamt_out=3 + (channels * rows * cols).bit_length() // 2)
    return y


def aligned(size: int) -> int:
    """The next multiple of NNgen's alignment."""
    return math.ceil(size / CHUNK) * CHUNK


def testbench(target: Any, y: Any, memory: np.ndarray, width: int, addresses: dict[str, int], folder: Path) -> Any:
    """A module with a clock alone: accelerator, AXI memory, and what starts it, takes the time and compares."""
    m = Module("top")
    clk = m.Input("clk")
    m.Wire("CLK").assign(clk)
    up = m.Reg("up", 8, initval=0)
    resetn, rst = m.Wire("RESETN"), m.Wire("RST")
    resetn.assign(up == 100)
    rst.assign(Not(resetn))
    cycles, done, wrong = (m.OutputReg(name, 32, initval=0) for name in ("cycles", "done", "wrong"))
    power = Seq(m, "power", clk)
    power.If(up != 100)(up.inc())
    ports = dict(m.copy_sim_ports(target, exclude=("CLK", "RESETN"), use_fullmatch=True), CLK=clk, RESETN=resetn)
    model = axi.AxiMemoryModel(
        m, "memory", clk, rst, datawidth=width, memimg=memory, memimg_name=str(folder / "memory.hex"),
        memimg_datawidth=MEMORY_BITS,
    )  # fmt: skip
    model.connect(ports, "maxi")
    saxi = vthread.AXIMLite(m, "control", clk, rst, noio=True)
    saxi.connect(ports, "saxi")
    time = m.Reg("time_counter", 32, initval=0)
    Seq(m, "timer", clk, rst)(time.inc())
    count = addresses["count"]

    def control() -> None:
        for _ in range(100):
            pass
        ng.sim.set_global_addrs(saxi, addresses["scratch"])
        start = time.value
        ng.sim.start(saxi)
        ng.sim.wait(saxi)
        cycles.value = time.value - start
        for i in range(count):
            got = model.read_word(i, y.addr, 8)
            want = model.read_word(i, addresses["check"], 8)
            if vthread.verilog.NotEql(got, want):
                wrong.value = wrong + 1
        done.value = 1
        while True:
            pass

    vthread.Thread(m, "thread", clk, rst, control).start()
    m.Instance(target, "uut", params=m.connect_params(target), ports=m.connect_ports(target))
    return m


def main() -> None:
    """The command line."""
    layers = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    par_in, par_out, width = map(int, sys.argv[3:6])
    y, source = network(layers, par_in, par_out)
    image = np.random.RandomState(1).randint(-64, 64, source.shape).astype(np.int64)
    wanted = ng.eval([y], source=image)[0]
    target = ng.to_veriloggen([y], "accelerator", silent=True, config={"maxi_datawidth": width})
    parameters = ng.export_ndarray([y], CHUNK)
    variables = aligned(source.addr + source.memory_size)
    check = aligned(variables + len(parameters))
    scratch = aligned(check + y.memory_size)
    memory = np.zeros([1 << 18], dtype=np.int64)
    words = max(math.ceil(width / 8), par_in)
    axi.set_memory(memory, image, MEMORY_BITS, 8, source.addr, words)
    axi.set_memory(memory, parameters, MEMORY_BITS, 8, variables)
    axi.set_memory(memory, wanted, MEMORY_BITS, 8, check, max(math.ceil(width / 8), par_out))
    addresses = {"check": check, "scratch": scratch, "count": int(wanted.size)}
    top = testbench(target, y, memory, width, addresses, folder)
    (folder / "top.v").write_text(top.to_verilog())
    facts = {"distinct": len(np.unique(wanted)), "outputs": int(wanted.size), "bytes": int(scratch)}
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
