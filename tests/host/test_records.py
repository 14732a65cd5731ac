"""manifest.json and simulations.json of others: read with types, refused with a code."""

import json
import os
from typing import Any

import pytest

from onnxhw.build.manifest import Manifest
from onnxhw.errors import UsageError
from onnxhw.host.artifact import manifest
from onnxhw.host.records import MANIFEST, wrong_manifest, wrong_simulations

FULL = Manifest(
    "ulx3s-85f", "LFE5U-85F", "mini", "0" * 16, "0" * 64, "0" * 40, 25_000_000, 3_000_000, 1, 31.5, True, "a to b",
    True, {"yosys": "0.70"}, {"LUT4": {"used": 1, "available": 2}}, {"clk": {"achieved": 31.5, "wanted": 25}}, ["N=1"],
    ["nodes=10"], False, {"scale": 1.0, "mean": [], "std": [], "layout": "nchw"},
    {"patches": None, "prefer": "speed", "rates": {"baud": 3_000_000, "clock_hz": 25_000_000}},
    {"program.ohw": "0" * 64},
)  # fmt: skip
RECORD = {"engine": "cxxrtl", "inferences": 1, "cycles": None, "predicted_cycles": 5, "reference": "emulator",
          "equal": True, "program_sha256": "0" * 64, "part_cycles": [1, None]}  # fmt: skip
OTHERS: list[Any] = [
    None, True, -1, 1 << 60, 0.5, float("nan"), "x", [], [None], [[1]], {}, {"a": None}, {"a": {"b": "c"}}
]  # fmt: skip


def test_the_forms_are_those_of_the_manifest():
    record = json.loads(FULL.to_json())
    assert set(record) == set(MANIFEST)
    assert wrong_manifest(record) == wrong_manifest(json.loads(Manifest().to_json())) == wrong_manifest({}) == ""
    assert wrong_manifest({**record, "of a later release": {"a": [1]}}) == ""
    assert wrong_simulations([RECORD, {**RECORD, "later": 1}]) == wrong_simulations([]) == ""


@pytest.mark.parametrize("name", [name for name in MANIFEST if name not in ("preprocess", "choice")])
def test_a_field_of_another_type_is_refused_by_name(name: str):
    """Of the same type are at most a few of the others."""
    record = json.loads(FULL.to_json())
    refused = [other for other in OTHERS if wrong_manifest({**record, name: other})]
    assert len(refused) >= len(OTHERS) - 4
    assert all(name in wrong_manifest({**record, name: other}) for other in refused)


@pytest.mark.parametrize("name", RECORD)
def test_a_simulation_of_another_type_is_refused(name: str):
    assert sum(bool(wrong_simulations([{**RECORD, name: other}])) for other in OTHERS) >= len(OTHERS) - 4
    missing = {key: value for key, value in RECORD.items() if key != name}
    assert bool(wrong_simulations([missing])) == (name != "part_cycles")


@pytest.mark.parametrize("text", ["[", "[]", "3", "[" * 100_000, '{"clock_hz": NaN}', '{"board": "\\ud800"}', "\0"])
def test_a_manifest_that_is_none(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        manifest(tmp_path)
    assert (caught.value.code, caught.value.where) == ("E2552", str(tmp_path / "manifest.json"))


def test_a_manifest_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(UsageError, match=r"E2552 .*not a regular file"):
        manifest(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match=r"E2552 .*not a regular file"):
        manifest(tmp_path)
    assert manifest(tmp_path / "none") == {}
