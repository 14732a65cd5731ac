"""The text of a program's code reads back exactly."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw.config import HwConfig
from onnxhw.errors import UsageError
from onnxhw.isa import UNITS
from onnxhw.program import Layer, assemble, disassemble
from onnxhw.program.asm import listing


@st.composite
def instructions(draw, unit: str):
    kind = UNITS[unit]
    values = {}
    for spec in draw(st.lists(st.sampled_from(kind.specs()), max_size=4)):
        low = -(1 << (spec.bits - 1)) if spec.signed else 0
        values[spec.name] = draw(st.integers(low, low + (1 << spec.bits) - 1))
    return kind(**values)


@st.composite
def codes(draw):
    code = {unit: draw(st.lists(instructions(unit), max_size=4)) for unit in UNITS}
    cuts = {unit: sorted(draw(st.lists(st.integers(0, len(code[unit])), min_size=3, max_size=3))) for unit in UNITS}
    layers = [
        Layer(draw(st.text()), draw(st.text()), 7, {unit: [(cuts[unit][n], cuts[unit][n + 1])] for unit in UNITS})
        for n in range(2)
    ]
    return code, layers, draw(st.text())


@settings(deadline=None)
@given(codes())
def test_round_trip(drawn) -> None:
    code, layers, name = drawn
    config = HwConfig(name, rows=4, cols=4, word=4, lanes=2)
    text = listing(config, code, layers, name)
    assert assemble(text) == (config, code)
    assert all(line.isprintable() for line in text.split("\n"))


def test_a_whole_program(program) -> None:
    assert assemble(disassemble(program)) == (program.config, program.code)


def test_each_line_stands_under_its_layer(program) -> None:
    lines = [line for line in disassemble(program).split("\n") if line]
    assert lines[0] == "# tiny: models/tiny.onnx"
    assert lines[1].startswith('config {"acc_bits": 32, ')
    heads = [n for n, line in enumerate(lines) if line.startswith("#")][1:]
    assert [lines[n] for n in heads] == ["# conv\\n1 (Conv), 1234 MACs", "# add (Add), 0 MACs", "# no layer"]
    units = [line.split()[0] for line in lines]
    assert units[heads[0] + 1 : heads[1]] == ["load"] * 2 + ["array"] * 3 + ["vector"]
    assert units[heads[1] + 1 : heads[2]] == ["vector"] * 3
    assert units[heads[2] + 1 :] == ["load", "array", "depthwise", "depthwise", "vector"]
    assert lines[heads[1] + 1].endswith("  # 1")


def test_written_by_hand(program) -> None:
    text = f"""
        config {program.config.to_json()}
        load tiles=0x10   # hexadecimal
        # nothing else
        load
        vector op=3 lo=-7
    """
    _, code = assemble(text)
    assert [instruction.text() for instruction in code["load"]] == ["load tiles=16", "load"]
    assert [instruction.text() for instruction in code["vector"]] == ["vector op=3 lo=-7"]
    assert code["array"] == []


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        (["store base=1"], "E2127", "line 2: a line is 'config' or one of load, array, depthwise, vector, not 'store'"),
        (["load", "load lanes=1"], "E2110", "line 3: load has no field 'lanes'"),
        (["array pad=x"], "E2111", "line 2: array.pad must be an integer, not 'x'"),
        (["array pad"], "E2111", "line 2: array.pad must be an integer, not ''"),
        (["array pad=200"], "E2127", "line 2: Array.pad must be -128..127, not 200"),
        (["load base=1 base=1"], "E2127", "line 2: load.base is given twice"),
        (["config {}"], "E2127", "line 2: a second configuration"),
    ],
)
def test_errors_name_the_line(program, lines: list[str], code: str, words: str) -> None:
    text = "\n".join([f"config {program.config.to_json()}", *lines])
    with pytest.raises(UsageError) as caught:
        assemble(text)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_the_configuration_must_be_there_and_right() -> None:
    with pytest.raises(UsageError, match="no 'config' line"):
        assemble("load tiles=1\n")
    with pytest.raises(UsageError, match="line 1: not a hardware configuration") as caught:
        assemble("config {")
    assert caught.value.code == "E2103"


def test_every_difference_shows(program) -> None:
    changed = {
        **program.code,
        "load": [dataclasses.replace(program.code["load"][0], after_vector=9), *program.code["load"][1:]],
    }
    assert assemble(listing(program.config, changed))[1] != program.code


def test_lines_of_layers_that_take_turns_name_theirs(program) -> None:
    first = Layer("a", "Conv", 1, {"vector": [(0, 1), (3, 5)]})
    layers = [first, Layer("b # 7", "Add", 0, {"vector": [(1, 3)]})]
    text = listing(program.config, program.code, layers)
    comments = [line.partition("#")[2].strip() for line in text.split("\n") if line.startswith("vector")]
    assert comments == ["0", "1 of b # 7", "2 of b # 7", "3", "4"]
    assert assemble(text) == (program.config, program.code)
