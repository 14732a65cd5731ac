"""The digest gate: what devices are loaded with, the cycles and the hardware are those that were recorded.

A change that means to move code leaves all of this as it is; one that means to change it says so by recording:
`python scripts/record_digests.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gate_images
import gate_models
import gate_store
import numpy as np
import pytest
import record_digests

from onnxhw.presets import PRESETS

RECORD = "python scripts/record_digests.py records it, if it is meant"
LEAST = 60
"""Pairs that need nothing but the checkout."""


def compare(section: str, found: dict[str, Any]) -> None:
    wanted = {key: gate_store.recorded()[section].get(key) for key in found}
    lines = gate_store.changes(wanted, found)
    assert not lines, "\n".join([f"{len(lines)} differ from what is recorded ({RECORD}):", *lines])


@pytest.mark.parametrize("name", gate_models.MODELS)
def test_images_and_cycles(name: str) -> None:
    compare("images", gate_store.images(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", gate_store.LARGE)
def test_images_and_cycles_of_reference_models(name: str, reference_models: Path) -> None:
    compare("images", gate_store.images(name))


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in PRESETS), "small"])
def test_hardware(name: str) -> None:
    if (wanted := gate_store.recorded()["amaranth"]) != gate_store.AMARANTH:
        pytest.skip(f"recorded with Amaranth {wanted}, whose text another version need not write")
    compare("rtl", gate_store.rtl(name))


def test_every_pair_is_recorded() -> None:
    recorded = gate_store.recorded()
    own = [key for key in recorded["images"] if key.split()[0] not in gate_store.LARGE]
    assert {key.split()[0] for key in own} == set(gate_models.MODELS)
    assert len([key for key in own if not gate_store.is_refused(recorded["images"][key])]) >= LEAST
    assert {key.split()[0] for key in recorded["images"]} - set(gate_models.MODELS) == set(gate_store.LARGE)
    assert recorded["rtl"].keys() == gate_store.CONFIGS.keys()


def test_the_file_is_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, text = gate_store.recorded(), gate_store.FILE.read_text(encoding="utf-8")
    monkeypatch.setattr(gate_store, "FILE", tmp_path / "again.json")
    monkeypatch.setattr(gate_store, "AMARANTH", recorded["amaranth"])
    gate_store.record(recorded["images"], recorded["rtl"])
    assert gate_store.FILE.read_text(encoding="utf-8") == text


def test_digests_tell_apart_what_is_different() -> None:
    """Lengths and kinds are part of it, byte order and layout in memory are not."""
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    values = [
        array, array.reshape(3, 2), array.astype(np.int32), array.astype(np.uint16), [1, 2], [[1], 2], [12], ["12"],
        "ab", ["a", "b"], [], None, 1.0, 1, -1, 0.1, 0.1 + 2**-56,
    ]  # fmt: skip
    assert len({gate_images.digest(value) for value in values}) == len(values)
    assert gate_images.digest(array) == gate_images.digest(array.astype(">i2"))
    assert gate_images.digest(array) == gate_images.digest(np.asfortranarray(array))


def test_where_a_line_stands_does_not_change_the_hardware() -> None:
    text = 'attribute \\src "core.py:1"\nmodule \\device\n\n  attribute \\keep 1\n'
    assert gate_store.LINE.sub("", text) == "module \\device\n  attribute \\keep 1\n"


@pytest.mark.parametrize("seed", [1, 2])
def test_digests_do_not_depend_on_hashes_or_threads(seed: int) -> None:
    """In processes of their own."""
    pairs = {"residual": "ulx3s-85f", "drawn_1": "mini"}
    code = f"""if True:
        import json, gate_images, gate_models
        from onnxhw.presets import PRESETS
        lines = {{f"{{name}} {{preset}}": gate_images.compiled(gate_models.MODELS[name](), PRESETS[preset])
                 for name, preset in {pairs}.items()}}
        print(json.dumps(lines))"""
    environment = {
        **os.environ, "PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": str(seed), "OPENBLAS_NUM_THREADS": str(seed),
        "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)]),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    compare("images", json.loads(done.stdout))


def test_cycles_are_recorded_only_where_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {"one mini": ["7 cycles, 1/2/0/3 instructions, code 000000000001 weights 000000000002"], "two": ["host"]}
    monkeypatch.setattr(gate_store, "FILE", tmp_path / "digests.json")
    monkeypatch.setattr(gate_store, "rtl", lambda name: {name: "1 modules"})
    monkeypatch.setattr(gate_models, "MODELS", {"one": None})
    gate_store.record(before, {})

    def found(line: str) -> int:
        monkeypatch.setattr(gate_store, "images", lambda name: {"one mini": [line]})
        return int(record_digests.main(["--quick", *flags]))

    flags: list[str] = []
    line = before["one mini"][0]
    assert found(line.replace("7 cycles", "6 cycles")) == 1
    assert "one mini: 7 -> 6 cycles" in capsys.readouterr().out
    assert gate_store.recorded()["images"] == before
    assert found(line.replace("0001", "0009")) == 0
    assert "one mini: [code 000000000001 -> code 000000000009]\ntwo: gone" in capsys.readouterr().out
    flags = ["--cycles"]
    assert found(line.replace("7 cycles", "6 cycles")) == 0
    assert gate_store.recorded()["images"] == {"one mini": [line.replace("7 cycles", "6 cycles")]}
