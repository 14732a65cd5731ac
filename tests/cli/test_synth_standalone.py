"""`synth --standalone`: programs, and what a camera's gateware must know, in the design; images for flash memory."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from camera_net import camera_net
from qdq_model import Model
from synth_command import run

from onnxhw.build import flow
from onnxhw.cli import main
from onnxhw.cli.common import synthesis
from onnxhw.driver.flash_image import flash_image
from onnxhw.driver.json_records import wrong_manifest
from onnxhw.isa.flash import byte_cycles
from onnxhw.preprocess import Preprocess
from onnxhw.presets import preset
from onnxhw.program.camera import settings_of
from onnxhw.program.container import load
from onnxhw.rtl.sensors.top import CameraTop

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = (
    "autorun", "sensor", "core.load.memory.all", "core.load_fetch.ucode", "core.array_fetch.ucode",
    "core.vector_fetch.ucode", "core.vector.params", "core.vector.tables.lane_0", "core.vector.tables.lane_1",
)  # fmt: skip


@pytest.fixture
def camera_model(tmp_path):
    path = tmp_path / "camera.onnx"
    path.write_bytes(camera_net().SerializeToString())
    return path


def test_synth_for_a_camera(built, camera_model, tmp_path, capsys, monkeypatch):
    """The program and what the camera's gateware must know of it go into the design's memories."""
    baked = []
    monkeypatch.setattr(synthesis, "memories", lambda _: NAMES)
    monkeypatch.setattr(flow, "with_memories", lambda result, images, progress: baked.append(images) or result)
    words = ["--preset", "mini", "--freq", "50", "--standalone", "--input", "camera-ov7670", "--scale", "0.5"]
    run(capsys, camera_model, *words, "-o", tmp_path / "out")
    assert isinstance(built[0]["design"].design, CameraTop)
    program = load(tmp_path / "out" / "program.ohw").only("")
    assert tuple(baked[0]["sensor"]) == settings_of(program, Preprocess(scale=0.5)).words()
    assert baked[0]["autorun"][0] == 1, "no run before the first frame"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["link"], manifest["input"], manifest["baud"]) == ("", "camera-ov7670", 3_000_000)
    assert wrong_manifest(manifest) == ""
    assert wrong_manifest(manifest | {"input": "camera"})


def test_a_camera_s_device_is_the_board_s_own_without_its_memory(built, camera_model, tmp_path, capsys, monkeypatch):
    """And that is said; without a camera it has its memory, and no image for flash either."""
    monkeypatch.setattr(synthesis, "finished", lambda made, *_, **__: made)
    words = [camera_model, "--standalone", "-o", tmp_path / "out"]
    assert run(capsys, *words)["preset"] == "ulx3s-85f+sdram"
    assert built[-1]["design"] == ("ulx3s-85f", "ulx3s-85f+sdram", 125_000_000, 3_000_000, False)
    assert not (tmp_path / "out" / "flash.bin").exists()
    assert main(["synth", *map(str, words), "--input", "camera-ov7670"]) == 0
    said = "a device with a sensor has no external memory: --preset ulx3s-85f, not the board's own ulx3s-85f+sdram"
    assert said in capsys.readouterr().err
    assert built[-1]["design"].design.config == preset("ulx3s-85f")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--preset", "mini"], "E2383"),
        (["--preset", "mini", "--standalone", "--link", "usb"], "E2383"),
        (["--preset", "mini+sdram", "--standalone"], "E2383"),
        (["--preset", "mini", "--standalone", "--freq", "15"], "E2380"),
        (["--preset", "mini", "--standalone", "--mean", "1,2"], "E2608"),
    ],
)
def test_what_no_camera_goes_with_is_refused(built, camera_model, tmp_path, capsys, words, code):
    words = [*words, "--input", "camera-ov7670", "-o", tmp_path / "out"]
    assert run(capsys, camera_model, *words, status=2)["error"]["code"] == code
    assert not built


def test_a_camera_for_a_model_without_images_is_refused(built, digits, tmp_path, capsys):
    words = [digits, "--preset", "mini", "--standalone", "--input", "camera-ov7670", "-o", tmp_path / "out"]
    assert run(capsys, *words, status=4)["error"]["code"] == "E4180"
    assert not built


def test_a_camera_needs_a_board_with_pins_for_it(camera_model, tmp_path, capsys):
    text = (REPOSITORY / "boards" / "ulx3s-85f.toml").read_text(encoding="utf-8")
    before, rest = text.split("[camera]\n", 1)
    file = tmp_path / "board.toml"
    for changed, code in (
        (before + rest[rest.index("[bringup]") :], "E2381"),
        (text.replace('sioc = "0-"', 'sioc = "28-"'), "E2382"),
        (text.replace('connector = "gpio"', 'connector = "pmod"'), "E2382"),
        (text.replace('sioc = "0-"', 'sioc = "0+"'), "E2303"),
        (text.replace('sioc = "0-"', 'sioc = "0- 8-"'), "E2303"),
        (text.replace('sioc = "0-"\n', ""), "E2303"),
    ):
        file.write_text(changed, encoding="utf-8")
        words = [camera_model, "--board", file, "--preset", "mini", "--standalone", "--input", "camera-ov7670"]
        assert run(capsys, *words, "-o", tmp_path / "out", status=2)["error"]["code"] == code


@pytest.fixture
def large_model(tmp_path):
    """Larger than the chip of `mini`: weights of 18 KB."""
    made, rng = Model(), np.random.default_rng(3)
    weights = made.constant(rng.integers(-9, 9, (64, 32, 3, 3)).astype(np.int8), 0.02)
    y = made.node("Conv", made.input((1, 32, 8, 8), 0.1), weights, pads=[1, 1, 1, 1])
    path = tmp_path / "large.onnx"
    path.write_bytes(made.output(made.requantize(y, 0.2)).bytes())
    return path


def test_a_network_larger_than_the_chip_stands_alone_from_flash(built, large_model, tmp_path, capsys, monkeypatch):
    """Its image lies beside the bitstream; no memory of the design holds anything of it."""
    monkeypatch.setattr(flow, "with_memories", lambda *_, **__: pytest.fail("nothing is baked"))
    words = [large_model, "--preset", "mini+sdram", "--standalone", "-o", tmp_path / "out"]
    record = run(capsys, *words)
    assert built[0]["design"][4]
    image = (tmp_path / "out" / "flash.bin").read_bytes()
    assert image == flash_image(load(tmp_path / "out" / "program.ohw").only(""))
    seconds = len(image) * byte_cycles(100_000_000) / 100_000_000
    assert record["boot"] == {"offset": 0x200000, "bytes": len(image), "seconds": round(seconds, 3)}
    assert record["artifacts"]["flash.bin"] == str(tmp_path / "out" / "flash.bin")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["boot"] == record["boot"]
    assert manifest["files"]["flash.bin"] == hashlib.sha256(image).hexdigest()
    assert wrong_manifest(manifest) == ""
    assert wrong_manifest(manifest | {"boot": {"offset": "here"}})


def test_an_image_larger_than_the_flash_memory_is_refused(built, large_model, tmp_path, capsys):
    text = (REPOSITORY / "boards" / "ulx3s-85f.toml").read_text()
    path = tmp_path / "small.toml"
    path.write_text(text.replace("bytes = 16_777_216", "bytes = 2_100_000").replace("ulx3s-85f", "small", 1))
    words = ["--board", path, "--preset", "mini+sdram", "--standalone", "-o", tmp_path / "out"]
    path.write_text(path.read_text().replace('aliases = ["ulx3s"]', "aliases = []"))
    error = run(capsys, large_model, *words, status=5)["error"]
    assert error["code"] == "E5202"
    assert "flash memory has 2,848 behind offset 2,097,152" in error["what"]
    assert not built
    assert not (tmp_path / "out").exists()


def test_a_board_without_flash_for_a_larger_network(built, large_model, tmp_path, capsys):
    words = ["--board", "colorlight-i5", "--preset", "mini+sdram", "--standalone", "-o", tmp_path / "out"]
    error = run(capsys, large_model, *words, status=2)["error"]
    assert error["code"] == "E2384"
    assert not built
