"""A program from a file is proved before anything runs it, whatever its checksum says."""

import dataclasses
from pathlib import Path
from typing import Any

import artifact_mutants
import numpy as np
import pytest
from large_graphs import tiny_memory
from onnx import TensorProto, helper, numpy_helper
from small_networks import NETWORKS, SMALL

from onnxhw import InferenceSession, program_verifier
from onnxhw.cli.common.selftest_network import network
from onnxhw.compiler import compile_graph as compiled
from onnxhw.compiler import place_and_schedule
from onnxhw.driver import artifact
from onnxhw.emu import run
from onnxhw.errors import InternalError, OnnxhwError, UsageError
from onnxhw.fixed import Scale
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Graph, Port, Tensor
from onnxhw.ir.parts import GoldenPart, HostPart, ValueInfo
from onnxhw.ir.steps import apply
from onnxhw.isa.instructions import VectorOp
from onnxhw.isa.memory import Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.presets import preset
from onnxhw.program import container
from onnxhw.program.layout import Place
from onnxhw.program.model import DeviceProgram, Layer, TensorPart
from onnxhw.program.parts import Program
from onnxhw.program.schema import message
from onnxhw.runtime import loading
from onnxhw.sched import check

MUTANTS = 150


@pytest.fixture(scope="module")
def program() -> DeviceProgram:
    return compiled(network(), preset("mini"))


def changed(program: DeviceProgram, unit: str, index: int, **fields: int) -> DeviceProgram:
    """With other fields in one instruction, and the cycles that this takes."""
    code = {name: list(items) for name, items in program.code.items()}
    code[unit][index] = code[unit][index].but(**fields)
    return dataclasses.replace(program, code=code, cycles=timeline(program.config, code).cycles)


def vector(program: DeviceProgram, op: VectorOp) -> int:
    return next(index for index, i in enumerate(program.code["vector"]) if i.op == op)


def entry(program: DeviceProgram, name: str, **fields: Any) -> DeviceProgram:
    tensors = {**program.tensors, name: dataclasses.replace(program.tensors[name], **fields)}
    return dataclasses.replace(program, tensors=tensors)


def place(program: DeviceProgram, name: str, **fields: Any) -> DeviceProgram:
    return entry(program, name, place=dataclasses.replace(program.tensors[name].place, **fields))


def port(program: DeviceProgram, **fields: Any) -> DeviceProgram:
    return dataclasses.replace(program, outputs=[dataclasses.replace(program.outputs[0], **fields)])


def steps(*found: Any) -> Any:
    return lambda p: port(p, steps=found)


def beyond(program: DeviceProgram) -> DeviceProgram:
    """ADD with a second multiplier that the datapath does not hold."""
    params = program.params.copy()
    row = program.code["vector"][vector(program, VectorOp.ADD)].param_base  # type: ignore[attr-defined]
    params[row] = Scale(1 << 20, 20, -1).pack()
    return dataclasses.replace(program, params=params)


WRONG = {
    "cycles": lambda p: dataclasses.replace(p, cycles=p.cycles + 1),
    "an ordering field": lambda p: changed(p, "vector", 0, after_array=0),
    "an address": lambda p: changed(p, "array", 0, act_base=p.config.act_words),
    "a word that nobody wrote": lambda p: changed(p, "vector", vector(p, VectorOp.SUM), a_base=p.config.act_words - 9),
    "weights": lambda p: dataclasses.replace(p, weights=p.weights[:-1]),
    "lo beyond hi": lambda p: changed(p, "vector", 0, lo=5, hi=4),
    "a maximum of nothing": lambda p: changed(p, "vector", vector(p, VectorOp.MAX), ih0=-100),
    "a sum left out": lambda p: changed(p, "vector", vector(p, VectorOp.ADD), in_h=1, ih_oh=1),
    "a second multiplier": beyond,
    "a million tiles": lambda p: dataclasses.replace(p, code={**p.code, "load": [p.code["load"][0].but(tiles=65535)]}),
    "inputs free too early": lambda p: dataclasses.replace(p, input_free=(1, 0)),
    "an output that is not complete": lambda p: entry(p, "dense", ready=1),
    "lanes that nobody wrote": lambda p: place(p, "dense", shape=(1, p.config.word, 1, 1), lane=0),
    "a tensor of petabytes": lambda p: place(p, "dense", shape=(1, 1 << 30, 1 << 30, 1)),
    "an address beyond 64 bits": lambda p: place(p, "dense", base=(1 << 32) - 1, plane=(1 << 32) - 1),
    "a scale": lambda p: entry(p, "dense", scale=float("nan")),
    "a zero point": lambda p: entry(p, "dense", zero_point=1 << 20),
    "a layer": lambda p: dataclasses.replace(p, layers=[Layer("l", "Conv", 0, {"array": [(0, 99)]})]),
    "an unknown step": steps({"op": "System", "name": ""}),
    "a step without its attribute": steps({"op": "DequantizeLinear", "name": ""}),
    "a step of lists": steps({"op": "DequantizeLinear", "name": "", "scale": [[1.0]], "zero_point": 0}),
    "no step": steps(3),
    "a scale that is 0 in float32": steps({"op": "DequantizeLinear", "name": "", "scale": 1e-300, "zero_point": 0}),
    "a zero point without end": steps({"op": "DequantizeLinear", "name": "", "scale": 1.0, "zero_point": 1e400}),
    "channels that grow": steps({"op": "Add", "name": "", "value": [0.5] * 1000, "swapped": False}),
    "parts that are none": steps({"op": "Sums", "name": "", "weights": [], "term": 0}),
    "an axis that is not there": steps({"op": "ArgMax", "name": "", "axis": 9, "keepdims": 1, "last": 0}),
    "a type": lambda p: port(p, dtype="object"),
    "another shape": lambda p: port(p, shape=(1, 3)),
    "one input twice": lambda p: dataclasses.replace(p, inputs=[p.inputs[0], p.inputs[0]]),
}  # fmt: skip
WRONG_OF_WORDS = {
    "positions beyond 16 bits": lambda p: changed(p, "array", 0, ih0=32767),
    "two pixels in one word": lambda p: place(p, "x", row=1),
}
"""Of a program that reads its input by whole words: packed inputs have neither rows of places nor positions."""


