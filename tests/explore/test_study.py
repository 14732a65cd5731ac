"""The study file: what was written is there again, whatever ended the process."""

import json
import os
from pathlib import Path

import pytest

from onnxhw.errors import UsageError
from onnxhw.explore.point import DesignPoint
from onnxhw.explore.search import text_of
from onnxhw.explore.space import PARAMETERS
from onnxhw.explore.study import StudyFile
from onnxhw.presets import PRESETS

VALUES = {name: values[0] for name, values in PARAMETERS.items()}
POINT = DesignPoint(PRESETS["mini"], (123,), (456,), 1, 2, 3, 4, 100.0)
HEADER = {"board": "ulx3s-25f", "models": ["net"]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "study.jsonl"


def written(path, *points):
    study = StudyFile(path, HEADER)
    for values, point in points:
        study.add(text_of(values) if values else point.config.fingerprint, values, point, 1.5)
    study.close()
    return path.read_bytes()


def test_points_are_there_again(path):
    written(path, (VALUES, POINT), (None, POINT))
    study = StudyFile(path, HEADER)
    assert study.points == {text_of(VALUES): POINT, POINT.config.fingerprint: POINT}
    assert study.seconds == 3.0
    study.close()


def test_seconds_add_up_the_same_when_a_study_goes_on(path):
    """1.4 + 1.4 thousandths are not 2.8 in a file of whole thousandths."""
    study = StudyFile(path, HEADER)
    study.add(text_of(VALUES), VALUES, POINT, 1.0014)
    study.add(POINT.config.fingerprint, None, POINT, 1.0014)
    study.close()
    again = StudyFile(path, HEADER)
    assert study.seconds == again.seconds == 2.002
    again.close()


def test_a_point_is_written_once(path):
    assert written(path, (VALUES, POINT), (VALUES, POINT)).count(b"\n") == 2


@pytest.mark.parametrize("cut", [1, 30])
def test_an_unfinished_line_is_dropped(path, cut):
    whole = written(path, (VALUES, POINT), (None, POINT))
    path.write_bytes(whole[:-cut])
    assert written(path) == whole[: whole[:-cut].rfind(b"\n") + 1]
    assert written(path, (None, POINT)) == whole


@pytest.mark.parametrize(("data", "says"), [
    (b"not json\n", "it is no study"), (b'{"board": "other", "format": 2}\n', "other board"),
    (b'{"board": "ulx3s-25f", "format": 2, "models": ["net"]}\n{}\n', "line 2"),
    (b'{"board": "ulx3s-25f", "format": 2, "models": ["net"]}\n{"values": {"word": 3}}\n', "line 2"),
])  # fmt: skip
def test_another_file_is_refused_and_left_alone(path, data, says):
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(UsageError, match=says) as caught:
        StudyFile(path, HEADER)
    assert caught.value.code == "E2802"
    assert path.read_bytes() == data


@pytest.mark.parametrize(("field", "value"), [
    ("mhz", 0), ("mhz", "x"), ("lut", "x"), ("ebr", 1.5), ("dsp", True), ("cycles", [-5]), ("cycles", [0]),
    ("cycles", 5), ("cycles", [5, 6]), ("traffic", [1, 2]), ("moved", None), ("excess", None), ("excess", -1),
    ("refused", None), ("forecast", 1), ("config", {}),
])  # fmt: skip
def test_a_damaged_point_is_refused(field, value, path):
    header, line = written(path, (VALUES, POINT)).splitlines()
    record = json.loads(line)
    record["point"][field] = value
    path.write_bytes(header + b"\n" + json.dumps(record).encode() + b"\n")
    with pytest.raises(UsageError, match=r"E2802 .*line 2 is not a point"):
        StudyFile(path, HEADER)


def test_what_is_no_regular_file_or_too_large_is_not_read(path, monkeypatch):
    with pytest.raises(UsageError, match=r"E2803 .*regular file"):
        StudyFile(Path(os.devnull), HEADER)
    written(path, (VALUES, POINT))
    monkeypatch.setattr("onnxhw.explore.study.LARGEST", path.stat().st_size - 1)
    with pytest.raises(UsageError, match=r"E2802 .* are no study"):
        StudyFile(path, HEADER)
    monkeypatch.setattr("onnxhw.explore.study.LARGEST", path.stat().st_size)
    StudyFile(path, HEADER).close()


def test_a_full_disk_leaves_the_file_as_it_was(path):
    """A file that may grow by half a line only, as on a full disk."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    study = StudyFile(path, HEADER)
    before = path.read_bytes()
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, old[1]))
    try:
        with pytest.raises(UsageError) as caught:
            study.add("key", VALUES, POINT, 1.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.code == "E2803"
    assert path.read_bytes() == before
    study.add(text_of(VALUES), VALUES, POINT, 1.0)
    study.close()
    assert json.loads(path.read_bytes().splitlines()[1])["values"] == VALUES


def test_two_processes_do_not_write_one_study(path):
    pytest.importorskip("fcntl")
    study = StudyFile(path, HEADER)
    with pytest.raises(UsageError) as caught:
        StudyFile(path, HEADER)
    assert caught.value.code == "E2804"
    study.close()


@pytest.mark.skipif(os.name == "nt", reason="folders have other rights there")
def test_a_file_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        StudyFile(tmp_path / "file" / "study.jsonl", HEADER)
    assert caught.value.code == "E2803"
