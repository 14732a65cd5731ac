"""Samples from .npy, .npz and folders of images: which values arrive, and what is refused."""

import sys

import numpy as np
import pytest

from onnxhw.errors import UsageError
from onnxhw.preprocess import Input, Preprocess, open_samples

IMAGE = [Input("image", (1, 3, 4, 5))]


def pixels(count=3, shape=(4, 5, 3)):
    return np.random.default_rng(count).integers(0, 256, (count, *shape)).astype(np.uint8)


def refused(code, *arguments, **options):
    with pytest.raises(UsageError) as caught:
        samples = open_samples(*arguments, **options)
        list(samples.feeds())
    assert caught.value.code == code
    return caught.value


# -- arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [True, False])
def test_an_npy_in_either_layout(tmp_path, last):
    x = pixels()
    first = x.transpose(0, 3, 1, 2)
    np.save(tmp_path / "x.npy", x if last else first)
    samples = open_samples(tmp_path / "x.npy", IMAGE)
    assert (samples.count, samples.labels) == (3, None)
    feeds = list(samples.feeds())
    assert all(feed["image"].shape == (1, 3, 4, 5) and feed["image"].dtype == np.float32 for feed in feeds)
    assert np.array_equal(np.concatenate([feed["image"] for feed in feeds]), first)


def test_part_of_the_samples(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(6, 1))
    samples = open_samples(tmp_path / "x.npy", [Input("a", (1, 1))])
    assert [feed["a"].item() for feed in samples.feeds(2, 4)] == [2, 3]
    assert [feed["a"].item() for feed in samples.feeds(4, 99)] == [4, 5]
    assert not list(samples.feeds(-1))


@pytest.mark.parametrize("name", ["image", "x", "anything"])
def test_an_npz_by_the_inputs_name_or_the_only_array(tmp_path, name):
    np.savez(tmp_path / "x.npz", **{name: pixels()})
    assert open_samples(tmp_path / "x.npz", IMAGE).count == 3


def test_an_npz_of_two_inputs_with_labels(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros((3, 2)), b=np.ones((3, 4)), labels=np.array([2, 0, 1], np.uint8))
    samples = open_samples(tmp_path / "x.npz", [Input("a", (1, 2)), Input("b", (1, 4))])
    assert samples.labels == (2, 0, 1)
    assert [sorted(feed) for feed in samples.feeds()] == [["a", "b"]] * 3


def test_arrays_go_through_the_formula(tmp_path):
    x = pixels()
    np.savez(tmp_path / "x.npz", x=x)
    feeds = list(open_samples(tmp_path / "x.npz", IMAGE, Preprocess(0.5, (1.0, 2.0, 3.0))).feeds())
    wanted = x.transpose(0, 3, 1, 2).astype(np.float32) * 0.5 - np.array([1, 2, 3], np.float32).reshape(3, 1, 1)
    assert np.array_equal(np.concatenate([feed["image"] for feed in feeds]), wanted)


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({"a": np.zeros((3, 2)), "c": np.zeros((3, 2))}, "E2601"),
        ({"image": np.zeros((3, 4, 4, 4))}, "E2601"),
        ({"image": np.zeros((0, 3, 4, 5))}, "E2601"),
        ({"image": np.array(["a"] * 60).reshape(1, 3, 4, 5)}, "E2601"),
        ({"image": np.zeros((3, 3, 4, 5)), "labels": np.zeros(2, int)}, "E2605"),
        ({"image": np.zeros((3, 3, 4, 5)), "y": np.zeros(3)}, "E2605"),
        ({"image": np.array([None])}, "E2600"),
    ],
)
def test_arrays_that_are_not_the_models(tmp_path, arrays, code):
    np.savez(tmp_path / "x.npz", **arrays)
    refused(code, tmp_path / "x.npz", IMAGE)


def test_inputs_with_different_numbers_of_samples(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros((3, 2)), b=np.ones((2, 4)))
    refused("E2601", tmp_path / "x.npz", [Input("a", (1, 2)), Input("b", (1, 4))])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"\x93NUMPY\x01\x00v\x00{'descr'", b"hello"])