@pytest.mark.parametrize("what", [*WRONG, *WRONG_OF_WORDS])
def test_a_wrong_program_is_refused_as_the_files_fault(program: DeviceProgram, tmp_path: Path, what: str) -> None:
    """As read from a file whose checksum is right. The code is no bug of ours, the exit status 2."""
    path = tmp_path / "program.ohw"
    if what in WRONG_OF_WORDS:
        program = compiled(network(), dataclasses.replace(preset("mini"), unaligned=0))
    try:
        path.write_bytes(container.dumps(Program.of((WRONG | WRONG_OF_WORDS)[what](program))))
    except ValueError:
        pytest.fail("cannot be written")
    for load in (artifact.read, loading.load):
        with pytest.raises(UsageError, match=r"program\.ohw: no valid program") as caught:
            load(path)
        assert caught.value.code == "E2460"


@pytest.fixture(scope="module")
def in_segments() -> DeviceProgram:
    return compiled(NETWORKS["residual"](), SMALL)


def move(program: DeviceProgram, **fields: int) -> DeviceProgram:
    """With other fields in a move that brings weights; the cycles are not the point."""
    moves = list(program.code[Unit.MOVE])
    index = next(n for n, each in enumerate(moves) if each.space == Space.WEIGHT)  # type: ignore[attr-defined]
    moves[index] = moves[index].but(**fields)
    return dataclasses.replace(program, code={**program.code, Unit.MOVE: moves})


def piece(program: DeviceProgram, port: Port, **fields: Any) -> DeviceProgram:
    """With another first piece of an input or output in external memory."""
    first, *others = program.tensors[port.tensor].external
    return entry(program, port.tensor, external=(dataclasses.replace(first, **fields), *others))


WRONG_IN_SEGMENTS = {
    "cycles": lambda p: dataclasses.replace(p, cycles=p.cycles - 1),
    "an image without room": lambda p: dataclasses.replace(
        p, config=tiny_memory(rows=2), external=np.zeros(1 << 12, np.uint32)
    ),
    "a move beyond its memory": lambda p: move(p, chip=SMALL.weight_depth),
    "a move to nowhere": lambda p: move(p, space=int(Space.CONTROL)),
    "weights that are stored": lambda p: move(p, store=1),
    "a move of gigabytes": lambda p: move(p, block_n=4095, run_n=4095, word_n=16383),
    "a move beyond external memory": lambda p: move(p, external=(1 << 24) - 1),
    "a piece beyond external memory": lambda p: piece(p, p.outputs[0], place=Place(1 << 24, 1, 1, (1, 4, 1, 1))),
    "a box beyond its tensor": lambda p: piece(p, p.inputs[0], box=Box((0, 99), (0, 1), (0, 1))),
    "an output in pieces": lambda p: piece(p, p.outputs[0], box=Box((0, 1), (0, 1), (0, 1))),
    "a part of another shape": lambda p: entry(
        p, next(e.name for e in p.tensors.values() if e.part), part=TensorPart("x", Box((0, 1), (0, 1), (0, 1)))
    ),
    "a program of the chip with pieces": lambda p: dataclasses.replace(p, code={**p.code, Unit.MOVE: []}),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_IN_SEGMENTS)
