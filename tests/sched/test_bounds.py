"""Bounds of instructions whose unit the checker knows, and of one that it does not."""

import dataclasses
from typing import Any

import pytest

from onnxhw.errors import InternalError
from onnxhw.isa.fields import unsigned
from onnxhw.isa.instructions import UNITS, Ordered
from onnxhw.isa.units import Ports, Unit
from onnxhw.program.model import DeviceProgram
from onnxhw.sched import schedule
from onnxhw.sched.bounds import bounds


@dataclasses.dataclass(frozen=True)
class Unknown(Ordered):
    """Of a unit that only this test has, in the place of the load unit."""

    UNIT = Unit.LOAD

    rounds: int = unsigned(4, "how often", 2, least=2)


@pytest.fixture
def program(new_net: Any, configure: Any) -> DeviceProgram:
    net = new_net(0)
    return schedule(net.graph(net.conv(net.input(3, 4, 4), 4, (1, 1))), configure(4, 4, 4, 2))


def test_an_unknown_unit_is_refused_unless_it_touches_nothing(
    program: DeviceProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds(program)
    monkeypatch.setitem(UNITS, Unit.LOAD, Unknown)
    strange = dataclasses.replace(program, code={**program.code, Unit.LOAD: [Unknown()]})
    with pytest.raises(InternalError, match="does not know what this unit touches") as caught:
        bounds(strange)
    assert caught.value.code == "E1204"
    monkeypatch.setattr(Unit.LOAD, "ports", Ports())
    bounds(strange)
    small = dataclasses.replace(program, code={**program.code, Unit.LOAD: [Unknown(rounds=1)]})
    with pytest.raises(InternalError, match="rounds must be at least 2"):
        bounds(small)
