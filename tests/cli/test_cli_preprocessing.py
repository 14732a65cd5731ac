"""Preprocessing that `compile` was told once: kept in the directory, done by `run`, `simulate` and sessions."""

import json

import numpy as np
import pytest

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.driver.artifact import preprocess_of
from onnxhw.errors import UsageError
from onnxhw.preprocess import Preprocess

DECLARED = Preprocess(1 / 255, (0.25,), (0.5,))
COUNT = 3


@pytest.fixture(scope="module")
def folder(digits, tmp_path_factory):
    """The example network for images of 0 to 255."""
    out = tmp_path_factory.mktemp("declared")
    words = ["--scale", "1/255", "--mean", "0.25", "--std", "0.5"]
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(out), "-q", *words]) == 0
    return out


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (COUNT, 1, 8, 8)).astype(np.uint8)


@pytest.fixture(scope="module")
def images(pixels, tmp_path_factory):
    image = pytest.importorskip("PIL.Image")
    out = tmp_path_factory.mktemp("images")
    for number, one in enumerate(pixels):
        image.fromarray(one[0]).save(out / f"{number}.png")
    return out


@pytest.fixture(scope="module")
def wanted(digits, pixels):
    """The golden model's scores, with the formula in full."""
    x = (pixels.astype(np.float32) * np.float32(1 / 255) - np.float32(0.25)) / np.float32(0.5)
    with InferenceSession(digits) as session:
        return session.run(None, {"input": x})[0]


@pytest.mark.parametrize("which", ["folder of images", "array", "channels last"])
def test_run_prepares_as_declared(which, folder, images, pixels, wanted, tmp_path):
    source = images
    if which != "folder of images":
        source = tmp_path / "x.npy"
        np.save(source, pixels if which == "array" else pixels.transpose(0, 2, 3, 1))
    assert main(["run", str(folder), "-d", "emu:", "-i", str(source), "-o", str(tmp_path / "y.npy"), "-q"]) == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), wanted)


def test_one_image_and_the_program_file(folder, images, wanted, tmp_path):
    words = ["-d", "emu:", "-i", str(images / "2.png"), "-o", str(tmp_path / "y.npy"), "-q"]
    assert main(["run", str(folder / "program.ohw"), *words]) == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), wanted[2:])


def test_simulate_prepares_as_declared_unless_told_otherwise(folder, images, wanted, tmp_path):
    def scores(*words):
        where = str(tmp_path / "y.npz")
        assert main(["simulate", str(folder), "-e", "emulator", "-i", str(images), "-o", where, "-q", *words]) == 0
        with np.load(where) as found:
            return found[found.files[0]]

    assert np.array_equal(scores(), wanted)
    assert not np.array_equal(scores("--scale", "1/16"), wanted)


def test_session(digits, folder, images, wanted):
    with InferenceSession(folder, device="emu:") as session:
        assert session.preprocess == DECLARED
        assert np.array_equal(session.run(None, session.feeds(images))[0], wanted)
        assert np.array_equal(session.run(None, session.feeds(images, 1, 2))[0], wanted[1:2])
        assert [part["cycles"] for part in session.counters] == [session.cycles]
        with pytest.raises(UsageError) as caught:
            session.feeds(images, COUNT)
        assert caught.value.code == "E2502"
        with pytest.raises(UsageError, match=r"E2502 .*no sample -1"):
            session.feeds(images, -1)
    with InferenceSession(digits, preprocess=DECLARED) as session:
        assert np.array_equal(session.run(None, session.feeds(images))[0], wanted)
    with pytest.raises(UsageError) as caught:
        InferenceSession(folder, device="emu:", preprocess=DECLARED)
    assert caught.value.code == "E2504"


def test_what_does_not_fit_is_refused_before_anything_is_written(digits, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(out), "--mean", "1,2,3"]) == 2
    assert "E2608" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    "record", [[], 1, {"scale": 1}, {"scale": 1, "mean": [], "std": [0], "layout": "nchw"},
               {"scale": 1, "mean": ["x"], "std": [], "layout": "nchw"},
               {"scale": 1, "mean": [], "std": [], "layout": "chw"},
               {"scale": "1", "mean": [], "std": [], "layout": "nchw"},
               {"scale": True, "mean": [], "std": [], "layout": "nchw"}, {"scale": 10**400, "mean": [], "std": [],
               "layout": "nchw"}, {"scale": 1, "mean": "12", "std": [], "layout": "nchw"}],
)  # fmt: skip
def test_a_damaged_manifest(record, tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "preprocess": record}))
    with pytest.raises(UsageError) as caught:
        preprocess_of(tmp_path)
    assert caught.value.code == "E2552"
    assert caught.value.where == str(tmp_path / "manifest.json")


def test_the_record_reads_itself_back(tmp_path):
    assert Preprocess().record() == {}
    for one in (Preprocess(), DECLARED, Preprocess(layout="nhwc")):
        assert Preprocess.from_record(json.loads(json.dumps(one.record()))) == one
    assert preprocess_of(tmp_path) == Preprocess()
