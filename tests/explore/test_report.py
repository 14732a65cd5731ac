"""The report: every point of the front by its numbers, names escaped, pictures that hold their points."""

import re
from xml.etree import ElementTree

import pytest

from onnxhw.explore.point import DesignPoint
from onnxhw.explore.report import HEIGHT, WIDTH, page, scatter, ticks
from onnxhw.presets import PRESETS

POINTS = [DesignPoint(PRESETS["mini"], (cycles,), (1,), lut=lut, ff=1, dsp=2, ebr=3, mhz=100.0)
          for cycles, lut in ((500, 9000), (4000, 7000), (90_000, 100))]  # fmt: skip


def row(point, **more):
    return {"preset": "front<1>.json", "cycles": point.cycles[0], "latency_us": point.latency_us, "mhz": 100.0,
            "lut": point.lut, "ff": 1, "dsp": 2, "ebr": 3, "traffic": 1, "moved": 77, "forecast": False, "refused": "",
            "config": {"rows": 4, "cols": 4, "inner_product": "plain", "lanes": 2}, **more}  # fmt: skip


def record(*rows):
    return {"points": 3, "asked": 5, "processor_seconds": 1.5, "seed": 0, "objectives": ["lut"], "front": list(rows),
            "models": ["a<b"], "board": "ulx3s", "presets": [row(POINTS[1], preset="mini")],
            "failed": []}  # fmt: skip


def test_the_page_has_the_front_and_what_tools_made_of_it():
    routed = {"lut": 8123, "ebr": 3, "mhz": 97.5, "latency_us": 5.13}
    text = page(record(row(POINTS[0], routed=routed), row(POINTS[1])), POINTS)
    assert "front&lt;1&gt;.json" in text
    assert "a&lt;b on ulx3s" in text
    assert "front<1>" not in text
    assert ("8123" in text, "97.5" in text, "4,000" in text) == (True, True, True)
    assert len(re.findall("<svg", text)) == 3
    assert "http" not in text


def test_the_page_says_what_could_not_be_routed():
    text = page(record(row(POINTS[0], routed={"failed": "E7102 no place", "seed": 1})), POINTS)
    assert "E7102 no place" in text


def test_the_page_says_which_cycles_are_forecasts():
    assert "forecast" not in page(record(row(POINTS[0])), POINTS)
    with_segments = record(row(POINTS[0]))
    with_segments["presets"][0]["forecast"] = True
    assert "forecasts, within some 20 %" in page(with_segments, POINTS)


def test_a_page_of_nothing_is_a_page():
    assert "<svg" not in page({**record(), "presets": []}, [])
    assert "Predicted, synthesized" not in page(record(row(POINTS[0])), POINTS)


@pytest.mark.parametrize("points", [[(1.0, 5.0)], [(1.0, 0.0), (1000.0, 7.0), (30.0, 3.0)], [(3.0, 2.0), (4.0, 2.0)]])
def test_every_point_is_in_the_picture_and_in_order(points):
    drawing = ElementTree.fromstring(str(scatter("a & b", "c < d", [("front", points)])))
    circles = [(float(one.get("cx")), float(one.get("cy"))) for one in drawing.iter("circle")]
    assert len(circles) == len(points)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in circles)
    order = sorted(range(len(points)), key=lambda at: points[at][0])
    assert order == sorted(range(len(points)), key=lambda at: circles[at][0])


@pytest.mark.parametrize(("low", "high"), [(0, 1.05), (0, 24288), (0, 7), (3, 3.5)])
def test_ticks_are_few_and_between_the_ends(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low <= tick <= high for tick in found)
