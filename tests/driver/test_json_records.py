"""manifest.json and simulations.json of others: read with types, refused with a code."""

import hashlib
import json
import os
from typing import Any, get_args

import pytest

from onnxhw.build.manifest import Manifest
from onnxhw.cli.common.placement_options import PlacementOptions
from onnxhw.compiler.cost import Prefer
from onnxhw.driver.artifact import check_manifest, manifest
from onnxhw.driver.json_records import MANIFEST, wrong_manifest, wrong_simulations
from onnxhw.errors import UsageError
from onnxhw.presets import preset
from onnxhw.program.traffic import Rates

FULL = Manifest(
    "ulx3s-85f", "LFE5U-85F", "mini", "0" * 16, "0" * 64, "0" * 40, 25_000_000, 3_000_000, 1, 31.5, True, "a to b",
    True, {"yosys": "0.70"}, {"LUT4": {"used": 1, "available": 2}}, {"clk": {"achieved": 31.5, "wanted": 25}}, ["N=1"],
    ["nodes=10"], False, {"scale": 1.0, "mean": [], "std": [], "layout": "nchw"},
    {"prefer": "speed", "rates": {"baud": 3_000_000, "clock_hz": 25_000_000}},
    {"program.ohw": "0" * 64}, persist=["h_next=h"],
)  # fmt: skip
RECORD = {"engine": "cxxrtl", "inferences": 1, "cycles": None, "predicted_cycles": 5, "reference": "emulator",
          "equal": True, "program_sha256": "0" * 64, "part_cycles": [1, None]}  # fmt: skip
OTHERS: list[Any] = [
    None, True, -1, 1 << 60, 0.5, float("nan"), "x", [], [None], [[1]], {}, {"a": None}, {"a": {"b": "c"}}
]  # fmt: skip


def test_the_forms_are_those_of_the_manifest():
    record = json.loads(FULL.to_json())
    assert set(record) == set(MANIFEST)
    for accepted in (record, json.loads(Manifest().to_json()), {"schema": 1}):
        assert wrong_manifest(accepted) == ""
    assert wrong_manifest({}) == "has no schema"
    assert wrong_manifest({**record, "of a later release": {"a": [1]}}) == ""
    assert wrong_simulations([RECORD, {**RECORD, "later": 1}]) == wrong_simulations([]) == ""


@pytest.mark.parametrize("name", MANIFEST)
def test_a_field_of_another_type_is_refused_by_name(name: str):
    """Of the same type are at most a few of the others."""
    record = json.loads(FULL.to_json())
    refused = [other for other in OTHERS if wrong_manifest({**record, name: other})]
    assert len(refused) >= len(OTHERS) - 4
    assert all(name in wrong_manifest({**record, name: other}) for other in refused)


RATES = {"baud": 3_000_000, "clock_hz": 25_000_000}
CHOICE = {"prefer": "speed", "rates": RATES}
MALFORMED: list[dict[str, Any]] = [
    {"schema": 99}, {"schema": 0}, {"schema": 1.0}, {"schema": True}, {"config": "x" * 16}, {"model_sha256": "0" * 63},
    {"design": "5"}, {"baud": 299}, {"baud": 12_000_001}, {"clock_hz": 10**9 + 1}, {"shapes": ["N"]},
    {"shapes": ["=1"]}, {"shapes": ["N=" + "1" * 19]}, {"limits": ["nodes"]}, {"files": {"top.bit": "0"}},
    *({"choice": choice} for choice in (
        {"prefer": "speed"}, {"rates": RATES}, {**CHOICE, "prefer": "x"},
        {**CHOICE, "prefer": None}, {**CHOICE, "rates": []}, {**CHOICE, "rates": {}}, {**CHOICE, "rates": -1},
        {**CHOICE, "rates": {**RATES, "baud": -1}}, {**CHOICE, "rates": {**RATES, "baud": True}},
        {**CHOICE, "rates": {**RATES, "clock_hz": 0}}, {**CHOICE, "rates": {**RATES, "clock_hz": 1e9}},
    )),
]  # fmt: skip


@pytest.mark.parametrize("wrong", MALFORMED, ids=str)
def test_what_is_of_the_right_type_and_cannot_be_is_refused(wrong: dict[str, Any]):
    (name,) = wrong
    why = wrong_manifest({**json.loads(FULL.to_json()), **wrong})
    assert why.removeprefix("an item of ").startswith(name)


@pytest.mark.parametrize("prefer", get_args(Prefer))
@pytest.mark.parametrize("rates", [None, Rates(300, 1), Rates(12_000_000, 10**9)])
def test_every_choice_is_read_as_it_was_written(prefer: Prefer, rates: Rates | None):
    choice = PlacementOptions(prefer, rates)
    record = {"schema": 1, "choice": json.loads(json.dumps(choice.record()))}
    assert wrong_manifest(record) == ""
    assert PlacementOptions.recorded(record) == choice


def test_a_manifest_of_another_program_is_refused(tmp_path):
    config = preset("mini")
    (tmp_path / "program.ohw").write_bytes(b"a program")
    record = {**json.loads(FULL.to_json()), "config": config.fingerprint,
              "files": {"program.ohw": hashlib.sha256(b"a program").hexdigest()}}  # fmt: skip

    def asked(**changed: Any) -> dict[str, Any]:
        (tmp_path / "manifest.json").write_text(json.dumps({**record, **changed}))
        return check_manifest(tmp_path, [config])

    assert asked() == record
    for changed in ({"preset": "small"}, {"config": preset("virtual").fingerprint}, {"board": "ulx3s-12f"},
                    {"device": "LFE5U-25F"}, {"files": {"program.ohw": "0" * 64}}):  # fmt: skip
        with pytest.raises(UsageError, match=r"E2588 .*another program's"):
            asked(**changed)
    assert asked(board="one of a file", device="LFE5U-25F")["board"] == "one of a file"
    assert check_manifest(tmp_path / "none", [config]) == {}


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
