"""bench/hostcost.py: whole inferences go through the driver, and every byte of them is counted."""

import hostcost

from onnxhw.compiler import compile
from onnxhw.presets import preset
from onnxhw.program.traffic import traffic_of


def test_an_inference_is_that_of_the_program(digits):
    program = compile(digits, preset("mini")).only()
    found, counted = hostcost.measure(program, 2), traffic_of(program)
    assert 0 <= found["bytes_sent"] - counted.sent <= 2
    assert 0 <= found["bytes_received"] - counted.received <= 2
    assert 0 < found["least"] <= found["total"]
