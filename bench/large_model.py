"""Quantized models of any number of nodes, and what `onnxhw check` takes for them.

    python bench/large_model.py 10000 large.onnx                  residual blocks of convolutions
    python bench/large_model.py 10000 large.onnx --kind chain     functions of one element, one after another
    python bench/large_model.py 10000 large.onnx --kind tables    the same, no two on the same grids
    python bench/large_model.py 10000 large.onnx --kind inputs    convolutions side by side, each of its own input
    python bench/large_model.py 10000 large.onnx --kind concat    the same of one input, concatenated: too large
    python bench/large_model.py 10000 large.onnx --kind slices    slices of one tensor, one of another: reversed rows
    python bench/large_model.py 10000 large.onnx --kind qoperator convolutions, sums and functions as QOperators
    python bench/large_model.py 10000 large.onnx --kind qonnx     convolutions, sums and functions between Quants
    python bench/large_model.py 10000 large.onnx --kind float     the same without quantization: all on the host
    python bench/large_model.py 10000 large.onnx --measure        and the user CPU seconds of each step of `check`

In every tenth block of residual blocks there is an operator that only the host has.
"""

import argparse
import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIZE = 8, 8
QONNX = "qonnx.custom_op.general"
SHAPE = [1, CHANNELS, SIZE, SIZE]


def large_model(nodes: int, host_every: int = 10, seed: int = 0) -> onnx.ModelProto:
    """A model of about `nodes` nodes (never fewer); `host_every` blocks there is a node for the host, 0: none."""
    random = np.random.default_rng(seed)
    graph = onnx.GraphProto(name=f"large-{nodes}")

    def constant(name: str, values: "np.typing.ArrayLike") -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    scale, zero = constant("scale", np.float32(0.125)), constant("zero", np.int8(0))
    weight_scale, weight_zero = constant("weight_scale", np.float32(0.0625)), constant("weight_zero", np.int8(0))

    def node(op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type}_{len(graph.node)}"
        graph.node.append(helper.make_node(op_type, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def requantize(x: str) -> str:
        return node("DequantizeLinear", node("QuantizeLinear", x, scale, zero), scale, zero)

    x = requantize("x")
    block = 0
    while len(graph.node) < nodes:
        weight = random.integers(-8, 8, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8)
        real = node("DequantizeLinear", constant(f"weight_{block}", weight), weight_scale, weight_zero)
        y = requantize(node("Relu", node("Conv", x, real)))
        if host_every and block % host_every == host_every - 1:
            y = requantize(node("Trilu", y))
        x = requantize(node("Add", x, y))
        block += 1
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE))
    graph.output.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, SHAPE))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def chain(nodes: int, function: str = "LeakyRelu", same: bool = True) -> onnx.ModelProto:
    """A model of at least `nodes` nodes: a quantized function, again and again, on one grid or on others."""
    constants = {"scale": np.float32(0.125), "zero": np.int8(0)}
    made: list[onnx.NodeProto] = []
    x = "x"
    while len(made) < nodes:
        grid = ["scale", "zero"]
        if not same:
            grid[0] = f"scale_{len(made)}"
            constants[grid[0]] = np.float32(0.0078125 + len(made) / 2**21)
        for op_type, more in (("QuantizeLinear", grid), ("DequantizeLinear", grid), (function, [])):
            name = f"{op_type}_{len(made)}"
            made.append(helper.make_node(op_type, [x, *more], [f"{name}_out"], name=name))
            x = f"{name}_out"
    made += [
        helper.make_node("QuantizeLinear", [x, "scale", "zero"], ["q"], name="last_q"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="last_dq"),
    ]
    return _whole(f"chain-{nodes}", made, constants)


