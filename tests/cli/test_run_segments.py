"""A folder of images through a network larger than the chip: `run` on a device, with what bounds it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from large_graphs import network

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.program import DeviceProgram
from onnxhw.program.container import load
from onnxhw.program.throughput import throughput_of
from onnxhw.program.traffic import Rates

from .printed import run_json
from .test_cli_json_page import missing

COUNT, SCALE = 5, 1 / 64
PRESET = ("-p", "mini+sdram")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "large.onnx"
    path.write_bytes(network(width=24, size=12))
    return path


@pytest.fixture(scope="module")
def folder(model: Path) -> Path:
    """It, compiled for raw pixels."""
    out = model.parent / "out"
    assert main(["compile", str(model), *PRESET, "-o", str(out), "--scale", "1/64", "-q"]) == 0
    return out


@pytest.fixture(scope="module")
def program(folder: Path) -> DeviceProgram:
    return load(folder / "program.ohw").only()


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (COUNT, 12, 12, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def images(model: Path, pixels: np.ndarray) -> Path:
    image = pytest.importorskip("PIL.Image")
    out = model.parent / "photos"
    out.mkdir()
    for number, one in enumerate(pixels):
        image.fromarray(one).save(out / f"{number}.png")
    return out


def test_images_in_classes_out(
    model: Path, folder: Path, program: DeviceProgram, images: Path, pixels: np.ndarray, tmp_path: Path, capsys: Any
) -> None:
    assert program.in_segments
    assert program.input_free != (0, 0)
    with InferenceSession(model) as session:
        (name,) = (value.name for value in session.get_inputs())
        x = pixels.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(SCALE)
        wanted = session.run(None, {name: x})[0]
    assert len(np.unique(wanted, axis=0)) > 1
    record = run_json(capsys, "run", folder, "-d", "emu:", "-i", images, "-o", tmp_path / "y.npy")
    assert np.array_equal(np.load(tmp_path / "y.npy"), wanted)
    assert missing(record, "run") == []
    assert (record["inferences"], record["classes"]) == (COUNT, wanted.argmax(1).tolist())
    rates = Rates(record["waiting"]["baud"], round(1e6 * record["clock_mhz"]))
    assert record["throughput"] == throughput_of([program], rates).record()
    assert record["throughput"]["bound"] == record["bound"] == "link"
    assert record["line_ms"] == pytest.approx(record["throughput"]["line_ms"], rel=0.05)
    assert main(["run", str(folder), "-d", "emu:", "-i", str(images)]) == 0
    text = capsys.readouterr().out
    names = sorted(file.name for file in images.iterdir())
    assert record["images"] == names
    assert [line.split()[1:] for line in text.splitlines() if line.startswith("class:")] == [
        [str(number), name] for number, name in zip(record["classes"], names, strict=True)
    ]
    assert f"at most {record['throughput']['per_second']:,.1f} per second, bound by the link" in text


def test_compile_check_and_report_say_so_before(model: Path, folder: Path, program: DeviceProgram, capsys: Any) -> None:
    made = run_json(capsys, "compile", model, *PRESET, "-o", folder, "--scale", "1/64")
    rates = Rates(made["waiting"]["baud"], round(1e6 * made["waiting"]["clock_mhz"]))
    assert made["throughput"] == throughput_of([program], rates).record()
    assert run_json(capsys, "report", folder)["throughput"] == made["throughput"]
    sentence = f"at most {made['throughput']['per_second']:,.1f} per second, bound by the {made['throughput']['bound']}"
    assert sentence in (folder / "report.html").read_text()
    forecast = run_json(capsys, "check", model, *PRESET)
    assert forecast["throughput"]["bound"] == made["throughput"]["bound"]
    assert forecast["throughput"]["line_ms"] == made["throughput"]["line_ms"]
    expected = forecast["throughput"]["per_second"]
    assert main(["check", str(model), *PRESET]) == 0
    assert f"at most {expected:,.1f} per second" in capsys.readouterr().out
