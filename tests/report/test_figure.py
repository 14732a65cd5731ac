"""Roofline and timeline: what they say, and that they can be drawn."""

import importlib.util
import struct
import sys

import linked_program
import pytest

from onnxhw.errors import UsageError
from onnxhw.report.figure import figure
from onnxhw.report.profile import profile
from onnxhw.report.roofline import points, roofline

drawn = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")


def test_points_are_what_the_layers_moved(program):
    first, last = points(program, profile(program))
    assert (first.number, last.number) == (1, 3), "pooling multiplies nothing"
    config = program.config
    assert first.per_weight == pytest.approx(9 * 4 * 8 * 64 / (18 * config.tile_words * config.weight_word))
    assert first.per_result == pytest.approx(9 * 4 * 8 * 64 / (2 * 64 * 2 * config.lanes))
    assert last.per_weight == pytest.approx(8 * 4 * 4 / (2 * config.tile_words * config.weight_word))


def test_no_point_is_above_the_array(program):
    for point in points(program, profile(program)):
        assert 0 < point.rate <= program.config.macs_per_cycle


@drawn
def test_a_network_in_segments_has_a_third_roof():
    made = linked_program.program()
    found = points(made, profile(made))
    assert [point.per_moved for point in found] == [
        row.of_mode * row.window * row.peak / row.moved_bytes for row in profile(made).layers
    ]
    titles = [axes.get_title() for axes in roofline(made, profile(made)).axes]
    assert titles[:3] == ["weights: 4 bytes per cycle", "results: 2 per cycle", "external memory: 2 bytes per cycle"]


@drawn
def test_the_files_are_pictures_and_a_page_that_needs_no_other(program):
    from onnxhw.bench.plots import draw

    stem = f"{program.model}-{program.config.name}"
    files = draw(program, profile(program), stem)
    assert sorted(files) == ["sample-mini-roofline.png", "sample-mini-timeline.png", "sample-mini.html"]
    for name, data in files.items():
        if name.endswith(".png"):
            assert data[:8] == b"\x89PNG\r\n\x1a\n"
            width, height = struct.unpack(">II", data[16:24])
            assert width >= 1000
            assert height >= 300
    page = files["sample-mini.html"].decode()
    for word in ("<script", "src=", "@import", 'href="http'):
        assert word not in page
    assert page.count("<svg") == page.count("</svg>") == 3
    assert files == draw(program, profile(program), stem), "drawn twice, the same bytes"


def test_without_matplotlib_there_is_one_message(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(UsageError) as caught:
        figure(1, 1)
    assert caught.value.code == "E2606"
