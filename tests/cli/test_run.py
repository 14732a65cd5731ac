"""``onnxhw run`` on the emulator behind the link: floats in, floats out, and nothing half-written."""

import json

import numpy as np
import pytest

from onnxhw import golden
from onnxhw.cli import main
from onnxhw.cli.common.inference import check_outputs, top_classes
from onnxhw.driver.device import Device
from onnxhw.errors import UsageError
from onnxhw.golden import host
from onnxhw.partition import load

COUNT = 3


@pytest.fixture(scope="module")
def folder(digits, tmp_path_factory):
    """The example network, compiled for the smallest preset."""
    out = tmp_path_factory.mktemp("digits")
    assert main(["compile", str(digits), "--board", "ulx3s", "--preset", "mini", "-o", str(out), "-q"]) == 0
    return out


@pytest.fixture
def run(folder, digits_test):
    """`onnxhw run` with the example's images on an emulated board."""

    def call(*more, device="emu:", source=digits_test, directory=folder):
        return main(["run", str(directory), "-d", device, "-i", str(source), *map(str, more)])

    return call


@pytest.fixture(scope="module")
def wanted(digits, digits_test):
    """The golden model's outputs for the first images."""
    graph = load(digits)
    feeds = {"input": np.load(digits_test)["input"][:COUNT]}
    return host.finish(graph, golden.run(graph, host.prepare(graph, feeds)))


def test_outputs_equal_the_golden_model(run, wanted, tmp_path, capsys):
    assert run("-n", COUNT, "-o", tmp_path / "y.npy", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    (scores,) = wanted.values()
    assert np.array_equal(np.load(tmp_path / "y.npy"), scores)
    assert np.load(tmp_path / "y.npy").dtype == np.float32
    assert record["classes"] == scores.reshape(COUNT, -1).argmax(1).tolist()
    assert (record["inferences"], record["runs"], record["device"]) == (COUNT, COUNT, "emu:")
    assert record["cycles"] == record["predicted_cycles"] > 0
    assert record["core_ms"] == record["run_cycles"] / 1e5
    assert record["bound"] == ("link" if record["line_ms"] > record["core_ms"] else "core")
    assert (record["parts"], record["host_ms"]) == (1, 0)
    assert record["part_counters"] == [
        {"cycles": record["run_cycles"], "latency": record["cycles"], **record["counters"]}
    ]
    assert run("-n", COUNT, "-o", tmp_path / "y.npz", "-q") == 0
    with np.load(tmp_path / "y.npz") as found:
        assert found.files == list(wanted)
        assert np.array_equal(found[found.files[0]], scores)


def test_profile_and_repeat(run, capsys):
    assert run("-n", 1, "--repeat", 2, "--profile", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["runs"] == 2
    profile = record["profile"]
    assert profile["equal"] is True
    assert sum(layer["cycles"] for layer in profile["layers"]) == record["run_cycles"]
    assert [part["layers"] for part in profile["parts"]] == [profile["layers"]]
    (stall,) = [row for row in profile["counters"] if row["counter"] == "stall_order_vector"]
    assert stall["device"] == stall["predicted"] == record["counters"]["stall_order_vector"] > 0
    assert run("-n", 1, "--profile") == 0
    printed = capsys.readouterr().out
    assert "conv1_conv" in printed
    assert "array waits for weights" in printed
    assert "agree with the schedule" in printed


def test_the_host_unfolds_nothing_and_is_compared(run, capsys):
    """The input travels as its own bytes; what a person waits for is told beside what the host alone would take."""
    assert run("-n", 1, "--json") == 0
    assert json.loads(capsys.readouterr().out)["patches"] == []
    assert run("-n", 1) == 0
    assert capsys.readouterr().out.count("the host alone would take about") == 1


def test_the_device_may_come_from_the_environment(folder, digits_test, monkeypatch, capsys):
    monkeypatch.setenv("ONNXHW_DEVICE", "emu:mini")
    assert main(["run", str(folder), "-i", str(digits_test), "-n", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "emu:mini"


def test_a_program_file_runs_too(run, folder, capsys):
    assert run("-n", 1, "--json", directory=folder / "program.ohw") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "digits"


def test_repetitions_must_not_differ(run, monkeypatch, capsys, tmp_path):
    real, calls = Device.run_batch, []

    def spoiled(self, batch, program=None, progress=None):
        results = real(self, batch, program, progress)
        calls.append(1)
        for result in results:
            for values in result.outputs.values():
                values += len(calls) > 1
        return results

    monkeypatch.setattr(Device, "run_batch", spoiled)
    assert run("-n", 1, "--repeat", 2, "-o", tmp_path / "y.npy") == 9
    assert "E9171" in capsys.readouterr().err
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize(
    ("more", "device", "status", "code"),
    [
        ([], "emu:ulx3s-25f", 9, "E9107"),
        ([], "serial:/dev/no-such-port", 9, "E9101"),
        ([], "tcp:127.0.0.1:1", 9, "E9153"),
        ([], "usb", 2, "E2550"),
        ([], "emu:nexys", 2, "E2551"),
        (["-o", "y.txt"], "emu:", 2, "E2560"),
        (["-o", "/no/such/folder/y.npy"], "emu:", 2, "E2903"),
        (["--repeat", "0"], "emu:", 2, "E2901"),
    ],
)
def test_refusals(run, capsys, tmp_path, monkeypatch, more, device, status, code):
    if code in ("E9101",):
        pytest.importorskip("serial")
    if code == "E2903":
        blocked = tmp_path / "file"
        blocked.touch()
        more = ["-o", str(blocked / "y.npy")]
    elif not more:
        more = ["-o", str(tmp_path / "y.npy")]
    assert run("-n", 1, *more, device=device) == status
    found = capsys.readouterr().err
    assert code in found
    assert "Traceback" not in found
    assert not (tmp_path / "y.npy").exists()


def test_inputs_that_are_not_the_models(run, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 8, 8), np.float32))
    assert run(source=tmp_path / "x.npy") == 2
    assert "E2905" in capsys.readouterr().err
    assert run(source=tmp_path / "none.npy") == 2
    assert "E2905" in capsys.readouterr().err


def test_a_stale_bitstream(folder, run, tmp_path, capsys, monkeypatch):
    """The directory names the build that it came with; the board says another."""
    from onnxhw.isa.link import Info

    real = Info.of
    monkeypatch.setattr(Info, "of", classmethod(lambda cls, *args, **more: real(*args, **{**more, "build_id": 7})))
    directory = tmp_path / "stale"
    directory.mkdir()
    (directory / "program.ohw").write_bytes((folder / "program.ohw").read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "design": "5" * 64}))
    assert run("-n", 1, directory=directory) == 9
    assert "E9160" in capsys.readouterr().err
    (directory / "manifest.json").write_text(json.dumps({**manifest, "design": "0" * 15 + "7" + "5" * 48}))
    assert run("-n", 1, "-q", directory=directory) == 0


