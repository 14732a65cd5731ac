"""Models of which the host runs a part: `check`, `compile` and `simulate`."""

import cProfile
import hashlib
import json
import pstats
import shutil

import large_model
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.build import flow
from onnxhw.build.bitstream import Bitstream
from onnxhw.cli import main
from onnxhw.compiler import segmented
from onnxhw.devices.report import ClockResult, RouteReport
from onnxhw.driver import artifact
from onnxhw.errors import UsageError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.parts import HostPart
from onnxhw.program import container
from onnxhw.program.input_regions import latency

from .half_models import Nodes, constants

SHAPE = [1, 4, 4, 4]


def run_json(capsys, *arguments, status=0):
    """The JSON that a command prints, if it ends with `status`."""
    assert main([*map(str, arguments), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)


def model(op_type="Trilu", domain="", shape=SHAPE, weights=4, **attributes):
    """Convolution on the hardware, one other node, addition on the hardware."""
    nodes = Nodes()
    x = nodes.conv("x")
    y = nodes.grid(nodes.node("Add", x, nodes.grid(nodes.node(op_type, x, domain=domain, **attributes))))
    graph = helper.make_graph(
        nodes.made, "half", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, [None] * 4)], constants(weights, shape[1]),
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def written(path, proto):
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture
def half(tmp_path):
    return written(tmp_path / "half.onnx", model())


# -- check -------------------------------------------------------------------------------------------


def test_check_has_a_row_for_every_node(half, capsys):
    record = run_json(capsys, "check", half, "--preset", "mini")
    nodes = list(onnx.load(half).graph.node)
    assert [row["node"] for row in record["placement"]] == [node.name for node in nodes]
    where = {row["op_type"]: row for row in record["placement"]}
    assert where["Conv"]["where"] == where["Add"]["where"] == "hardware"
    trilu = where["Trilu"]
    assert (trilu["where"], trilu["code"]) == ("host", "E4001")
    assert trilu["reason"]
    assert trilu["hint"]
    assert [part["where"] for part in record["parts"]] == ["hardware", "host", "hardware"]
    assert sum(record["nodes"].values()) == len(nodes)
    assert record["runs"] is True
    assert record["fit"]["exact"] is True
    simulated = run_json(capsys, "simulate", half, "-p", "mini", "-e", "emulator")
    for name, same in (("cycles", "predicted_cycles"), ("run_cycles", "run_cycles")):
        assert record["fit"][name] == simulated[same]


def test_check_for_people_names_the_host_nodes(half, capsys):
    assert main(["check", str(half), "--preset", "mini"]) == 0
    out = capsys.readouterr().out
    assert "Trilu_7" in out
    assert "host: 1" in out
    assert "3 parts in turn" in out
    assert "fits, as 2 programs in turn" in out.splitlines()
    assert "44 of them to load its programs" in out.splitlines()[-2]
    assert "Conv_" not in out
    assert main(["check", str(half), "--preset", "mini", "--all"]) == 0
    assert "Conv_" in capsys.readouterr().out


def test_check_of_a_model_that_is_all_hardware(digits, capsys):
    record = run_json(capsys, "check", digits)
    assert [part["where"] for part in record["parts"]] == ["hardware"]
    assert record["nodes"]["refused"] == 0
    assert all(row["code"] == "" for row in record["placement"])


@pytest.mark.parametrize(
    ("proto", "flags", "status", "code"),
    [
        (model("Wobble", "made.up"), [], 4, "E4401"),
        (model(shape=[1, 64, 64, 64], weights=64), ["--preset", "mini"], 5, "E5101"),
        (model(shape=[1, 4, 0, 4], weights=4), ["--shape", "N"], 2, "E2530"),
        (model(), ["--shape", "N=-1"], 2, "E2530"),
        (model(), ["--limit", "nodes=3"], 3, "E3"),
        (model(), ["--limit", "knots=3"], 2, "E2"),
    ],
)
def test_check_ends_with_the_status_of_what_it_found(proto, flags, status, code, tmp_path, capsys):
    record = run_json(capsys, "check", written(tmp_path / "m.onnx", proto), *flags, status=status)
    assert record["error"]["code"].startswith(code)
    assert record["error"]["exit_status"] == status
    if status in (4, 5):
        assert record["runs"] is False
        assert len(record["placement"]) == len(proto.graph.node)


