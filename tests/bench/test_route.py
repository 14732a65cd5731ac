"""A sweep over seeds on a pool, and what is recorded of it."""

import hashlib
import json
from argparse import ArgumentTypeError
from pathlib import Path
from types import SimpleNamespace

import pytest
import route

from onnxhw.board import find
from onnxhw.cluster import SerialPool


def test_a_sweep_takes_the_fastest_of_all_seeds(monkeypatch):
    seen = []

    def one(name, board, *, clock_hz, seeds, use_cache, logs):
        seen.append((name, board, clock_hz, tuple(seeds), logs))
        row = {"fmax_mhz": [0, 90.0, 110.5, 110.5][seeds[0]], "seed": seeds[0]}
        return {"row": row, "key": str(seeds[0]), "logs_sha256": {str(seeds[0]): "d"} if seeds[0] > 1 else {}}

    monkeypatch.setattr(route, "route", one)
    found = route.sweep("mini", "ulx3s-12f", 3, SerialPool(), clock_hz=0, use_cache=True, logs=Path("logs"))
    assert (found["key"], found["row"]["mhz_by_seed"]) == ("2", {"1": 90.0, "2": 110.5, "3": 110.5})
    assert found["logs_sha256"] == {"2": "d", "3": "d"}, "that of seed 1 was in the cache"
    assert [each[3] for each in seen] == [(1,), (2,), (3,)]
    assert len({each[4] for each in seen}) == 3


@pytest.mark.parametrize("digests", [{}, {"1": "a", "2": "b"}])
def test_digests_of_logs_are_recorded_where_there_are_any(tmp_path, digests):
    row = {"preset": "mini", "board": "ulx3s-12f", "fmax_mhz": 90.0, "seconds": 3, "cached": False}
    found = {"row": row, "key": "k", "bitstream_sha256": "s", "logs_sha256": digests}
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


def test_counts_are_whole_and_positive():
    assert route.at_least_one("5") == 5
    for text in ("0", "-1", "x", "1.5", ""):
        with pytest.raises(ArgumentTypeError, match="from 1 on"):
            route.at_least_one(text)
