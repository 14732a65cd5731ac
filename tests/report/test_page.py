"""The page, the drawings and the trace: complete, well-formed, and safe with any name."""

import itertools
import json
from collections import defaultdict
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from onnxhw.isa.microcode import pack
from onnxhw.isa.units import Unit
from onnxhw.program.input_regions import latency
from onnxhw.report import svg
from onnxhw.report.memory import lives, usage
from onnxhw.report.page import breakable, page
from onnxhw.report.profile import profile
from onnxhw.report.trace import GRID, layer_of, trace

VOID = {"meta", "br", "link", "img"}


class Balanced(HTMLParser):
    """Raises if tags are not nested."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        """``<rect/>`` opens nothing."""

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_balanced_and_has_the_numbers(program):
    found = profile(program)
    text = page(program, found, {}, [])
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert f"{found.cycles:,}" in text
    assert "Not simulated yet" in text
    assert "Not placed and routed" in text
    for unit in ("load", "array", "vector"):
        assert f"<td>{unit}</td>" in text


def test_the_page_refers_to_nothing_outside(program):
    text = page(program, profile(program), {}, [])
    for word in ("http:", "https:", "src=", "@import", "url("):
        assert word not in text.replace("http://www.w3.org", "")


def test_names_are_escaped(program):
    text = page(program, profile(program), {}, [])
    assert "conv<2>" not in text
    assert "conv&lt;2&gt;" in text


def test_routed_facts_and_exactness_show(program):
    manifest = {
        "board": "ulx3s-85f", "fmax_mhz": 61.234, "clock_hz": 60_000_000, "timing_met": True, "seed": 3,
        "resources": {"lut": {"used": 12000, "available": 48000}},
    }  # fmt: skip
    found = profile(program)
    simulation = {"engine": "cxxrtl", "inferences": 50, "reference": "golden model", "equal": False, "cycles": 7,
                  "predicted_cycles": 8}  # fmt: skip
    text = page(program, found, manifest, [simulation])
    for words in (
        "61.23 MHz",
        "60.00 MHz",
        "seed 3",
        "timing met",
        "12,000",
        "25.0 %",
        "differs",
        "cxxrtl",
        "ulx3s-85f",
    ):
        assert words in text, words
    assert "60 <small>MHz, Fmax 61.2</small>" in text
    assert f"latency at this clock</dt><dd>{latency(program) / 60_000:.3f} " in text


@pytest.mark.parametrize(
    ("manifest", "mhz"),
    [
        ({}, 100),
        ({"choice": {"prefer": "hardware", "rates": None}}, 100),
        ({"choice": {"prefer": "speed", "rates": {"baud": 3_000_000, "clock_hz": 62_500_000}}}, 62.5),
    ],
)
def test_what_is_not_routed_is_told_at_the_clock_that_it_is_for(program, manifest, mhz):
    text = page(program, profile(program), manifest, [])
    assert f"latency at {mhz} MHz</dt><dd>{latency(program) / (1000 * mhz):.3f} <small>ms, not routed" in text


def test_drawings_are_xml_with_a_bar_per_instruction(program):
    found = profile(program)
    count = sum(len(code) for code in program.code.values())
    bars = ElementTree.fromstring(svg.units(program, found)).findall("rect[title]")
    assert len(bars) == count
    for bar in bars:
        assert float(bar.get("x")) >= svg.LEFT
        assert float(bar.get("x")) + float(bar.get("width")) <= svg.WIDTH - svg.RIGHT + 0.5
    boxes = ElementTree.fromstring(svg.memory(program, found)).findall("rect[title]")
    # All blocks of a tensor adjoin here, and none crosses a bank.
    assert len(boxes) == len(program.tensors)


def test_memory_words_and_lives(program):
    found = {row.memory: row for row in usage(program)}
    assert found["activations"].used == 64 + 2 * 64 + 2 * 16 + 4
    assert found["weights"].used == 80
    assert found["microcode, array unit"].used == len(pack(program.code["array"]))
    times = profile(program).timeline
    born = {life.name: (life.born, life.dead) for life in lives(program, times)}
    assert born["input"] == (0, times.spans["vector"][1].done)
    assert born["conv<2>"] == (times.cycles, times.cycles)


def slices(text):
    """The slices of each track as Perfetto takes them: start and length cut to whole nanoseconds."""
    tracks = defaultdict(list)
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] == "X":
            start = int(event["ts"] * 1000)
            tracks[event["tid"]].append((start, start + int(event["dur"] * 1000)))
    return tracks


def lost(spans):
    """How many slices of a track Perfetto drops: those that begin inside another and end after it."""
    open_ends, dropped = [], 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            dropped += 1
        else:
            open_ends.append(end)
    return dropped


def test_the_trace_has_a_track_per_unit(program):
    found = profile(program)
    text = trace(program, found)
    events = json.loads(text)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert sorted(names.values()) == ["array unit", "layers (progress)", "load unit", "vector unit"]
    assert sorted(slices(text)) == sorted(names)
    assert layer_of(program, "array") == ["conv1", "conv1", "conv<2>"]


@pytest.mark.parametrize("mhz", [None, 25.0, 48.077, 100.0, 110.08, 123.456])
def test_perfetto_drops_no_slice(digits, mhz):
    """In a program whose vector instructions overlap, at clocks whose cycle is no whole number of nanoseconds."""
    found = profile(digits)
    issued = sorted((span.issue, span.done) for span in found.timeline.spans["vector"])
    assert any(start < end for (_, end), (start, _) in itertools.pairwise(issued))
    tracks = slices(trace(digits, found, mhz))
    assert sum(map(lost, tracks.values())) == 0
    units = [len(digits.code[unit]) for unit in digits.code]
    assert sum(map(len, tracks.values())) == sum(units) + sum(1 for row in found.layers if row.cycles)
    for spans in tracks.values():
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(sorted(spans)))


def test_the_check_of_slices_sees_an_overlap():
    assert lost([(0, 5), (4, 6)]) == 1
    assert lost([(0, 5), (5, 6), (1, 4), (1, 2)]) == 0


def test_the_trace_is_in_real_time_when_the_clock_is_known(program):
    found = profile(program)
    slow, fast = (json.loads(trace(program, found, mhz))["traceEvents"] for mhz in (None, 50.0))
    for one, other in zip(slow, fast, strict=True):
        if one["ph"] == "X":
            assert abs(other["dur"] - one["dur"] / 50) <= 1 / GRID


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("conv_0", ["conv_", "0"]),
        ("/features/features.0/conv", ["/", "features/", "features.", "0/", "conv"]),
        ("a" * 60, ["a" * 24, "a" * 24, "a" * 12]),
        ("x<y>&z", ["x&lt;y&gt;&amp;z"]),
        ("", [""]),
    ],
)
def test_names_break_at_their_separators(name, parts):
    """And nowhere else: a table with many columns would break them every few letters."""
    assert str(breakable(name)) == "<wbr>".join(parts)


def test_the_drawings_can_be_zoomed(program):
    """The script finds a frame, an axis and the run's length for each row of buttons."""
    found = profile(program)
    text = page(program, found, {}, [])
    for drawing in ("units", "memory"):
        frame = text[text.index(f'id="{drawing}"') :]
        assert frame.startswith(f'id="{drawing}"><svg')
        assert f'data-cycles="{found.cycles}"' in frame[:400]
        assert f'data-for="{drawing}"' in text
        assert '<g class="axis"' in frame
    assert "<script>" in text


def test_bars_of_thousands_of_instructions_are_joined(program):
    """None is left out: the bars of a layer cover the same cycles."""
    found = profile(program)
    every = svg._bars(program, found, Unit.VECTOR)
    assert svg._joined(every, -found.cycles) == every
    joined = svg._joined(every, found.cycles)
    assert sum(bar.count for bar in joined) == len(every) == 4
    assert [bar.layer for bar in joined] == list(dict.fromkeys(bar.layer for bar in every))
    for bar in joined:
        mine = [one for one in every if one.layer == bar.layer]
        assert (bar.start, bar.end) == (mine[0].start, max(one.end for one in mine))