@pytest.mark.parametrize(
    ("kind", "hosted"), [("convolutions", 100), ("chain", 0), ("inputs", 0), ("concat", 1)]
)
def test_check_of_thousands_of_nodes(kind, hosted, tmp_path, capsys):
    """Ten times the nodes take at most 1.6 times the calls per node (a sort, and a search for cuts, take some more).

    The first model is there for what is imported once."""
    counts = []
    for nodes in (50, 500, 5000):
        model = large_model.KINDS[kind](nodes)
        onnx.save(model, tmp_path / "large.onnx")
        profile = cProfile.Profile()
        record = profile.runcall(run_json, capsys, "check", tmp_path / "large.onnx", "-p", "ulx3s-85f")
        counts.append(pstats.Stats(profile).total_calls)
    assert len(record["placement"]) >= 5000
    assert record["nodes"]["host"] >= hosted
    assert counts[2] < 1.6 * 10 * counts[1]


def test_check_of_thousands_of_nodes_plans_none_of_them(tmp_path, capsys, monkeypatch):
    """Where the board's preset has external memory: a plan takes time for each operation."""
    onnx.save(large_model.KINDS["chain"](5000), tmp_path / "large.onnx")
    monkeypatch.setattr(segmented, "make_plan", lambda *_: pytest.fail("planned"))
    fit = run_json(capsys, "check", tmp_path / "large.onnx")["fit"]
    assert (fit["fits"], fit["reason"]) == (None, "more than 1024 operations: bounds only; onnxhw compile decides")


# -- boards ------------------------------------------------------------------------------------------


def test_boards_says_of_a_model_in_parts_what_compile_says(half, tmp_path, capsys):
    fits = {one["preset"]: one for one in run_json(capsys, "boards", half)["presets"]}
    made = run_json(capsys, "compile", half, "--preset", "mini", "-o", tmp_path / "out")
    assert fits["mini"]["predicted_cycles"] == made["predicted_cycles"]
    assert all(one["fits"] for one in fits.values())


# -- compile -----------------------------------------------------------------------------------------


def test_compile_writes_a_program_in_parts(half, tmp_path, capsys):
    record = run_json(capsys, "compile", half, "--preset", "mini", "-o", tmp_path / "out")
    program = container.load(record["artifacts"]["program.ohw"])
    assert [isinstance(part, HostPart) for part in program.parts] == [False, True, False]
    assert record["predicted_cycles"] == program.latency == sum(latency(part) for part in program.programs)
    assert record["run_cycles"] == program.cycles == sum(part.cycles for part in program.programs)
    assert record["macs_executed"] == program.macs
    assert container.dumps(program) == (tmp_path / "out" / "program.ohw").read_bytes()
    rows = json.loads((tmp_path / "out" / "placement.json").read_text())
    assert [row["where"] for row in rows].count("hardware") == record["placement"]["hardware"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"program.ohw", "placement.json", "report.html", "report-1.html"} <= set(manifest["files"])


def test_what_wants_one_program_refuses_parts_by_name(half, tmp_path, capsys):
    run_json(capsys, "compile", half, "--preset", "mini", "-o", tmp_path / "out")
    with pytest.raises(UsageError, match="holds a model in 3 parts, 1 of them for the host") as caught:
        artifact.read(tmp_path / "out")
    assert caught.value.code == "E2510"


def test_a_damaged_program_in_parts_is_refused(half, tmp_path, capsys):
    run_json(capsys, "compile", half, "--preset", "mini", "-o", tmp_path / "out")
    data = (tmp_path / "out" / "program.ohw").read_bytes()
    for place in np.linspace(0, len(data) - 1, 200).astype(int):
        broken = bytearray(data)
        broken[place] ^= 4
        with pytest.raises(UsageError) as caught:
            container.loads(bytes(broken))
        assert caught.value.code in ("E2120", "E2121", "E2122")


