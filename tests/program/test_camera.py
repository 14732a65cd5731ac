"""What a camera's gateware must know of a program."""

import numpy as np
import pytest
from camera_net import camera_net

from onnxhw.compiler import compile
from onnxhw.emu import run
from onnxhw.errors import UnsupportedError
from onnxhw.golden.host import prepare
from onnxhw.isa.camera import CLASSES, CONSTANT, SETTINGS_WORDS, TABLE, Crop
from onnxhw.isa.memory import host_stride
from onnxhw.partition import load
from onnxhw.preprocess import Preprocess
from onnxhw.presets import PRESETS
from onnxhw.program.camera import answer_of, frame_of, image_of, input_of, settings_of
from onnxhw.program.storage import ElidedChannels
from onnxhw.qdq import Grid


def program_of(model, preset="mini"):
    return compile(model.SerializeToString(), PRESETS[preset]).only("model")


@pytest.mark.parametrize("preset", ["mini", "ulx3s-85f"])
def test_the_input_is_what_the_host_makes_of_the_image(preset):
    model = camera_net(grid=Grid(np.float32(0.02), -7))
    preprocess = Preprocess(scale=1 / 255, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.5))
    settings = settings_of(program_of(model, preset), preprocess)
    graph = load(model.SerializeToString())
    image = np.random.default_rng(1).integers(0, 256, (3, 4, 6), np.uint8)
    mean, std = (np.array(each, np.float32)[:, None, None] for each in (preprocess.mean, preprocess.std))
    prepared = (image.astype(np.float32) * np.float32(1 / 255) - mean) / std
    wanted = prepare(graph, {"image": prepared[None].astype(np.float32)})[graph.inputs[0].tensor]
    assert np.array_equal(input_of(image, settings), wanted)
    assert len(np.unique(wanted)) > 20


def test_scores_lie_where_the_settings_say():
    """Read from the bytes of memory, class by class, they are the emulator's; constants come from the settings."""
    program = program_of(camera_net(classes=7))
    settings = settings_of(program)
    name = program.outputs[0].tensor
    x = np.random.default_rng(2).integers(-128, 128, (1, 3, 4, 6)).astype(np.int8)
    result = run(program, {program.inputs[0].tensor: x})
    scores, entry, word = result.outputs[name], program.tensors[name], program.config.word
    packed = entry.place.pack(scores, word)
    for number, where in enumerate(settings.classes):
        at, lane = divmod(where, 4 * host_stride(word))
        block = (at - entry.place.base) // max(1, entry.place.plane)
        assert packed[block, 0, 0, lane].view(np.int8) == scores[0, number, 0, 0]
    entry.storage = ElidedChannels((0, 2, 3, 4, 5, 6), (-9,))
    entry.model = (1, 7, 1, 1)
    classes = settings_of(program).classes
    assert classes[1] == CONSTANT | (-9 & 0xFF)
    assert [classes[0], *classes[2:]] == [*settings.classes[:6]]


def test_settings_as_words():
    settings = settings_of(program_of(camera_net()))
    words = settings.words()
    assert len(words) == SETTINGS_WORDS
    assert settings.crop == Crop(4, 6)
    assert (settings.crop.box, settings.crop.top, settings.crop.left) == (53, 14, 1)
    assert words[:5] == (1 | 5 << 16, 6 | 4 << 16, 1 | 14 << 16, 53, 2 * 53 * 53)
    assert words[CLASSES : CLASSES + 5] == settings.classes
    data = np.array(words[TABLE : TABLE + 192], "<u4").view(np.int8).reshape(3, 256)
    assert np.array_equal(data, np.array(settings.table))
    assert np.array_equal(data[0], np.arange(-128, 128))


def test_a_frame_shows_its_image_as_far_as_rgb565_can():
    image, crop = np.random.default_rng(3).integers(0, 256, (3, 32, 32), np.uint8), Crop(32, 32)
    frame = frame_of(image, crop)
    assert frame.shape == (240, 320)
    assert crop.box == 7
    assert abs(image_of(frame, crop).astype(int) - image).max() <= 7
    assert np.array_equal(image_of(frame_of(image_of(frame, crop), crop), crop), image_of(frame, crop))


def test_the_first_of_the_highest_scores_is_told():
    assert answer_of(np.array([-5, 7, 7, -128], np.int8)) == (1, 7)
    assert answer_of(np.full(3, -128, np.int8)) == (0, -128)


def refusal(program, preprocess=None):
    with pytest.raises(UnsupportedError) as caught:
        settings_of(program, preprocess)
    return caught.value.code


def test_what_a_camera_cannot_serve_is_refused():
    assert refusal(program_of(camera_net(channels=1))) == "E4180"
    assert refusal(program_of(camera_net(height=122, width=4), "ulx3s-85f")) == "E4181"
    program = program_of(camera_net())
    assert refusal(program, Preprocess(mean=(1.0, 2.0))) == "E4182"
    port = program.inputs[0]
    program.inputs = [type(port)(port.name, port.shape, "int8", port.tensor, port.steps)]
    assert refusal(program) == "E4182"
    program.inputs = [type(port)(port.name, port.shape, port.dtype, port.tensor, port.steps[:-1])]
    transposed = {"op": "Transpose", "name": "", "perm": [0, 1, 3, 2]}
    program.inputs = [type(port)(port.name, port.shape, port.dtype, port.tensor, (*port.steps, transposed))]
    assert refusal(program) == "E4182"
    program.inputs = [port]
    program.outputs = []
    assert refusal(program) == "E4184"


def test_an_output_that_the_host_reorders_is_refused():
    program = program_of(camera_net())
    port = program.outputs[0]
    program.outputs = [type(port)(port.name, port.shape, port.dtype, port.tensor, ({"op": "Neg", "name": ""},))]
    assert refusal(program) == "E4184"
    last = {"op": "ArgMax", "name": "", "axis": 1, "last": 1, "keepdims": 1}
    program.outputs = [type(port)(port.name, port.shape, port.dtype, port.tensor, (last,))]
    assert refusal(program) == "E4184"


def test_an_image_that_travels_column_by_column_is_refused():
    from onnxhw.program.storage import PackedInput

    program = program_of(camera_net())
    entry = program.tensors[program.inputs[0].tensor]
    entry.model, entry.storage = (1, 3, 4, 6), PackedInput(4, 30, 0, 3, 20)
    entry.place = type(entry.place)(0, 30, 30, (1, 4, 1, 30))
    assert refusal(program) == "E4183"
