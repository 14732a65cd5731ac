"""A sweep over seeds on a pool."""

from pathlib import Path

import route

from onnxhw.cluster import SerialPool


def test_a_sweep_takes_the_fastest_of_all_seeds(monkeypatch):
    seen = []

    def one(name, board, *, clock_hz, seeds, use_cache, logs):
        seen.append((name, board, clock_hz, tuple(seeds), logs))
        return {"row": {"fmax_mhz": [0, 90.0, 110.5, 110.5][seeds[0]], "seed": seeds[0]}, "key": str(seeds[0])}

    monkeypatch.setattr(route, "route", one)
    found = route.sweep("mini", "ulx3s-12f", 3, SerialPool(), clock_hz=0, use_cache=True, logs=Path("logs"))
    assert (found["key"], found["row"]["mhz_by_seed"]) == ("2", {"1": 90.0, "2": 110.5, "3": 110.5})
    assert [each[3] for each in seen] == [(1,), (2,), (3,)]
    assert len({each[4] for each in seen}) == 3
