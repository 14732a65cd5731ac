"""``onnxhw run`` of models in parts: the host's nodes run transparently, on both sides of the hardware."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.cli import main
from onnxhw.driver.device import Device
from onnxhw.isa.link import SHORTEST
from onnxhw.program import container
from onnxhw.program.traffic import load_bytes, traffic_of
from onnxhw.runtime import session as sessions

from .half_models import Nodes, constants

COUNT = 3
SHAPE = [1, 4, 4, 4]


def model(batch=1):
    """Host, hardware, host, hardware, host; two inputs and two outputs."""
    nodes = Nodes()
    conv = nodes.conv(nodes.node("Trilu", "a"))
    both = nodes.grid(nodes.node("Add", nodes.grid(nodes.node("Trilu", conv)), nodes.grid("b")))
    last = nodes.node("Trilu", both, upper=0)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *SHAPE[1:]])
              for name in ("a", "b", conv, last)]  # fmt: skip
    graph = helper.make_graph(nodes.made, "parts", values[:2], values[2:], constants(4, 4))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory of `compile`, its inputs as a file, and the golden model's outputs."""
    where = tmp_path_factory.mktemp("parts")
    onnx.save(model(), where / "model.onnx")
    assert main(["compile", str(where / "model.onnx"), "--preset", "mini", "-o", str(where / "out"), "-q"]) == 0
    random = np.random.default_rng(0)
    feeds = {name: random.normal(0, 3, (COUNT, *SHAPE[1:])).astype(np.float32) for name in "ab"}
    np.savez(where / "x.npz", **feeds)
    with InferenceSession(where / "model.onnx") as session:
        names = [value.name for value in session.get_outputs()]
        return where, dict(zip(names, session.run(None, feeds), strict=True))


def run(made, *more):
    where, _ = made
    return main(["run", str(where / "out"), "-d", "emu:", "-i", str(where / "x.npz"), *map(str, more)])


def test_outputs_equal_the_golden_model(made, tmp_path, capsys):
    assert run(made, "-o", tmp_path / "y.npz", "--repeat", 2, "--profile", "--json", "-q") == 0
    record = json.loads(capsys.readouterr().out)
    with np.load(tmp_path / "y.npz") as found:
        assert found.files == list(made[1])
        for name, values in made[1].items():
            assert np.array_equal(found[name], values)
    assert (record["parts"], len(record["part_counters"])) == (5, 2)
    assert (record["inferences"], record["runs"]) == (COUNT, 2 * COUNT)
    times = {"link": record["line_ms"], "core": record["core_ms"], "host": record["host_ms"]}
    assert record["host_ms"] > 0
    assert times[record["bound"]] == max(times.values()) == pytest.approx(1e3 / record["bound_per_second"])
    for name, count in record["counters"].items():
        assert count == sum(part[name] for part in record["part_counters"])
    assert record["cycles"] == record["predicted_cycles"] == sum(part["latency"] for part in record["part_counters"])
    assert record["profile"]["equal"] is True
    assert sum(row["cycles"] for part in record["profile"]["parts"] for row in part["layers"]) == record["run_cycles"]
    assert record["profile"]["layers"] == [row for part in record["profile"]["parts"] for row in part["layers"]]
    (cycles,) = (row for row in record["profile"]["counters"] if row["counter"] == "cycles")
    assert (cycles["device"], cycles["predicted"], cycles["share"]) == (record["run_cycles"], record["run_cycles"], 1)
    assert record["line_ms"] > 0


def test_one_inference_counts_the_loading_of_every_program(made, capsys):
    """Each call loads all programs in turn; the device has none of them before."""
    assert run(made, "-n", 1, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    program = container.load(made[0] / "out" / "program.ohw")
    sent = sum(load_bytes(one) + traffic_of(one).sent for one in program.programs)
    assert len(program.programs) == 2
    line = 10e3 * sent / record["waiting"]["baud"]
    asked = 10e3 * len(program.programs) * 3 * SHORTEST / record["waiting"]["baud"]  # is the program there already?
    assert line <= record["line_ms"] <= line + asked
    assert record["waiting"]["load_bytes"] == sum(map(load_bytes, program.programs))


def test_fewer_inferences_and_words(made, tmp_path, capsys):
    assert run(made, "-n", 1, "-o", tmp_path / "y.npz", "--profile") == 0
    with np.load(tmp_path / "y.npz") as found:
        assert all(np.array_equal(found[name], values[:1]) for name, values in made[1].items())
    assert capsys.readouterr().out.count("agree with the schedule") == 2


def test_a_repetition_that_differs_is_told(made, monkeypatch, tmp_path, capsys):
    real, calls = Device.run_batch, []

    def damaged(self, batch, *more):
        results = real(self, batch, *more)
        calls.append(None)
        if len(calls) == 4:  # the last part of all inferences but the first, the second round among them
            next(iter(results[-1].outputs.values())).flat[0] ^= 1
        return results

    monkeypatch.setattr(Device, "run_batch", damaged)
    assert run(made, "--repeat", 2, "-o", tmp_path / "y.npz") == 9
    assert "E9171" in capsys.readouterr().err
    assert not (tmp_path / "y.npz").exists()


def test_files_that_cannot_hold_the_outputs(made, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sessions, "InferenceSession", None)  # nothing is run
    assert run(made, "-o", tmp_path / "y.npy") == 2
    assert "E2560" in capsys.readouterr().err
    onnx.save(strings(), tmp_path / "strings.onnx")
    assert main(["compile", str(tmp_path / "strings.onnx"), "--preset", "mini", "-o", str(tmp_path), "-q"]) == 0
    assert main(["run", str(tmp_path), "-d", "emu:", "-i", str(made[0] / "x.npz")]) == 2
    assert "E2560" in capsys.readouterr().err


def strings():
    """The same with an output of text."""
    proto = model()
    text = numpy_helper.from_array(np.array(["a", "b"], object), "text")
    proto.graph.initializer.append(text)
    proto.graph.node.append(helper.make_node("Identity", ["text"], ["words"]))
    proto.graph.output.append(helper.make_tensor_value_info("words", TensorProto.STRING, [2]))
    return proto


def test_a_fixed_batch(tmp_path, made):
    """The file's batch is that of every call."""
    onnx.save(model(batch=COUNT), tmp_path / "model.onnx")
    assert main(["compile", str(tmp_path / "model.onnx"), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]) == 0
    words = ["-d", "emu:", "-i", str(made[0] / "x.npz"), "-o", str(tmp_path / "y.npz"), "-q"]
    assert main(["run", str(tmp_path / "out"), *words]) == 0
    with np.load(tmp_path / "y.npz") as found:
        assert all(np.array_equal(found[name], values) for name, values in made[1].items())