def test_files_that_are_no_arrays(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    refused("E2600", tmp_path / "x.npz", IMAGE)


def test_a_file_that_is_not_there(tmp_path):
    assert "x.npz" in str(refused("E2600", tmp_path / "x.npz", IMAGE))


# -- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["txt", "npy", "npz"])
def test_labels_from_a_file_of_their_own(tmp_path, suffix):
    np.savez(tmp_path / "x.npz", x=pixels(), y=np.array([9, 9, 9]))
    place, wanted = tmp_path / f"labels.{suffix}", np.array([3, 1, 2])
    if suffix == "txt":
        place.write_text("3\n1\n2\n")
    elif suffix == "npy":
        np.save(place, wanted)
    else:
        np.savez(place, labels=wanted)
    assert open_samples(tmp_path / "x.npz", IMAGE, labels=place).labels == (3, 1, 2)


@pytest.mark.parametrize("content", ["cat\ndog\nbird\n", "1\n2\n"])
def test_labels_that_are_not_one_number_for_each_sample(tmp_path, content):
    np.savez(tmp_path / "x.npz", x=pixels())
    (tmp_path / "labels.txt").write_text(content)
    refused("E2605", tmp_path / "x.npz", IMAGE, labels=tmp_path / "labels.txt")


def test_a_fixed_first_dimension_takes_so_many_rows_for_one_inference(tmp_path):
    x = np.arange(22, dtype=np.float32).reshape(11, 2)
    np.savez(tmp_path / "x.npz", a=x, b=x[:, :1], label=np.arange(11))
    inputs = [Input("a", (4, 2), rows=4), Input("b", (4, 1), rows=4)]
    samples = open_samples(tmp_path / "x.npz", inputs)
    assert (samples.count, samples.labels) == (2, tuple(range(8)))
    feeds = list(samples.feeds())
    assert np.array_equal(np.concatenate([feed["a"] for feed in feeds]), x[:8])
    assert np.array_equal(feeds[1]["b"], x[4:8, :1])
    np.save(tmp_path / "labels.npy", np.array([5, 6]))
    assert open_samples(tmp_path / "x.npz", inputs, labels=tmp_path / "labels.npy").labels == (5, 6)
    for wrong in (3, 7, 12):
        np.save(tmp_path / "labels.npy", np.arange(wrong))
        refused("E2605", tmp_path / "x.npz", inputs, labels=tmp_path / "labels.npy")
    np.savez(tmp_path / "x.npz", a=x[:3], b=x[:3, :1])
    assert "4 rows" in refused("E2601", tmp_path / "x.npz", inputs).hint


def test_an_input_without_axes_has_no_samples(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.float32(3))
    refused("E2601", tmp_path / "x.npz", [Input("a", ())])


# -- images ------------------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    """Three PNGs of 5 x 4 pixels in a folder, with a file that is none, and their pixels."""
    Image = pytest.importorskip("PIL.Image", reason="needs Pillow (pip install onnxhw[images])")
    x = pixels()
    folder = tmp_path / "photos"
    folder.mkdir()
    for index in (2, 0, 1):
        Image.fromarray(x[index]).save(folder / f"{index}.png")
    (folder / "notes.txt").write_text("not an image")
    return folder, x


def test_images_arrive_in_the_order_of_their_names(photos):
    folder, x = photos
    feeds = list(open_samples(folder, IMAGE).feeds())
    assert np.array_equal(np.concatenate([feed["image"] for feed in feeds]), x.transpose(0, 3, 1, 2))


def test_images_in_channels_last_layout_with_the_formula(photos):
    folder, x = photos
    wanted = Input("image", (1, 4, 5, 3))
    feeds = list(open_samples(folder, [wanted], Preprocess(1 / 255, (0.5,), (0.25,), "nhwc")).feeds())
    found = np.concatenate([feed["image"] for feed in feeds])
    assert np.array_equal(found, (x.astype(np.float32) * np.float32(1 / 255) - np.float32(0.5)) / np.float32(0.25))


def test_images_for_a_uint8_input_stay_uint8(photos):
    folder, x = photos
    feed = next(open_samples(folder, [Input("image", (1, 3, 4, 5), "uint8")]).feeds())
    assert feed["image"].dtype == np.uint8
    assert np.array_equal(feed["image"], x[:1].transpose(0, 3, 1, 2))


def test_images_are_brought_to_the_models_size_and_channels(photos):
    folder, _ = photos
    feed = next(open_samples(folder, [Input("image", (1, 1, 8, 10))]).feeds())
    assert feed["image"].shape == (1, 1, 8, 10)


def test_images_of_a_fixed_first_dimension(photos):
    folder, _ = photos
    one = list(open_samples(folder, IMAGE).feeds())
    samples = open_samples(folder, [Input("image", (2, 3, 4, 5), rows=2)])
    assert samples.count == len(one) // 2
    for index, feed in enumerate(samples.feeds()):
        assert np.array_equal(feed["image"], np.concatenate([x["image"] for x in one[2 * index : 2 * index + 2]]))
    refused("E2603", folder, [Input("image", (9, 3, 4, 5), rows=9)])


def test_images_of_more_than_8_bits_are_refused(photos, tmp_path):
    """Pillow makes 255 of everything above it."""
    from PIL import Image

    Image.fromarray(np.full((4, 5), 1000, np.uint16)).save(tmp_path / "deep.png")
    assert "more than 8 bits" in str(refused("E2603", tmp_path / "deep.png", [Input("image", (1, 1, 4, 5))]))


def test_images_with_labels(photos):
    folder, _ = photos
    (folder / "labels.txt").write_text("4 5 6")
    assert open_samples(folder, IMAGE, labels=folder / "labels.txt").labels == (4, 5, 6)


def test_folders_that_cannot_be_used(photos, tmp_path):
    folder, _ = photos
    (tmp_path / "empty").mkdir()
    refused("E2603", tmp_path / "empty", IMAGE)
    refused("E2603", folder, [Input("image", (1, 7, 4, 5))])
    refused("E2603", folder, [Input("sound", (1, 100))])
    refused("E2603", folder, [Input("number", ())])
    refused("E2603", folder, [*IMAGE, Input("more", (1, 3, 4, 5))])
    for narrow in ("int8", "int4", "bool"):
        refused("E2603", folder, [Input("image", (1, 3, 4, 5), narrow)])
    (folder / "0.png").write_bytes(b"\x89PNG broken")
    assert "0.png" in str(refused("E2603", folder, IMAGE))


def test_without_pillow_images_are_refused_with_a_hint(photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "onnxhw[images]" in refused("E2602", photos[0], IMAGE).hint
