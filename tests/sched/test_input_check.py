"""The proof that the input port puts inputs where the tensor table has them, and writes nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from onnxhw.errors import DoesNotFitError, InternalError
from onnxhw.isa.input_port import REGIONS, InputRegion
from onnxhw.program.input_regions import input_regions
from onnxhw.sched import input_check, schedule


@pytest.fixture
def program(new_net: Any, configure: Any) -> Any:
    """Two inputs, one of which takes two regions."""
    net = new_net(5)
    x, y = net.input(11, 5, 6), net.input(3, 5, 6)
    return schedule(net.graph(net.conv(x, 4, (3, 3)), net.conv(y, 4, (2, 3))), configure(8, 4, 8, 2))


CHANGES = {
    "one byte further": (lambda r: replace(r, first=r.first + 1), "other"),
    "a shorter run": (lambda r: replace(r, run=r.run - 1), "other places|bytes travel"),
    "fewer runs": (lambda r: replace(r, runs=r.runs - 1), "bytes travel"),
    "a longer gap": (lambda r: replace(r, gap=r.gap + 1), "other"),
    "filled gaps": (lambda r: replace(r, fill=0, tail=4000), "beyond activation memory|other words"),
    "no runs": (lambda r: replace(r, runs=0), "a count is out of range"),
    "backwards": (lambda r: replace(r, gap=-1), "a distance is out of range"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_regions_that_do_something_else_are_found(program: Any, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    input_check.check_input_regions(program)
    alter, why = CHANGES[change]
    real = input_check.regions

    def changed(entry: Any, word: int) -> list[InputRegion]:
        *others, last = real(entry, word)
        return [*others, alter(last)]

    monkeypatch.setattr(input_check, "regions", changed)
    with pytest.raises(InternalError, match=rf"E1260 .*({why})"):
        input_check.check_input_regions(program)


def test_an_input_without_a_region_is_found(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = input_check.regions
    monkeypatch.setattr(input_check, "regions", lambda entry, word: real(entry, word)[:1])
    with pytest.raises(InternalError, match=r"E1260 .*bytes travel, the port takes"):
        input_check.check_input_regions(program)


def test_more_inputs_than_the_port_has_regions_do_not_fit(new_net: Any, configure: Any) -> None:
    def wide(count: int) -> Any:
        net = new_net(6)
        return net.graph(*(net.conv(net.input(9, 2, 2), 4, (1, 1)) for _ in range(count)))

    config = configure(8, 4, 8, 2)
    assert len(input_regions(schedule(wide(REGIONS // 2), config))) == REGIONS
    with pytest.raises(DoesNotFitError, match=r"E5160 .*18 regions of memory, the input port has 16"):
        schedule(wide(REGIONS // 2 + 1), config)
