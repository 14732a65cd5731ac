"""A sweep over seeds on a pool, and what is recorded of it."""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import route

from onnxhw.board import find
from onnxhw.cli.common.interrupts import script_status
from onnxhw.cluster import SerialPool
from onnxhw.errors import UsageError


def row(seed, fmax):
    return {"preset": "mini", "board": "ulx3s-12f", "fmax_mhz": fmax, "seed": seed, "seconds": 3, "cached": False}


@pytest.fixture
def routed(monkeypatch):
    """`route.route` stands still: the seeds that it was asked for, and where their logs were to lie."""
    seen = []

    def one(name, board, *, clock_hz, seeds, use_cache, logs, link):
        (seed,) = seeds
        seen.append((seed, name, board, clock_hz, logs, link))
        digests = {str(seed): "d"} if seed > 1 else {}
        made = row(seed, [0, 90.0, 110.5, 110.5][seed])
        return {"row": made, "key": f"key {seed}", "bitstream_sha256": "b", "logs_sha256": digests}

    monkeypatch.setattr(route, "route", one)
    monkeypatch.setattr(route, "_design", lambda name, board, hz, link: (name, hz))
    monkeypatch.setattr(route, "key_for", lambda design, board, hz, options: f"design, seeds {options.seeds}")
    return seen


def swept(seeds, folder=None, **options):
    options = {"clock_hz": 0, "use_cache": True, "logs": Path("logs"), "link": "", **options}
    return route.sweep("mini", "ulx3s-12f", seeds, SerialPool(), folder=folder, words="--seeds 3", **options)


def test_a_sweep_takes_the_fastest_of_all_seeds(routed):
    found = swept(3)
    assert (found["key"], found["row"]["mhz_by_seed"]) == ("key 2", {"1": 90.0, "2": 110.5, "3": 110.5})
    digests = {seed: each["logs_sha256"] for seed, each in found["seeds"].items()}
    assert digests == {"1": {}, "2": {"2": "d"}, "3": {"3": "d"}}
    assert [each[:4] for each in routed] == [(seed, "mini", "ulx3s-12f", 0) for seed in (1, 2, 3)]
    assert len({each[4] for each in routed}) == 3


def test_what_is_recorded_of_the_same_design_is_not_routed_again(routed, tmp_path, monkeypatch):
    swept(2, tmp_path)
    written = json.loads((tmp_path / "mini-on-ulx3s-12f.json").read_text())
    assert (written["key"], written["result"]["seed"]) == ("key 2", 2)
    assert written["result"]["mhz_by_seed"] == {"1": 90.0, "2": 110.5}
    assert written["seeds"]["1"] == {
        "row": {name: value for name, value in row(1, 90.0).items() if name != "cached"},
        "key": "key 1", "bitstream_sha256": "b", "logs_sha256": {},
    }  # fmt: skip
    found = swept(3, tmp_path)
    assert [each[0] for each in routed] == [1, 2, 3]
    assert found["row"]["mhz_by_seed"] == {"1": 90.0, "2": 110.5, "3": 110.5}
    assert swept(1, tmp_path)["row"]["mhz_by_seed"] == found["row"]["mhz_by_seed"]
    assert [each[0] for each in routed] == [1, 2, 3]
    swept(2, tmp_path, use_cache=False)
    assert [each[0] for each in routed] == [1, 2, 3, 1, 2]
    monkeypatch.setattr(route, "key_for", lambda design, board, hz, options: f"another of {design[1]}")
    swept(1, tmp_path, clock_hz=5)
    assert [each[0] for each in routed] == [1, 2, 3, 1, 2, 1]


def test_a_seed_is_recorded_before_the_next_one_is_done(routed, tmp_path, monkeypatch):
    one = route.route

    def stopped(name, board, *, seeds, **options):
        if seeds == [2]:
            raise KeyboardInterrupt
        return one(name, board, seeds=seeds, **options)

    monkeypatch.setattr(route, "route", stopped)
    with pytest.raises(KeyboardInterrupt):
        swept(3, tmp_path)
    assert list(json.loads((tmp_path / "mini-on-ulx3s-12f.json").read_text())["seeds"]) == ["1"]
    monkeypatch.setattr(route, "route", one)
    swept(3, tmp_path)
    assert [each[0] for each in routed] == [1, 2, 3]


