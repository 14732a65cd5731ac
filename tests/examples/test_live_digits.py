"""The live example and its notebook: what they draw is what the device and the golden model say."""

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import live_digits
import numpy as np
import pytest
from live_digits import Live, ink, panel

from onnxhw.driver.device import Device
from onnxhw.presets import preset

EXAMPLES = Path(live_digits.__file__).parent
DEVICES = ["emu:mini", pytest.param("sim:mini", marks=[pytest.mark.rtl, pytest.mark.slow])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param.startswith("sim:"):
        request.getfixturevalue("compiler")
    return str(request.param)


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["live_digits.py", *options])
    live_digits.main()


def test_the_script_draws_each_image_with_classes_and_layers(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], digits_test: Path
) -> None:
    run(monkeypatch, "--device", device, "--count", "3")
    shown = capsys.readouterr().out.strip().split("\n\n")
    with np.load(digits_test) as data:
        labels = data["label"][:3]
    assert len(shown) == 3
    for text, label in zip(shown, labels, strict=True):
        assert f"digit {label} (it is {label}), equal to the golden model" in text
        assert len(re.findall(r"\d\.\d %", text)) == 10
        assert "conv1" in text


def test_layers_add_up_to_the_run() -> None:
    with Device.open("emu:mini", config=preset("mini")) as device:
        live = Live(device)
    assert sum(cycles for _, cycles in live.layers) == live.program.cycles
    assert len(live.layers) >= 5


def test_a_difference_is_shown_and_ends_in_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true = live_digits.golden.run

    def other(*arguments: Any) -> dict[str, Any]:
        return {name: values ^ 1 for name, values in true(*arguments).items()}

    monkeypatch.setattr(live_digits.golden, "run", other)
    with pytest.raises(SystemExit, match="2 results differ"):
        run(monkeypatch, "--device", "emu:mini", "--count", "2")
    assert capsys.readouterr().out.count("DIFFERS") == 2
    run(monkeypatch, "--device", "emu:mini", "--count", "1", "--no-check")


def test_the_picture_has_image_classes_and_layers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install onnxhw[plot])")
    run(monkeypatch, "--device", "emu:mini", "--count", "1", "--png", str(tmp_path / "digits.png"))
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    with Device.open("emu:mini", config=preset("mini")) as device:
        live = Live(device)
        seen = live.look(*next(live_digits.held_out(1)))
    image, classes, layers = live_digits.figure(live, seen).axes
    assert np.array_equal(image.images[0].get_array(), seen.image)
    assert [bar.get_width() for bar in classes.patches] == pytest.approx(list(seen.scores))
    assert [bar.get_width() for bar in layers.patches] == [live.microseconds(cycles) for _, cycles in live.layers]
    assert str(seen.digit) in panel(live, seen).splitlines()[0]


def test_a_device_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "--device", "serial:/dev/there-is-none")
    assert re.match(r"E91\d\d .*\n  hint: ", str(ended.value))
    assert str(ended.value).lower().count("hint") == 1


def test_ink_on_paper_becomes_an_image() -> None:
    paper = np.full((480, 640), 200, np.uint8)
    assert not ink(paper).any()
    paper[120:360, 305:335] = 30  # a vertical stroke of one of eight columns
    seen = ink(paper)
    assert seen.shape == (8, 8)
    assert set(seen[:, [0, 1, 2, 5, 6, 7]].ravel()) == {0.0}
    assert seen[:, 3:5].max(1).tolist() == [16.0] * 8


def test_the_notebooks_cells_run(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Jupyter: the code cells one after the other, in the notebook's folder."""
    notebook = json.loads((EXAMPLES / "digits.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    monkeypatch.setenv("ONNXHW_DEVICE", device)
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell, "digits.ipynb", "exec"), names)
    shown = eval(next(cell for cell in cells if "Picture" in cell), names)  # as Jupyter asks a cell's last value
    assert shown._repr_png_().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("equal to the golden model") == 3


def test_the_notebook_is_stored_with_its_pictures() -> None:
    """Run from its first cell to its last, without an error, with a picture of the size that it is drawn in."""
    notebook = json.loads((EXAMPLES / "digits.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    (picture,) = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    said = "".join("".join(output.get("text", "")) for output in outputs)
    assert said.count("equal to the golden model") == 3
