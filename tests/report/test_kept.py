"""What the report says of inputs that travel as patches."""

import dataclasses

import pytest

from onnxhw.program.kept import Patches
from onnxhw.program.layout import Place
from onnxhw.program.model import DeviceProgram, Entry
from onnxhw.report.kept import patched, sentences

WINDOW = Patches((3, 3), (2, 1), (1, 1), (1, 1, 1, 1))


@pytest.mark.parametrize(
    ("channels", "plain", "patches"),
    [(1, 72 * 4, 40 * 3 * 4), (4, 72 * 4, 40 * 9 * 4), (5, 72 * 8, 40 * 12 * 4)],
)
def test_the_bytes_are_those_that_travel(program: DeviceProgram, channels: int, plain: int, patches: int) -> None:
    """9x8 pixels and 5x8 windows, four lanes to a host word, on the words of four lanes of `mini`."""
    shape = (1, channels, 9, 8)
    place = Place(0, 40, 8, (1, 9 * channels, 5, 8))
    kept = Entry("input", place, 0.1, 0, kept=WINDOW, model=shape)
    assert program.config.word == 4
    found = patched([dataclasses.replace(program, tensors={**program.tensors, "input": kept})])
    assert [(one.tensor, one.window, one.bytes_plain, one.bytes) for one in found] == [
        ("input", (3, 3), plain, patches)
    ]
    assert sentences(found, {"left_out": 0, "of": 0}) == [
        f"input 'input' travels as patches of 3x3, which the host makes: {plain:,} -> {patches:,} bytes"
    ]


def test_inputs_as_they_are_are_not_told_of(program: DeviceProgram) -> None:
    assert patched([program]) == []