@pytest.mark.parametrize("digests", [{}, {"1": "a", "2": "b"}])
def test_digests_of_logs_are_recorded_where_there_are_any(tmp_path, digests):
    found = {"row": row(1, 90.0), "key": "k", "bitstream_sha256": "s", "logs_sha256": digests}
    route.record(tmp_path, found, "--seeds 2")
    written = json.loads((tmp_path / "mini-on-ulx3s-12f.json").read_text())
    assert written.get("logs_sha256", {}) == digests
    assert written["result"]["fmax_mhz"] == 90.0


def test_the_log_of_a_result_from_the_cache_is_known_again_and_no_other(tmp_path):
    built = SimpleNamespace(board=find("ulx3s-12f"), seed=2, key="k", cached=False)
    (tmp_path / "nextpnr-2.log").write_text("the log")
    digest = hashlib.sha256(b"the log").hexdigest()
    assert route.digest_of_log(built, tmp_path) == digest
    built.cached = True
    assert route.digest_of_log(built, tmp_path) == digest
    built.key = "another"
    assert route.digest_of_log(built, tmp_path) == ""
    assert route.digest_of_log(built, tmp_path / "nowhere") == ""
    built.key = "k"
    (tmp_path / "nextpnr-2.log").unlink()
    assert route.digest_of_log(built, tmp_path) == ""


@pytest.mark.parametrize("option", ["--record", "--logs"])
@pytest.mark.parametrize("place", ["/proc/x", "/dev/null", "file", "file/x", "x" * 300])
def test_a_folder_that_cannot_be_written_is_told_before_any_work(routed, tmp_path, monkeypatch, capsys, option, place):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["route.py", "mini:ulx3s-12f", "--workers", "1", option, place])
    monkeypatch.setattr(route, "pool", None)
    assert script_status(route.main) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("E2903 usage: ")
    assert routed == []


def test_the_logs_of_another_machine_s_workers_are_not_looked_for_here(routed, monkeypatch):
    words = ["mini:ulx3s-12f", "--scheduler", "there", "--logs", "/proc/x", "--json"]
    monkeypatch.setattr("sys.argv", ["route.py", *words])
    monkeypatch.setattr(route, "pool", lambda workers, scheduler: nullcontext(SerialPool()))
    assert script_status(route.main) == 0
    assert [seed for seed, *_ in routed] == [1]


def test_a_worker_tells_it_before_it_elaborates(tmp_path, monkeypatch):
    (tmp_path / "mini-ulx3s-12f").touch()
    monkeypatch.setattr(route, "_design", None)
    with pytest.raises(UsageError, match="E2903"):
        route.route("mini", "ulx3s-12f", clock_hz=0, seeds=[1], use_cache=True, logs=tmp_path, link="")


def test_a_key_that_cannot_be_written_loses_the_digest_alone(tmp_path, capsys):
    built = SimpleNamespace(board=find("ulx3s-12f"), seed=2, key="k", cached=False)
    assert route.digest_of_log(built, tmp_path / "nowhere") == ""
    assert "is not told: No such file or directory" in capsys.readouterr().err


def test_another_link_has_a_record_logs_and_a_clock_of_its_own(tmp_path):
    found = {"row": {**row(1, 90.0), "link": "usb"}, "key": "k", "bitstream_sha256": "s", "logs_sha256": {}}
    route.record(tmp_path, found, "--link usb --json")
    (path,) = tmp_path.iterdir()
    assert path == route.record_of(tmp_path, "mini", "ulx3s-12f", "usb")
    assert path != route.record_of(tmp_path, "mini", "ulx3s-12f")
    assert json.loads(path.read_text())["command"] == "python bench/route.py mini:ulx3s-12f --link usb --json"
    board = find("ulx3s-85f")
    assert board.core_hz_of(board.preset, "usb") == board.core_hz < board.core_hz_of(board.preset, "uart")


def test_a_link_that_a_board_has_not_is_told(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["route.py", "mini:icepi-zero", "--link", "usb"])
    assert script_status(route.main) == 2
    assert "E2341" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"design": "x"}', '"key result"'])
def test_a_file_that_is_no_record_is_told_before_the_first_route(routed, tmp_path, monkeypatch, capsys, text):
    path = tmp_path / "mini-on-ulx3s-12f.json"
    path.write_text(text)
    monkeypatch.setattr("sys.argv", ["route.py", "mini:ulx3s-12f", "--record", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        route.main()
    assert f"--record: {path} is no record of a route" in capsys.readouterr().err
    assert (routed, path.read_text()) == ([], text)
