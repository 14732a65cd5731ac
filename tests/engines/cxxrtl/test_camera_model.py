"""A device with a camera through its pins, from power-up: every pixel and score equal to the reference."""

import numpy as np
import pytest
from camera_net import camera_net

from onnxhw.build.memory_contents import images
from onnxhw.compiler import compile
from onnxhw.emu import run
from onnxhw.engines.cxxrtl.camera_model import PAUSE, CameraModel, camera_libraries, frame_levels, memories_of
from onnxhw.isa.camera import CameraSettings, Crop
from onnxhw.isa.ov7670 import REGISTERS
from onnxhw.presets import PRESETS
from onnxhw.program.camera import answer_of, image_of, input_of, line_of, settings_of
from onnxhw.program.input_regions import input_stream

CLOCK, BAUD, SCCB = 20_000_000, 2_500_000, 1_000_000
FRAME = (17, 26)
"""Rows and columns of a small frame, so that a test takes little time."""


@pytest.fixture(scope="module")
def device():
    program = compile(camera_net().SerializeToString(), PRESETS["mini"]).only("model")
    known = settings_of(program)
    settings = CameraSettings(Crop(4, 6, FRAME), known.table, known.classes)
    libraries = camera_libraries(program.config, clock_hz=CLOCK, baud=BAUD, sccb_hz=SCCB)
    contents = images(program, memories_of(libraries.core), settings)
    return program, settings, CameraModel(libraries, contents, settings, clock_hz=CLOCK, baud=BAUD)


def answer(program, settings, frame):
    x = input_of(image_of(frame, settings.crop), settings)
    result = run(program, {program.inputs[0].tensor: x})
    return x, result.outputs[program.outputs[0].tensor]


@pytest.mark.rtl
def test_frames_are_answered_from_power_up_on(device):
    program, settings, camera = device
    with camera:
        while not camera.configured:
            camera.run(100_000)
            assert camera.cycles < 3_000_000
        assert camera.writes == [(each.register, each.value) for each in REGISTERS]
        assert camera.text == b""
        camera.show(PAUSE, 2.0)
        rng, expected, inputs = np.random.default_rng(0), b"", program.inputs[0].tensor
        for number in range(8):
            low, high = np.sort(rng.integers(0, 1 << 16, 2))
            frame = rng.integers(low, high + 1, FRAME).astype(np.uint16)
            camera.show(frame_levels(frame, blanks=0.1), (2.0, 2.5, 3.21)[number % 3])
            camera.run(program.cycles + 6000)
            x, scores = answer(program, settings, frame)
            expected += line_of(answer_of(scores))
            assert camera.text == expected
            assert np.array_equal(camera.words(), input_stream(program, {inputs: x}))
            place = camera.place(program.tensors[program.outputs[0].tensor], program.config.word)
            assert np.array_equal(place, scores)
        assert len(set(expected.splitlines())) > 3


@pytest.mark.rtl
def test_frames_that_come_too_early_or_break_off_are_passed_over(device):
    program, settings, _ = device
    libraries = camera_libraries(program.config, clock_hz=CLOCK, baud=BAUD, sccb_hz=SCCB)
    contents = images(program, memories_of(libraries.core), settings)
    rng = np.random.default_rng(1)
    frames = [rng.integers(0, 1 << 16, FRAME).astype(np.uint16) for _ in range(3)]
    with CameraModel(libraries, contents, settings, clock_hz=CLOCK, baud=BAUD) as camera:
        while not camera.configured:
            camera.run(100_000)
        broken = frame_levels(frames[0], blanks=0.1)
        camera.show(broken[: int(len(broken) * 0.7)], 2.0)
        camera.show(frame_levels(frames[1], blanks=0.1), 2.0)
        camera.show(frame_levels(frames[2], blanks=0.1)[:40], 2.0)  # while the run is in progress
        camera.run(program.cycles + 6000)
        assert camera.text == line_of(answer_of(answer(program, settings, frames[1])[1]))