def test_a_wrong_program_in_segments_is_refused(in_segments: DeviceProgram, tmp_path: Path, what: str) -> None:
    path = tmp_path / "program.ohw"
    path.write_bytes(container.dumps(Program.of(WRONG_IN_SEGMENTS[what](in_segments))))
    with pytest.raises(UsageError) as caught:
        loading.load(path)
    assert caught.value.code in ("E2460", "E2121")


def test_a_right_program_in_segments_is_taken(in_segments: DeviceProgram, tmp_path: Path) -> None:
    container.save(Program.of(in_segments), tmp_path / "p.ohw")
    assert loading.load(tmp_path / "p.ohw").only().cycles == in_segments.cycles


def test_a_tensor_of_any_size_is_proved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes step by step, and the steps on a few values."""
    seen: list[int] = []
    monkeypatch.setattr(program_verifier, "apply", lambda found, x: (seen.append(x.size), apply(found, x))[1])
    shape = (1, 4, 2048, 2048)
    many = tuple({"op": "Erf", "name": ""} for _ in range(300))
    found = ({"op": "DequantizeLinear", "name": "", "scale": 0.5, "zero_point": 0}, *many,
             {"op": "Mul", "name": "", "value": [1.0, 2.0, 3.0, 4.0], "swapped": False},
             {"op": "Transpose", "name": "", "perm": [0, 2, 3, 1]}, {"op": "Reshape", "name": "", "shape": [1, -1, 4]},
             {"op": "Softmax", "name": "", "axes": [2]})  # fmt: skip
    graph = Graph("", {"t": Tensor("t", shape, 1.0, 0)}, [], [], [Port("y", (1, 1 << 22, 4), "float32", "t", found)])
    program_verifier.try_ports(graph, 1 << 24)
    assert len(seen) == 303
    assert max(seen) <= 512


@pytest.mark.parametrize(("domain", "activation"), [("", "Relu"), ("qonnx.custom_op.general", "BipolarQuant")])
def test_programs_whose_sums_leave_the_hardware_are_taken(tmp_path: Path, domain: str, activation: str) -> None:
    """Steps with a constant for each channel, and with the parts of sums, as `compile` writes them."""
    rng = np.random.default_rng(2)
    constants = {"s": np.float32(0.0625), "one": np.float32(1), "z": np.float32(0), "b8": np.float32(8),
                 "b2": np.float32(2), "w": rng.choice([-1, 0, 1], (16, 6)).astype(np.float32),
                 "c": rng.random(6).astype(np.float32)}  # fmt: skip
    quant = {"domain": "qonnx.custom_op.general", "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    nodes = [
        helper.make_node("Quant", ["x", "s", "z", "b8"], ["xq"], **quant),
        helper.make_node("Quant", ["w", "one", "z", "b2"], ["wq"], **quant),
        helper.make_node("MatMul", ["xq", "wq"], ["m"]),
        helper.make_node("Mul", ["m", "c"], ["o"]),
        helper.make_node(activation, ["o", "one"] if domain else ["o"], ["y"], domain=domain),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("qonnx.custom_op.general", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    program = place_and_schedule(model.SerializeToString(), preset("mini"), prefer="hardware").made
    assert program.programs
    container.save(program, tmp_path / "p.ohw")
    values = {"x": rng.normal(size=(1, 16)).astype(np.float32)}
    (found,) = InferenceSession(tmp_path / "p.ohw", device="emulator").run(None, values)
    (wanted,) = InferenceSession(model, device="golden").run(None, values)
    np.testing.assert_array_equal(found, wanted)


def test_a_right_program_and_one_with_other_weights_are_taken(program: DeviceProgram, tmp_path: Path) -> None:
    """A changed weight is another valid program."""
    assert program_verifier.verify_program(program) is program
    other = dataclasses.replace(program, weights=np.where(program.weights, program.weights ^ 1, 0).astype(np.uint8))
    container.save(Program.of(other), tmp_path / "p.ohw")
    assert loading.load(tmp_path / "p.ohw").cycles == program.cycles


def test_no_mutant_runs_that_the_checker_refuses(tmp_path: Path) -> None:
    """`scripts/fuzz_artifacts.py` in small: refused with a user's error, or it passes the checker and runs as told."""
    base, path, taken = artifact_mutants.bases(), tmp_path / "program.ohw", 0
    for number in range(MUTANTS):
        path.write_bytes(artifact_mutants.mutant(base, "program", 16, number))
        try:
            found = loading.load(path)
        except InternalError as error:
            pytest.fail(f"{number}: {error}")
        except OnnxhwError:
            continue
        for part in found.programs:
            assert check(part).cycles == part.cycles, number
            shapes = {port.tensor: part.tensors[port.tensor].shape for port in part.inputs}
            result = run(part, {name: np.zeros(shape, np.int8) for name, shape in shapes.items()})
            assert result.cycles == part.cycles, number
            taken += 1
    assert taken > MUTANTS // 10