def parallel(nodes: int, concat: bool) -> onnx.ModelProto:
    """A model of at least `nodes` nodes: quantized convolutions side by side. Each has an input and an output of its
    own, or, with `concat`, all read one input and make one output together."""
    random, made, inputs, parts = np.random.default_rng(0), list[onnx.NodeProto](), list[str](), list[str]()
    constants = {"scale": np.float32(0.125), "zero": np.int8(0)}

    def node(op_type: str, *operands: str, **attributes: object) -> str:
        name = f"{op_type}_{len(made)}"
        made.append(helper.make_node(op_type, operands, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def requantize(x: str) -> str:
        return node("DequantizeLinear", node("QuantizeLinear", x, "scale", "zero"), "scale", "zero")

    while len(made) < nodes - 3 * concat:
        if not inputs or not concat:
            inputs.append(f"x{len(parts)}")
            x = requantize(inputs[-1])
        constants[f"weight_{len(parts)}"] = random.integers(-8, 8, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8)
        weight = node("DequantizeLinear", f"weight_{len(parts)}", "scale", "zero")
        parts.append(requantize(node("Conv", x, weight)))
    outputs = [requantize(node("Concat", *parts, axis=1))] if concat else parts
    shape = [1, CHANNELS * len(parts), SIZE, SIZE] if concat else SHAPE
    graph = helper.make_graph(
        made, f"parallel-{nodes}", [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs],
        [numpy_helper.from_array(np.asarray(values), name) for name, values in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def slices(nodes: int) -> onnx.ModelProto:
    """A model of at least `nodes` nodes: Slices that turn the rows around, each of the one before."""
    constants = {"scale": np.float32(0.125), "zero": np.int8(0), "last": np.array([-1]), "first": np.array([-99]),
                 "axis": np.array([2]), "step": np.array([-1])}  # fmt: skip
    made = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="q"),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x0"], name="dq")]  # fmt: skip
    for count in range(nodes - 4):
        names = [f"x{count}", "last", "first", "axis", "step"]
        made.append(helper.make_node("Slice", names, [f"x{count + 1}"], name=f"slice{count}"))
    made += [helper.make_node("QuantizeLinear", [f"x{nodes - 4}", "scale", "zero"], ["last_q"], name="last_q"),
             helper.make_node("DequantizeLinear", ["last_q", "scale", "zero"], ["y"], name="last_dq")]  # fmt: skip
    return _whole(f"slices-{nodes}", made, constants)


def qoperators(nodes: int) -> onnx.ModelProto:
    """A model of at least `nodes` nodes: QLinearConv, QLinearAdd and QLinearLeakyRelu in turn."""
    random, made = np.random.default_rng(0), list[onnx.NodeProto]()
    constants = {"scale": np.float32(0.125), "zero": np.uint8(3), "weight_zero": np.int8(0)}
    grid = ["scale", "zero"]
    made.append(helper.make_node("QuantizeLinear", ["x", *grid], ["x0"], name="q"))
    block = 0
    while len(made) < nodes - 1:
        weight, x, own = f"weight_{block}", f"x{block}", {"domain": "com.microsoft"}
        constants[weight] = random.integers(-8, 8, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8)
        made += [
            helper.make_node("QLinearConv", [x, *grid, weight, "scale", "weight_zero", *grid], [f"c{block}"]),
            helper.make_node("QLinearAdd", [x, *grid, f"c{block}", *grid, *grid], [f"a{block}"], **own),
            helper.make_node("QLinearLeakyRelu", [f"a{block}", *grid, *grid], [f"x{block + 1}"], alpha=0.1, **own),
        ]
        block += 1
    made.append(helper.make_node("DequantizeLinear", [f"x{block}", *grid], ["y"], name="last_dq"))
    return _whole(f"qoperators-{nodes}", made, constants)


def floats(nodes: int, quantized: bool) -> onnx.ModelProto:
    """A model of at least `nodes` nodes: Conv, Add and LeakyRelu in turn, in float or with a Quant behind each."""
    random, made = np.random.default_rng(0), list[onnx.NodeProto]()
    constants = {"scale": np.float32(0.125), "zero": np.float32(0), "bits": np.float32(8)}

    def node(op_type: str, *operands: str, **attributes: object) -> str:
        made.append(helper.make_node(op_type, operands, [f"v{len(made)}"], name=f"{op_type}_{len(made)}", **attributes))
        return f"v{len(made) - 1}"

    def grid(x: str) -> str:
        rounding = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
        return node("Quant", x, "scale", "zero", "bits", domain=QONNX, **rounding) if quantized else x

    x = grid("x")
    while len(made) < nodes - 1:
        weight = f"weight_{len(made)}"
        constants[weight] = (random.integers(-8, 8, (CHANNELS, CHANNELS, 1, 1)) / 8).astype(np.float32)
        y = grid(node("Conv", x, grid(weight)))
        x = grid(node("LeakyRelu", grid(node("Add", x, y)), alpha=0.1))
    made.append(helper.make_node("Identity", [x], ["y"], name="last"))
    return _whole(f"{'qonnx' if quantized else 'float'}-{nodes}", made, constants)


def _whole(name: str, made: list[onnx.NodeProto], constants: dict[str, "np.typing.ArrayLike"]) -> onnx.ModelProto:
    """A model from x to y."""
    graph = helper.make_graph(
        made, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)],
        [numpy_helper.from_array(np.asarray(values), of) for of, values in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid(QONNX, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


KINDS = {
    "convolutions": large_model,
    "chain": chain,
    "tables": lambda nodes: chain(nodes, "Sigmoid", same=False),
    "inputs": lambda nodes: parallel(nodes, concat=False),
    "slices": slices,
    "qoperator": qoperators,
    "qonnx": lambda nodes: floats(nodes, quantized=True),
    "float": lambda nodes: floats(nodes, quantized=False),
    "concat": lambda nodes: parallel(nodes, concat=True),
}


@contextmanager
def stage(name: str, seconds: dict[str, float]) -> Iterator[None]:
    """Note the user CPU seconds of the block."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    yield
    seconds[name] = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before


def measure(path: Path) -> dict[str, float]:
    """User CPU seconds of each step of ``onnxhw check`` on a model, as `partition.read` takes them."""
    seconds: dict[str, float] = {}
    gc.disable()  # as the command does
    with stage("import", seconds):
        from onnxhw.compiler.capacity import fit
        from onnxhw.convert.conversion import convert
        from onnxhw.convert.static_model import StaticModel
        from onnxhw.onnxfile.limits import DEFAULT
        from onnxhw.onnxmodel.inline import inline
        from onnxhw.onnxmodel.read import read
        from onnxhw.onnxmodel.shapes import specialise
        from onnxhw.onnxmodel.specification import diagnose
        from onnxhw.onnxmodel.unroll import unroll
        from onnxhw.partition.pipeline import parts_of
        from onnxhw.presets import preset
        from onnxhw.worker import worker_scope
    with stage("read", seconds):
        reading = read(path, DEFAULT, separate_large=True)
        model = reading.model
    with stage("diagnose", seconds):
        diagnose(model, str(path))
    with stage("inline, unroll", seconds):
        model = unroll(inline(model, DEFAULT, str(path)), DEFAULT)
    with stage("specialise", seconds):
        model, known = specialise(model, str(path))
    with stage("convert", seconds), worker_scope():
        made = convert(StaticModel.of(model, known, reading.large_constants))
    with stage("partition", seconds):
        mixed = parts_of(made, [])
    with stage("fit", seconds):
        fit([part.graph for part in mixed.hardware], preset("mini"))
    return seconds


def main() -> None:
    """Write the model, and measure if asked to."""
    parser = argparse.ArgumentParser(description="A large quantized model.")
    parser.add_argument("nodes", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--kind", choices=list(KINDS), default="convolutions")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    model = KINDS[given.kind](given.nodes)
    given.path.write_bytes(model.SerializeToString())
    if given.measure:
        seconds = measure(given.path)
        for name, one in {**seconds, "all": sum(seconds.values())}.items():
            print(f"{name:16}{one:6.2f} s")


if __name__ == "__main__":
    main()
