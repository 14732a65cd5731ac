"""Inferences per second: what of line, core and device bounds them."""

from dataclasses import replace

import pytest
from linked_program import DEEP, LATE, program

from onnxhw.isa.link import USB_BAUD
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program.input_regions import latency
from onnxhw.program.throughput import about_throughput, throughput, throughput_of, throughput_sentence
from onnxhw.program.traffic import Rates, Traffic, traffic_of

RATES = Rates(1_000_000, 100_000_000)
"""A byte takes 0.01 ms, 1,000 cycles."""


@pytest.mark.parametrize(
    ("cycles", "free", "sent", "received", "longest", "period", "bound"),
    [
        (100_000, 0, 500, 300, "line", 5.0, "link"),
        (100_000, 0, 300, 500, "line", 5.0, "link"),
        (900_000, 100_000, 500, 300, "core", 9.0, "core"),
        (900_000, 900_000, 4096, 300, "line", 40.96, "link"),
        (9_000_000, 9_000_000, 5096, 300, "inputs", 100.0, "core"),
        (900_000, 900_000, 5096, 300, "line", 50.96, "link"),
        (9_000_000, 0, 500, 2024, "outputs", 100.0, "core"),
    ],
)  # fmt: skip
def test_the_longest_bounds(cycles, free, sent, received, longest, period, bound):
    found = throughput(cycles, free, Traffic(sent, received, sent + received, received), RATES)
    assert found.period == pytest.approx(period)
    assert getattr(found, longest) == found.period
    assert found.bound == bound
    record = found.record()
    assert record["per_second"] == round(1e3 / period, 3)
    assert f"at most {1e3 / period:.1f} per second, bound by the {bound}" in throughput_sentence(record)


def test_usb_has_one_line_for_both_directions():
    moved = Traffic(700, 500, 1000, 500)
    assert throughput(0, 0, moved, Rates(USB_BAUD, 1)).line == pytest.approx(1e4 * 1200 / USB_BAUD)
    assert throughput(0, 0, moved, Rates(USB_BAUD - 1, 1)).line == pytest.approx(1e4 * 700 / (USB_BAUD - 1))


def test_of_programs():
    """With the start sequence; a program that does not say when its inputs are free has them at the end."""
    one = program(*LATE)
    before = latency(one) - one.cycles
    array, vector = one.input_free
    spans = timeline(one.config, one.code).spans
    free = max(spans[unit][count - 1].done for unit, count in ((Unit.ARRAY, array), (Unit.VECTOR, vector)) if count)
    moved = traffic_of(one)
    assert throughput_of([one], RATES) == throughput(latency(one), free + before, moved, RATES)
    unknown = throughput_of([replace(one, input_free=(0, 0))], RATES)
    assert unknown == throughput(latency(one), latency(one), moved, RATES)
    both = throughput_of([one, program(*DEEP)], RATES)
    assert both.period == throughput_of([one], RATES).period + throughput_of([program(*DEEP)], RATES).period
    assert "2 programs in turn, once per batch" in throughput_sentence(both.record())
    assert "in turn" not in throughput_sentence(unknown.record())
    assert about_throughput([(latency(one), moved)], RATES).core == throughput_of([one], RATES).core
