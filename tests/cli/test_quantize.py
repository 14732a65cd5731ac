"""``onnxhw quantize``: what it prints, writes and refuses."""

import json
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.cli import main
from onnxhw.partition import load

rng = np.random.default_rng(5)
IMAGES = rng.integers(0, 256, (20, 3, 8, 8)).astype(np.uint8)


@pytest.fixture
def model(tmp_path):
    """A float classifier of four classes, as a file."""
    weights = {
        "w": rng.normal(size=(6, 3, 3, 3)) / 5,
        "b": rng.normal(size=6),
        "v": rng.normal(size=(4, 6)),
        "c": rng.normal(size=4),
    }
    nodes = [
        helper.make_node("Conv", ["image", "w", "b"], ["a"], name="first", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "c"], ["class"], name="last", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("class", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def data(tmp_path):
    """Images and labels."""
    path = tmp_path / "data.npz"
    np.savez(path, image=IMAGES, label=rng.integers(0, 4, 20))
    return path


def run_json(capsys, *arguments, status=0):
    assert main([*map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_it_writes_a_model_that_is_mapped_and_says_what_it_cost(model, data, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    record = run_json(capsys, "quantize", model, "-c", data, "-o", out, "--scale", "1/255", "-n", 12)
    assert load(out).ops
    assert (record["output"], record["bytes"]) == (str(out), out.stat().st_size)
    assert (record["mapped"], record["blockers"], record["method"]) == (True, "", "min-max")
    assert (record["calibration_samples"], record["evaluation_samples"], record["held_out"]) == (12, 8, True)
    assert [layer["name"] for layer in record["layers"]] == ["first", "pool", "last"]
    assert all(layer["snr_db"] > 20 for layer in record["layers"])
    assert record["accuracy"]["total"] == 8
    assert record["accuracy"]["float"] == 100 * record["accuracy"]["float_correct"] / 8


def test_for_people_it_prints_a_table(model, data, tmp_path, capsys):
    assert main(["quantize", str(model), "-c", str(data), "-o", str(tmp_path / "out.onnx")]) == 0
    text = capsys.readouterr().out
    for word in ("SNR dB", "first", "pool", "last", "top-1: float", "of 20 calibration samples", "out.onnx"):
        assert word in text


def test_the_scale_reaches_the_grid_of_the_input(model, data, tmp_path, capsys):
    run_json(capsys, "quantize", model, "-c", data, "-o", tmp_path / "a.onnx", "--scale", "0.5", "--mean", "1,2,3")
    made = onnx.load(tmp_path / "a.onnx")
    scale = next(numpy_helper.to_array(t) for t in made.graph.initializer if t.name == "image_scale")
    x = IMAGES.astype(np.float32) * 0.5 - np.array([1, 2, 3], np.float32).reshape(3, 1, 1)
    assert scale == np.float32((max(x.max(), 0) - min(x.min(), 0)) / 255)


def test_twice_gives_the_same_bytes(model, data, tmp_path, capsys):
    for name in ("a", "b"):
        run_json(capsys, "quantize", model, "-c", data, "-o", tmp_path / name, "-m", "entropy", "--bias-correction")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(model, data, tmp_path, capsys):
    out = tmp_path / "results" / "out.onnx"
    out.parent.mkdir()
    out.write_bytes(b"old")
    np.savez(data, image=np.full((2, 3, 8, 8), np.nan))
    record = run_json(capsys, "quantize", model, "-c", data, "-o", out, status=2)
    assert record["error"]["code"] == "E2604"
    assert [path.name for path in out.parent.iterdir()] == ["out.onnx"]
    assert out.read_bytes() == b"old"


def test_a_plot(model, data, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install onnxhw[plot])")
    run_json(capsys, "quantize", model, "-c", data, "-o", tmp_path / "a.onnx", "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_without_matplotlib_a_plot_is_refused(model, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = ("quantize", model, "-c", data, "-o", tmp_path / "a.onnx", "--plot", tmp_path / "a.png")
    assert run_json(capsys, *arguments, status=2)["error"]["code"] == "E2606"
    assert not (tmp_path / "a.onnx").exists()


def test_what_stays_on_the_host_is_said_and_the_file_is_written(model, data, tmp_path, capsys):
    changed = onnx.load(model)
    changed.graph.node[1].CopyFrom(helper.make_node("LpNormalization", ["a"], ["r"], name="strange", axis=1))
    onnx.save(changed, model)
    record = run_json(capsys, "quantize", model, "-c", data, "-o", tmp_path / "a.onnx")
    assert record["host"] == ["strange"]
    assert not record["mapped"]
    assert "strange" in record["blockers"]
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"), full_check=True)


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("--mean", "1,a"), 2, "E2901"),
        (("--scale", "1,2"), 2, "E2901"),
        (("--scale", "1/0"), 2, "E2901"),
        (("--mean", "1,2"), 2, "E2608"),
        (("--std", "0"), 2, "E2608"),
        (("--percentile", "30"), 2, "E2607"),
        (("--labels", "nowhere.txt"), 2, "E2605"),
        (("-o", "/proc/none/out.onnx"), 2, "E2903"),
    ],
)
def test_wrong_options(model, data, tmp_path, capsys, arguments, status, code):
    place = ("-o", tmp_path / "a.onnx") if arguments[0] != "-o" else ()
    record = run_json(capsys, "quantize", model, "-c", data, *place, *arguments, status=status)
    assert record["error"]["code"] == code
    assert not (tmp_path / "a.onnx").exists()


def test_calibration_data_and_models_that_are_not_there(model, data, tmp_path, capsys):
    missing = tmp_path / "missing"
    assert run_json(capsys, "quantize", model, "-c", missing, status=2)["error"]["code"] == "E2600"
    assert run_json(capsys, "quantize", missing, "-c", data, status=3)["error"]["code"].startswith("E3")


@pytest.mark.parametrize("in_parts", [False, True])
def test_simulate_takes_images_by_the_same_formula(model, tmp_path, capsys, in_parts):
    """A folder of images gives what the same pixels, already scaled, give as an array."""
    Image = pytest.importorskip("PIL.Image", reason="needs Pillow (pip install onnxhw[images])")
    if in_parts:
        changed = onnx.load(model)
        changed.graph.node[1].CopyFrom(helper.make_node("LpNormalization", ["a"], ["r"], name="strange", axis=1))
        onnx.save(changed, model)
    photos = tmp_path / "photos"
    photos.mkdir()
    for index, image in enumerate(IMAGES[:4]):
        Image.fromarray(image.transpose(1, 2, 0)).save(photos / f"{index}.png")
    constants = ("--scale", "1/255", "--mean", "0.5,0.25,0.75", "--std", "0.5")
    run_json(capsys, "quantize", model, "-c", photos, "-o", tmp_path / "q.onnx", *constants)
    x = IMAGES[:4].astype(np.float32) * np.float32(1 / 255) - np.array([0.5, 0.25, 0.75], np.float32).reshape(3, 1, 1)
    np.savez(tmp_path / "x.npz", image=x / np.float32(0.5))
    found = []
    for source, more in ((photos, constants), (tmp_path / "x.npz", ())):
        place = tmp_path / "outputs.npz"
        arguments = ("-e", "golden", "-i", source, "-n", 3, "-o", place)
        assert run_json(capsys, "simulate", tmp_path / "q.onnx", *arguments, *more)["inferences"] == 3
        with np.load(place) as arrays:
            found.append(arrays["class"])
    assert found[0].shape == (3, 4)
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("which", ["model", "data"])
def test_what_it_reads_is_not_overwritten(which, model, data, tmp_path, capsys):
    target = {"model": model, "data": data}[which]
    (tmp_path / "link").symlink_to(target)
    before = target.read_bytes()
    for name in (target, tmp_path / "link"):
        assert main(["quantize", str(model), "--calibration", str(data), "-o", str(name)]) == 2
        assert "E2561" in capsys.readouterr().err
    assert target.read_bytes() == before


def test_a_fixed_batch_takes_so_many_rows_at_a_time(model, data, tmp_path, capsys):
    """The same grids as with one row at a time; accuracy counts rows."""
    batch, four = onnx.load(model), tmp_path / "four.onnx"
    for value in (*batch.graph.input, *batch.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save(batch, four)
    found = [
        run_json(capsys, "quantize", source, "-c", data, "-n", str(n), "-o", tmp_path / f"{n}.onnx")
        for source, n in ((model, 8), (four, 2))
    ]
    for key in ("scale", "zero_point"):
        first, second = ([layer[key] for layer in record["layers"]] for record in found)
        assert first == second
    assert found[0]["accuracy"] == found[1]["accuracy"]
    assert (found[0]["evaluation_samples"], found[1]["evaluation_samples"]) == (12, 3)
    weights = [{t.name: t.raw_data for t in onnx.load(tmp_path / f"{n}.onnx").graph.initializer} for n in (8, 2)]
    assert weights[0] == weights[1]
    shape = onnx.load(tmp_path / "2.onnx").graph.output[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [4, 4]
