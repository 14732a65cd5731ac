"""The rooflines of the page: a point per layer that multiplies, in the plot, under its roof."""

import dataclasses
from xml.etree import ElementTree

import linked_program
import pytest

from onnxhw.program.model import DeviceProgram
from onnxhw.report import roofline_svg
from onnxhw.report.page import main_loss, page
from onnxhw.report.profile import profile
from onnxhw.report.roofline import panels, points
from onnxhw.report.roofline_svg import rooflines


@pytest.mark.parametrize("linked", [False, True])
def test_every_layer_is_a_point_of_every_panel(linked: bool, program: DeviceProgram) -> None:
    """A network in segments has external memory's roof, too, for those layers that move something."""
    made = linked_program.program() if linked else program
    found = points(made, profile(made))
    drawn = panels(made, found)
    assert [panel.title.split(":")[0] for panel in drawn] == ["weights", "results", "external memory"][: 2 + linked]
    circles = ElementTree.fromstring(rooflines(made, profile(made))).findall("circle[title]")
    assert len(circles) == sum(len(panel.placed) for panel in drawn)
    assert len(drawn[0].placed) == len(found) > 0
    top, foot = roofline_svg.TOP, roofline_svg.TOP + roofline_svg.PLOT
    for circle in circles:
        assert roofline_svg.LEFT <= float(circle.get("cx") or -1) <= roofline_svg.WIDTH
        assert top <= float(circle.get("cy") or -1) <= foot


def test_what_is_worse_lies_deeper(program: DeviceProgram) -> None:
    found = profile(program)
    by_number = {
        int(circle.findtext("title", "").split()[0]): float(circle.get("cy") or -1)
        for circle in ElementTree.fromstring(rooflines(program, found)).findall("circle[title]")
    }
    rates = {point.number: point.rate for point in points(program, found)}
    assert sorted(by_number, key=by_number.__getitem__) == sorted(rates, key=rates.__getitem__, reverse=True)


def test_a_program_without_sums_has_none(program: DeviceProgram) -> None:
    layers = [dataclasses.replace(layer, macs=0) for layer in program.layers]
    made = dataclasses.replace(program, layers=layers, macs=0)
    assert rooflines(made, profile(made)) == ""
    assert "Rooflines" not in page(made, profile(made), {}, [])


def test_the_page_has_them_and_what_each_layer_loses_most_to(program: DeviceProgram) -> None:
    found = profile(program)
    text = page(program, found, {}, [])
    assert rooflines(program, found) in text
    lost = [row for row in found.layers if main_loss(row)]
    assert lost
    for row in lost:
        name = main_loss(row)
        assert row.losses[name] == max(row.losses.values())
        assert f"{name} {100 * row.losses[name] / row.window:.1f} %" in text
    idle = dataclasses.replace(found.layers[0], losses=dict.fromkeys(found.layers[0].losses, 0))
    assert main_loss(idle) == ""


def test_many_layers_scroll_below_their_heads(program: DeviceProgram) -> None:
    found = profile(program)
    assert 'class="scroll tall"' not in page(program, found, {}, [])
    many = dataclasses.replace(found, layers=found.layers * 10)
    long = dataclasses.replace(program, layers=program.layers * 10)
    assert 'class="scroll tall"' in page(long, many, {}, [])