def test_compile_of_a_float_model_says_that_it_is_one(tmp_path, capsys):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "float", info[:1], info[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = written(tmp_path / "float.onnx", proto)
    error = run_json(capsys, "compile", path, "-o", tmp_path / "out", status=4)["error"]
    assert error["code"] == "E4002"
    assert "onnxhw quantize" in error["hint"]
    assert not (tmp_path / "out").exists()


# -- simulate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["golden", "emulator"])
def test_simulate_gives_what_the_model_means(engine, half, tmp_path, capsys):
    x = (np.random.default_rng(1).integers(-140, 140, (3, 4, 4, 4)) / 8).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    record = run_json(
        capsys, "simulate", half, "-p", "mini", "-e", engine, "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz"
    )
    assert (record["inferences"], record["equal"], record["engine"]) == (3, True, engine)
    assert record["cycles"] == (None if engine == "golden" else record["predicted_cycles"])
    arrays = dict(np.load(tmp_path / "y.npz"))
    assert [array.dtype for name, array in arrays.items() if name.startswith("int8/")] == [np.int8]
    (got,) = (array for name, array in arrays.items() if not name.startswith("int8/"))
    wanted = np.concatenate([next(iter(evaluate(onnx.load(half), {"x": one[None]}).values())) for one in x])
    np.testing.assert_array_equal(got, wanted)


def test_simulate_a_directory_a_program_and_a_directory_without_its_model(half, tmp_path, capsys):
    out = tmp_path / "out"
    run_json(capsys, "compile", half, "--preset", "mini", "-o", out)
    record = run_json(capsys, "simulate", out, "-e", "emulator", "--trace")
    assert (record["reference"], record["equal"]) == ("golden model", True)
    (kept,) = json.loads((out / "simulations.json").read_text())
    assert kept["cycles"] == record["cycles"] == sum(kept["part_cycles"])
    manifest = json.loads((out / "manifest.json").read_text())
    for number, cycles in enumerate(kept["part_cycles"]):
        suffix = f"-{number}" if number else ""
        page = (out / f"report{suffix}.html").read_text()
        assert f"<td>{cycles:,}</td><td>{cycles:,}</td>" in page
        for name in (f"report{suffix}.html", f"trace{suffix}.json"):
            assert hashlib.sha256((out / name).read_bytes()).hexdigest() == manifest["files"][name]
    (out / "report-1.html").unlink()
    told = run_json(capsys, "report", out)
    assert [part["predicted_cycles"] for part in told["parts"]] == kept["part_cycles"]
    assert (out / "report-1.html").read_text() == page
    shutil.copyfile(out / "program.ohw", tmp_path / "alone.ohw")
    assert run_json(capsys, "simulate", tmp_path / "alone.ohw", "-e", "emulator")["reference"] == "emulator"
    (out / "model.onnx").unlink()
    assert run_json(capsys, "simulate", out, "-e", "emulator")["reference"] == "emulator"
    assert run_json(capsys, "simulate", out, "-e", "golden", status=2)["error"]["code"] == "E2909"


@pytest.mark.parametrize("op_type", ["Trilu", "Relu"])
def test_a_directory_remembers_how_its_model_was_read(op_type, tmp_path, capsys):
    """In parts and as a whole: the model's open axis has the size it was compiled with, its limits are the same."""
    proto = model(op_type)
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "W"
    path, out = written(tmp_path / "open.onnx", proto), tmp_path / "out"
    reading = ("--shape", "W=6", "--limit", "nodes=5000")
    run_json(capsys, "compile", path, "-p", "mini", "-o", out, *reading)
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["shapes"], manifest["limits"]) == (["W=6"], ["nodes=5000"])
    record = run_json(capsys, "simulate", out, "-e", "golden")
    assert (record["reference"], record["equal"]) == ("golden model", True)
    (result,) = (value for name, value in np.load(out / "outputs.npz").items() if not name.startswith("int8/"))
    assert result.shape[-1] == 6
    (out / "manifest.json").write_text(json.dumps({**manifest, "limits": ["nodes=3"]}))
    assert run_json(capsys, "simulate", out, "-e", "golden", status=3)["error"]["kind"] == "over a limit"


def test_untrusted_models_are_read_in_a_process_of_their_own_first(half, tmp_path, monkeypatch, capsys):
    """And the process that asks reads only what that one gave."""
    from onnxhw.partition import untrusted

    asked, right = [], untrusted.read_untrusted

    def noted(source, *arguments, **more):
        asked.append(source)
        return right(source, *arguments, **more)

    monkeypatch.setattr(untrusted, "read_untrusted", noted)
    plain = run_json(capsys, "check", half, "-p", "mini")
    assert not asked
    assert run_json(capsys, "check", half, "-p", "mini", "--untrusted")["placement"] == plain["placement"]
    run_json(capsys, "compile", half, "-p", "mini", "-o", tmp_path / "out", "--untrusted")
    run_json(capsys, "simulate", half, "-p", "mini", "-e", "golden", "--untrusted")
    assert asked == [half] * 3
    (tmp_path / "broken.onnx").write_bytes(half.read_bytes()[:-20])
    calibration = tmp_path / "x.npy"
    np.save(calibration, np.zeros(SHAPE, np.float32))
    for command in (("check",), ("compile",), ("simulate",), ("quantize", "-c", calibration)):
        error = run_json(capsys, command[0], tmp_path / "broken.onnx", *command[1:], "--untrusted", status=3)["error"]
        assert error["where"].startswith(str(tmp_path / "broken.onnx"))
    assert len(asked) == 7