def test_a_directory_of_a_camera(folder, run, tmp_path, capsys):
    directory = tmp_path / "camera"
    directory.mkdir()
    (directory / "program.ohw").write_bytes((folder / "program.ohw").read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "input": "camera-ov7670"}))
    assert run("-n", 1, directory=directory) == 2
    assert "E2589" in capsys.readouterr().err


def test_one_array_does_not_hold_two_outputs(tmp_path):
    from onnxhw.cli.common.selftest_network import network
    from onnxhw.compiler import compile
    from onnxhw.presets import preset

    program = compile(network(), preset("mini"))
    with pytest.raises(UsageError, match=r"E2560 .*2 outputs: concat, dense"):
        check_outputs(tmp_path, program, tmp_path / "y.npy", tmp_path / "x.npy")
    check_outputs(tmp_path, program, tmp_path / "y.npz", tmp_path / "x.npy")


def test_classes_are_told_of_scores_only():
    assert top_classes({"y": np.array([[1, 5], [7, 2]])}, 2) == [1, 0]
    assert top_classes({"y": np.eye(1, 1001, 999)}, 1) == [999]  # ImageNet with a class for the background
    assert top_classes({"y": np.array([[1], [7]])}, 2) is None
    assert top_classes({"y": np.ones((2, 2)), "z": np.ones((2, 2))}, 2) is None
    assert top_classes({"y": np.ones((2, 5, 1, 1))}, 2) == [0, 0]
    assert top_classes({"y": np.ones((2, 4, 6, 6))}, 2) is None  # a picture


def test_synth_puts_the_build_id_into_the_description(monkeypatch):
    """What `Device.load` compares: the first half of the key, in the memory that INFO reads."""
    from onnxhw.board import find
    from onnxhw.build import flow
    from onnxhw.build.bitstream import Bitstream
    from onnxhw.cli.common.synthesis import finished
    from onnxhw.devices.family import BlockRamLocation
    from onnxhw.devices.report import RouteReport
    from onnxhw.driver.artifact import build_id
    from onnxhw.isa.link import Info
    from onnxhw.presets import preset

    baked = []
    monkeypatch.setattr(flow, "with_memories", lambda built, images, progress: baked.append(images) or built)
    location = BlockRamLocation(1, "top.loader.description", "description", 32, 512, 32, 0)
    key = "0123456789abcdef" * 2
    built = Bitstream(b"", "", RouteReport({}, {}), 1, key, 50_000_000, find("ulx3s"), {}, [location])
    finished(built, preset("mini"), 3_000_000, lambda event: None)
    info = Info.from_words(baked[0]["description"])
    assert (info.build_id, info.clock_hz, info.standalone) == (build_id(key), 50_000_000, False)
    assert info.baud == 3_000_000
    assert info.config == preset("mini")


def test_the_line_is_first_tried_at_the_speed_that_the_bitstream_has(digits, tmp_path, monkeypatch, capsys):
    """As manifest.json says; what --baud says is the only one."""
    from onnxhw.driver.device import Device
    from onnxhw.errors import LinkError
    from onnxhw.runtime.session import InferenceSession

    assert main(["compile", str(digits), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]) == 0
    manifest = tmp_path / "out" / "manifest.json"
    record = json.loads(manifest.read_text())
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    seen = []

    def open_device(address, **options):
        seen.append((options.get("baud"), options["likely_baud"]))
        raise LinkError("E9155", "nothing answers")

    monkeypatch.setattr(Device, "open", open_device)
    words = ["run", str(tmp_path / "out"), "--input", str(tmp_path / "x.npy"), "--device", "serial:/dev/null"]
    for baud, extra in ((0, []), (921_600, []), (921_600, ["--baud", "115200"])):
        manifest.write_text(json.dumps(record | {"baud": baud}))
        assert main([*words, *extra]) == 9
        with pytest.raises(LinkError):
            InferenceSession(tmp_path / "out", device="serial:/dev/null")
    assert seen == [(None, None)] * 2 + [(None, 921_600)] * 2 + [(115_200, 921_600), (None, 921_600)]
    for baud in (1, "fast", 1e300, True, [3]):
        manifest.write_text(json.dumps(record | {"baud": baud}))
        assert main(words) == 2
        assert "E2552" in capsys.readouterr().err
