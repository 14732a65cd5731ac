"""Mutants of what ``compile`` writes and people edit: programs, arrays, board files, manifests; made by number."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mutation import Base, damaged, json_text
from program_mutants import program

from onnxhw.program import container


def manifest(base: Base, rng: random.Random) -> bytes:
    """A manifest."""
    return json_text(base.manifest, rng).encode("utf-8", "replace")


def simulations(base: Base, rng: random.Random) -> bytes:
    """A list of simulations."""
    return json_text(base.simulations, rng).encode("utf-8", "replace")


def board(base: Base, rng: random.Random) -> bytes:
    """A board file: lines dropped, repeated, with other values; or damaged."""
    if rng.random() < 0.2:
        return damaged(base.board.encode(), rng)
    lines = base.board.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        name, equals, _ = lines[at].partition("=")
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif equals:
            values = ("0", "-1", "1", '"mini"', '"x"', "[]", "[1]", '["x"]', '["ulx3s-85f"]', "true", "nan", "inf",
                      "{}", "1979-05-27", "9" * 30, "0x41113043", '""', "[" * 2000, '"""', "'\\u0000'",
                      "[[1], {a = 1}]", "1e400", "9" * 5000, '"\\u0007"', "25_000_000")  # fmt: skip
            lines[at] = f"{name}= {rng.choice(values)}"
        else:
            lines[at] = rng.choice(("[device]", "[[device]]", "[x]", "[", "a.b.c = 1", f"{'[' * 500}", "# \x07"))
        lines = lines or ["x = 1"]
    return ("\n".join(lines) + "\n").encode()


def arrays(base: Base, rng: random.Random) -> bytes:
    """An .npy or .npz: its bytes, the header of an array, or what an archive says of its members."""
    data = rng.choice(base.arrays)
    kind = rng.randrange(4)
    if kind == 0:
        return damaged(data, rng)
    if kind == 1 and data.startswith(b"PK"):
        at = data.rfind(b"PK\1\2")
        start = at if rng.random() < 0.5 else 0
        return data[:start] + damaged(data[start : start + 60], rng) + data[start + 60 :]
    header = rng.choice(HEADERS)
    shape = rng.choice(("()", "(1,)", "(0,)", "(-1, 3)", "(1, 3, 8, 8)", "(2, 3, 8, 8)", "(10**9,)", "'x'",
                        "(1099511627776,)", "(4611686018427387904, 4)", "(True,)", "(1.0,)", "(" + "1," * 70 + ")",
                        "(" * 3000))  # fmt: skip
    kinds = ("<f4", "|i1", "|O", "<f8", ">i2", "|b1", "<U3", "|V8", "[('a', '<f4')]", "M8[s]", "x", "<f" + "9" * 30,
             "<c8")  # fmt: skip
    text = header % (rng.choice(kinds), rng.choice(("True", "False", "2", "None")), shape)
    version = rng.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\7\0"))
    size = struct.pack("<H" if version == b"\1\0" else "<I", min(len(text) + 1, 65535))
    made = b"\x93NUMPY" + version + size + text.encode() + b"\n" + bytes(rng.choice((0, 10, 768, 6144)))
    if kind == 2:
        return made
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in rng.choice((("x.npy",), ("y.npy", "x.npy"), ("x",), (" ", "../x.npy"), ("labels.npy", "x.npy"))):
            archive.writestr(name, made)
    return buffer.getvalue()


HEADERS = (
    "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
    "{'descr': '%s', 'fortran_order': %s, 'shape': %s, 'more': 1}",
    "{'descr': %s, 'fortran_order': %s, 'shape': %s}",
    "['%s', %s, %s]",
)
KINDS: dict[str, Callable[[Base, random.Random], bytes]] = {
    "program": program, "arrays": arrays, "board": board, "manifest": manifest, "simulations": simulations,
}  # fmt: skip


def mutant(base: Base, kind: str, seed: int, index: int) -> bytes:
    """The mutant of a number."""
    return KINDS[kind](base, random.Random(f"{kind} {seed} {index}"))


@cache
def bases() -> Base:
    """Programs for the preset `mini`: the network of every instruction, with steps at its ports, and whatever of the
    models of `mutants` has a part for the hardware; and the rest."""
    import mutants

    from onnxhw.build.manifest import Manifest
    from onnxhw.cli.common.selftest_network import network
    from onnxhw.compiler import compile
    from onnxhw.errors import OnnxhwError
    from onnxhw.presets import preset

    graph, config = network(), preset("mini")
    steps = ({"op": "QuantizeLinear", "name": "q", "scale": 0.05, "zero_point": 3, "dtype": "int8"},)
    graph.inputs[0] = replace(graph.inputs[0], dtype="float32", steps=steps)
    ends: tuple[dict[str, Any], ...] = (
        {"op": "DequantizeLinear", "name": "d", "scale": 0.1, "zero_point": -1},
        {"op": "Mul", "name": "m", "value": [0.5 + channel for channel in range(10)], "swapped": False},
        {"op": "Reshape", "name": "r", "shape": [1, 10]},
        {"op": "Softmax", "name": "s", "axes": [1]},
    )
    graph.outputs[1] = replace(graph.outputs[1], shape=(1, 10), dtype="float32", steps=ends)
    whole = compile(graph, config)
    programs = [container.dumps(whole)] * 3
    for model in mutants.seeds():
        try:
            made = compile(model, config)
        except OnnxhwError:
            continue
        if made.programs:
            programs.append(container.dumps(made))
    noted = Manifest(
        "ulx3s-85f", "LFE5U-85F", "mini", config.fingerprint, "0" * 64, "0" * 40, 25_000_000, 3_000_000, seed=1,
        fmax_mhz=31.5, timing_met=True, critical_path="a to b", tools={"onnx": "1.21"},
        resources={"LUT4": {"used": 1, "available": 2}}, clocks={"clk": {"achieved": 31.5, "wanted": 25.0}},
        shapes=["N=1"], limits=["nodes=1000"],
        preprocess={"scale": 1.0, "mean": [0.0], "std": [1.0], "layout": "nchw"},
        choice={"prefer": "speed", "rates": {"baud": 3_000_000, "clock_hz": 25_000_000}},
    )  # fmt: skip
    noted.add_file("program.ohw", programs[0])
    record = {"engine": "cxxrtl", "inferences": 1, "cycles": whole.cycles, "predicted_cycles": whole.cycles,
              "reference": "emulator", "equal": True, "program_sha256": noted.files["program.ohw"]}  # fmt: skip
    text = (Path(__file__).resolve().parent.parent / "boards" / "ulx3s-85f.toml").read_text(encoding="utf-8")
    samples = np.random.default_rng(0).normal(size=(2, 3, 12, 12)).astype(np.float32)
    found = []
    for save in (lambda file: np.save(file, samples), lambda file: np.savez(file, x=samples, labels=np.arange(2)),
                 lambda file: np.savez_compressed(file, x=samples)):  # fmt: skip
        buffer = io.BytesIO()
        save(buffer)
        found.append(buffer.getvalue())
    simulated = json.dumps([record, {**record, "engine": "emulator", "part_cycles": [1, None]}])
    return Base(tuple(programs), text, noted.to_json(), simulated, tuple(found))