# -- parts for the host ----------------------------------------------------------------------------


def secret(how: str) -> bytes:
    """A model of a Constant whose data lies in a file."""
    tensor = TensorProto(name="s", data_type=TensorProto.UINT8, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret.bin")
    more: list[Any] = []
    inner = helper.make_node("Constant", [], ["y"], value=tensor)
    if how == "subgraph":
        body = helper.make_graph([inner], "b", [], [helper.make_tensor_value_info("y", TensorProto.UINT8, [4])])
        nodes = [helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)]
    elif how == "function":
        ids = [helper.make_opsetid("", 18)]
        more = [helper.make_function("own", "F", [], ["y"], [inner], ids)]
        nodes = [helper.make_node("F", [], ["y"], domain="own")]
    else:
        nodes = [inner] if how == "attribute" else [helper.make_node("Identity", ["s"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, [4])
    graph = helper.make_graph(nodes, "g", [x], [y], [tensor] if how == "initializer" else [])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=more, ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("how", ["attribute", "initializer", "subgraph", "function"])
def test_a_part_for_the_host_reads_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret.bin").write_bytes(b"abcd")
    values = (ValueInfo("x", (), "bool"),), (ValueInfo("y", (4,), "uint8"),)
    container.save(Program("m", *values, [HostPart(("x",), ("y",), secret(how))]), "m.ohw")
    with pytest.raises(UsageError, match=r"part 0, for the host: .*\(E3[0-9]+\)") as caught:
        loading.load("m.ohw")
    assert caught.value.code == "E2461"


def test_a_part_for_the_host_has_the_inputs_and_outputs_that_it_names(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), helper.make_tensor_value_info("y", 1, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value[0]], [value[1]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    ends = (ValueInfo("x", (1,), "float32"),), (ValueInfo("y", (1,), "float32"),)
    container.save(Program("m", *ends, [HostPart(("x",), ("y",), model)]), tmp_path / "m.ohw")
    assert len(loading.load(tmp_path / "m.ohw").parts) == 1
    for part in (HostPart((), ("y",), model), HostPart(("x",), ("z",), model), HostPart(("x",), ("y",), model[:-3])):
        container.save(Program("m", *ends, [part]), tmp_path / "m.ohw")
        with pytest.raises(UsageError, match=r"E2461|E2460"):
            loading.load(tmp_path / "m.ohw")


def test_a_program_gives_something_and_its_hardware_reads_what_is_there(program: DeviceProgram, tmp_path: Path) -> None:
    whole = Program.of(program)
    optional = tuple(dataclasses.replace(value, optional=True) for value in whole.inputs)
    for wrong in (dataclasses.replace(whole, outputs=()), dataclasses.replace(whole, inputs=optional)):
        container.save(wrong, tmp_path / "p.ohw")
        with pytest.raises(UsageError, match=r"E2462 .*(gives nothing|is optional)"):
            loading.load(tmp_path / "p.ohw")


@pytest.mark.parametrize(("old", "new"), [("float32", "flo32"), ('"name": "q"', '"nam": "q"'), ("[1, 8]", "[1, 9]")])
def test_operations_for_the_host_have_ports_that_fit(tmp_path: Path, old: str, new: str) -> None:
    """As text in the file."""
    step = {"op": "QuantizeLinear", "name": "q", "scale": 0.5, "zero_point": 0, "dtype": "int8"}
    tensor = Tensor("t", (1, 8, 1, 1), 0.5, 0)
    ports = Port("x", (1, 8), "float32", "t", (step,)), Port("y", (1, 8, 1, 1), "int8", "t")
    graph = Graph("g", {"t": tensor}, [], [ports[0]], [ports[1]])
    ends = (ValueInfo("x", (1, 8), "float32"),), (ValueInfo("y", (1, 8, 1, 1), "int8"),)
    data = container.dumps(Program("m", *ends, [GoldenPart(graph)]))
    (tmp_path / "m.ohw").write_bytes(data)
    assert len(loading.load(tmp_path / "m.ohw").parts) == 1
    file, packed = message("File"), message("Program")
    file.ParseFromString(data)
    packed.ParseFromString(file.payload)
    assert old in packed.parts[0].golden
    packed.parts[0].golden = packed.parts[0].golden.replace(old, new)
    (tmp_path / "m.ohw").write_bytes(container._wrap(packed.SerializeToString(deterministic=True)))
    with pytest.raises(UsageError, match="E2461"):
        loading.load(tmp_path / "m.ohw")