def test_a_wrong_value_in_a_part_is_a_mismatch(half, tmp_path, capsys):
    run_json(capsys, "compile", half, "--preset", "mini", "-o", tmp_path / "out")
    path = tmp_path / "out" / "program.ohw"
    program = container.load(path)
    program.programs[0].weights[:] += 1
    container.save(program, path)
    manifest = json.loads((path.parent / "manifest.json").read_text())
    manifest["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "manifest.json").write_text(json.dumps(manifest))
    error = run_json(capsys, "simulate", path.parent, "-e", "emulator", status=8)
    assert error["error"]["code"] == "E8001"
    assert error["equal"] is False


@pytest.mark.slow
@pytest.mark.rtl
def test_simulate_in_the_rtl(half, capsys):
    record = run_json(capsys, "simulate", half, "-p", "mini", "-e", "cxxrtl")
    assert (record["equal"], record["cycles"]) == (True, record["predicted_cycles"])


def test_inputs_that_cannot_be_drawn(tmp_path, capsys):
    proto = model()
    proto.graph.input.append(helper.make_tensor_value_info("t", TensorProto.STRING, [1]))
    proto.graph.node.append(helper.make_node("Identity", ["t"], ["u"]))
    proto.graph.output.append(helper.make_tensor_value_info("u", TensorProto.STRING, [1]))
    path = written(tmp_path / "text.onnx", proto)
    error = run_json(capsys, "simulate", path, "-p", "mini", "-e", "emulator", status=2)["error"]
    assert error["code"] == "E2520"


# -- synth -------------------------------------------------------------------------------------------


def test_synth_writes_a_bitstream_and_a_program_in_parts(half, tmp_path, capsys, monkeypatch):
    """The flow is tested elsewhere. Such a program cannot be alone in a bitstream."""
    report = RouteReport({"lut": (11203, 83640)}, {"clk": ClockResult(101.25, 100.0)})

    def build(design, board, *, clock_hz, **options):
        return Bitstream(b"bits", "config", report, 3, "ab" * 20, clock_hz, board, {"yosys": "1"}, [], True)

    monkeypatch.setattr(flow, "build", build)
    record = run_json(capsys, "synth", half, "--preset", "mini", "-o", tmp_path / "out")
    assert [part["where"] for part in record["parts"]] == ["hardware", "host", "hardware"]
    assert (record["cached"], record["fmax_mhz"]) == (True, 101.25)
    assert (tmp_path / "out" / "top.bit").read_bytes() == b"bits"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"program.ohw", "placement.json", "report-1.html", "top.bit"} <= set(manifest["files"])
    assert manifest["design"] == "ab" * 20
    alone = ["synth", half, "--preset", "mini", "--standalone", "-o", tmp_path / "alone"]
    assert run_json(capsys, *alone, status=2)["error"]["code"] == "E2908"
    assert not (tmp_path / "alone").exists()


@pytest.mark.parametrize("command", ["check", "compile", "simulate", "run", "report"])
def test_a_model_in_parts_has_the_fields_of_any(command, half, digits, digits_test, tmp_path, capsys):
    """And values for them: null or not does not depend on the number of parts."""
    np.save(tmp_path / "x.npy", np.zeros(SHAPE, np.float32))
    found = []
    for file, data in ((digits, digits_test), (half, tmp_path / "x.npy")):
        out = tmp_path / f"{file.stem}-out"
        run_json(capsys, "compile", file, "-p", "mini", "-o", out)
        record = run_json(capsys, command, *{
            "check": [file, "-p", "mini"],
            "compile": [file, "-p", "mini", "-o", out],
            "simulate": [out, "-e", "emulator", "--random", 1],
            "run": [out, "-d", "emu:", "-i", data, "-n", 1, "--profile"],
            "report": [out],
        }[command])  # fmt: skip
        found.append({name: value is None for name, value in record.items() if name != "classes"})
    assert found[0] == found[1]


def test_a_softmax_in_integers_is_said_and_can_be_left_to_the_host(tmp_path, capsys):
    path = tmp_path / "softmax.onnx"
    path.write_bytes(model("Softmax", axis=-1).SerializeToString())
    for flags, where, codes in (([], "hardware", ["W3403"]), (["--exact-softmax"], "host", [])):
        found = run_json(capsys, "check", path, *flags)
        assert [row["where"] for row in found["placement"] if row["op_type"] == "Softmax"] == [where]
        assert [entry["code"] for entry in found["diagnostics"] if entry["code"] == "W3403"] == codes
        folder = tmp_path / where
        assert main(["compile", str(path), "--preset", "virtual", "-o", str(folder), *flags]) == 0
        assert ("W3403" in capsys.readouterr().err) == bool(codes)
        assert json.loads((folder / "manifest.json").read_text())["exact_softmax"] == bool(flags)
        assert run_json(capsys, "simulate", folder, "--engine", "emulator")["equal"]
