"""A script written for onnxruntime runs with ``import onnxhw as ort``."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from ort_network import network

import onnxhw
import onnxhw.backend
from onnxhw import ort_api
from onnxhw.errors import UsageError


def containers() -> onnx.ModelProto:
    """Inputs and outputs of every type that is no plain tensor of numbers."""
    tensor = helper.make_tensor_type_proto(TensorProto.DOUBLE, ["N"])
    sequence = helper.make_sequence_type_proto(tensor)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Identity", ["q"], ["r"]),
         helper.make_node("Identity", ["o"], ["p"]), helper.make_node("Identity", ["h"], ["g"])],
        "containers",
        [helper.make_tensor_value_info("s", TensorProto.STRING, [None, 2]), helper.make_value_info("q", sequence),
         helper.make_value_info("o", helper.make_optional_type_proto(tensor)),
         helper.make_tensor_value_info("h", TensorProto.FLOAT16, [])],
        [helper.make_tensor_value_info("t", TensorProto.STRING, [None, 2]), helper.make_value_info("r", sequence),
         helper.make_value_info("p", helper.make_optional_type_proto(tensor)),
         helper.make_tensor_value_info("g", TensorProto.FLOAT16, [])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def script(ort: ModuleType, path: str) -> dict[str, Any]:
    """What code in the wild does with a session."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = options.inter_op_num_threads = 2
    options.log_severity_level, options.enable_mem_pattern = 3, False
    options.add_session_config_entry("session.x64quantprecision", "1")
    assert options.get_session_config_entry("session.x64quantprecision") == "1"
    assert "CPUExecutionProvider" in ort.get_available_providers()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"], provider_options=[{}])
    assert "CPUExecutionProvider" in session.get_providers()
    assert "CPUExecutionProvider" in session.get_provider_options()
    assert session.get_session_options().intra_op_num_threads == 2
    x = np.random.default_rng(4).integers(-8, 8, (3, 4, 4, 4)).astype(np.float32)
    name, outputs = session.get_inputs()[0].name, [value.name for value in session.get_outputs()]
    results = {"run": session.run(outputs, {name: x}, ort.RunOptions())}
    results["keyword"] = session.run(output_names=None, input_feed={name: x}, run_options=None)
    binding = session.io_binding()
    binding.bind_cpu_input(name, x)
    binding.bind_output(outputs[0])
    session.run_with_iobinding(binding)
    results["bound"] = binding.copy_outputs_to_cpu()
    results["values"] = [
        value.numpy()
        for value in session.run_with_ort_values(outputs, {name: ort.OrtValue.ortvalue_from_numpy(x)})
    ]
    done, answers = threading.Event(), []

    def callback(found: Any, data: Any, error: str) -> None:
        answers.extend([found, data, error])
        done.set()

    session.run_async(None, {name: x}, callback, "data")
    assert done.wait(60)
    results["async"], meta = answers[0], session.get_modelmeta()
    assert answers[1:] == ["data", ""]
    results["described"] = [
        [(value.name, value.type, list(value.shape)) for value in values]
        for values in (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    ]
    results["meta"] = [
        meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description, meta.version,
        meta.custom_metadata_map,
    ]  # fmt: skip
    return results


def test_one_script_runs_with_both(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    theirs, ours = script(ort, str(path)), script(onnxhw, str(path))
    assert ours["meta"] == theirs["meta"] == ["a tool", "net", "a.b", "words", "words of the graph", 7,
                                             {"author": "somebody"}]  # fmt: skip
    assert ours["described"] == theirs["described"]
    for key in ("run", "keyword", "bound", "values", "async"):
        assert len(ours[key]) == len(theirs[key]) == 1
        np.testing.assert_array_equal(ours[key][0], theirs[key][0])
        assert len(ours[key][0]) == 3


def test_types_are_those_of_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = containers().SerializeToString()
    theirs, ours = ort.InferenceSession(model, providers=["CPUExecutionProvider"]), onnxhw.InferenceSession(model)
    for a, b in ((ours.get_inputs(), theirs.get_inputs()), (ours.get_outputs(), theirs.get_outputs())):
        assert [(v.name, v.type) for v in a] == [(v.name, v.type) for v in b]
    assert [v.shape for v in ours.get_inputs()[:1]] == [v.shape for v in theirs.get_inputs()[:1]]


def test_free_dimensions_come_from_the_options() -> None:
    options = onnxhw.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    session = onnxhw.InferenceSession(network(), options)
    assert session.shapes == {"N": 2}
    assert onnxhw.InferenceSession(network(), options, shapes={"N": 3}).shapes == {"N": 3}


def test_another_provider_gives_a_warning_as_in_onnxruntime() -> None:
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        onnxhw.InferenceSession(network(), providers=[("CUDAExecutionProvider", {"device_id": 0})])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"sess_options": "emulator"}, "E2590"),
        ({"providers": [3]}, "E2590"),
        ({"providers": [("CPUExecutionProvider", {}, 1)]}, "E2590"),
        ({"providers": ["CPUExecutionProvider"], "provider_options": []}, "E2590"),
        ({"providers": [(ort_api.PROVIDER, {"device": "emulator"})]}, "E2590"),
        ({"sess_options": onnxhw.SessionOptions(enable_profiling=True)}, "E2591"),
        ({"sess_options": onnxhw.SessionOptions(optimized_model_filepath="x.onnx")}, "E2591"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        onnxhw.InferenceSession(network(), **arguments)
    assert caught.value.code == code


def test_devices_and_addresses_are_refused() -> None:
    session = onnxhw.InferenceSession(network())
    binding, value = session.io_binding(), onnxhw.OrtValue.ortvalue_from_numpy(np.zeros(2))
    refused = [
        lambda: binding.bind_input("x", "cpu", 0, np.float32, [1], 4096),
        lambda: binding.bind_output("y", "cuda"),
        lambda: binding.bind_output("y", buffer_ptr=4096),
        lambda: binding.bind_ortvalue_output("y", value),
        lambda: onnxhw.OrtValue.ortvalue_from_numpy(np.zeros(2), "cuda", 0),
        lambda: onnxhw.SessionOptions().register_custom_ops_library("x.so"),
    ]
    for call in refused:
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == "E2591"
    with pytest.raises(UsageError, match="E2592"):
        onnxhw.SessionOptions().get_session_config_entry("a.b")


def test_no_names_of_outputs_mean_all() -> None:
    x = np.zeros((1, 4, 4, 4), np.float32)
    assert len(onnxhw.InferenceSession(network()).run([], {"x": x})) == 1


def test_a_model_without_a_version_has_onnxruntimes() -> None:
    ort, model = pytest.importorskip("onnxruntime"), network()
    model.ClearField("model_version")
    versions = [one.InferenceSession(model.SerializeToString()).get_modelmeta().version for one in (ort, onnxhw)]
    assert versions[0] == versions[1]


def test_no_result_is_in_memory_of_another_or_of_an_input() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("OptionalGetElement", ["o"], ["z"]),
         helper.make_node("Identity", ["s"], ["t"])],
        "g", [helper.make_value_info("x", tensor), helper.make_value_info("o", helper.make_optional_type_proto(tensor)),
              helper.make_value_info("s", helper.make_sequence_type_proto(tensor))],
        [helper.make_value_info("y", tensor), helper.make_value_info("z", tensor), helper.make_value_info("x", tensor),
         helper.make_value_info("t", helper.make_sequence_type_proto(tensor))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.ones(2, np.float32)
    feeds = {"x": x, "o": x, "s": [x, x]}
    session = onnxhw.InferenceSession(model)
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort_api.OrtValue(value))
    for name in ("y", "z", "x", "t", "y"):
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    prepared = onnxhw.backend.prepare(model)
    ways = [
        session.run(None, feeds), prepared.run(feeds), prepared.run(list(feeds.values())),
        onnxhw.backend.run_model(model, feeds), [one.numpy() for one in binding.get_outputs()],
        [*binding.copy_outputs_to_cpu(), *binding.copy_outputs_to_cpu()],
        [one.numpy() for one in session.run_with_ort_values(None, {k: ort_api.OrtValue(v) for k, v in feeds.items()})],
        onnxhw.backend.run_node(helper.make_node("Identity", ["x"], ["y"]), [x]),
    ]  # fmt: skip
    for results in ways:
        arrays = [x, *(one for value in results for one in (value if isinstance(value, list) else [value]))]
        for number, one in enumerate(arrays):
            assert one.flags.writeable
            assert not any(np.shares_memory(one, other) for other in arrays[:number])


def test_a_description_reads_as_in_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = network().SerializeToString()
    a, b = (one.InferenceSession(model).get_inputs()[0] for one in (ort, onnxhw))
    assert str(a) == str(b)


def test_values_are_those_of_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    arrays = [np.ones((2, 3), np.float32), np.zeros((0, 2), np.int8), np.ones(2, bool), np.array(3.0)]
    for array in arrays:
        theirs, ours = (one.OrtValue.ortvalue_from_numpy(array) for one in (ort, onnxhw))
        names = ["data_type", "element_type", "shape", "has_value", "is_tensor", "is_sparse_tensor",
                 "is_tensor_sequence", "device_name", "tensor_size_in_bytes"]  # fmt: skip
        assert [getattr(ours, name)() for name in names] == [getattr(theirs, name)() for name in names]
    for element in (np.float32, np.int64, TensorProto.BFLOAT16, TensorProto.BOOL):
        theirs, ours = (one.OrtValue.ortvalue_from_shape_and_type([2, 3], element) for one in (ort, onnxhw))
        assert (ours.data_type(), ours.shape()) == (theirs.data_type(), theirs.shape())
    value = onnxhw.OrtValue.ortvalue_from_numpy(arrays[0].copy())
    value.update_inplace(arrays[0] * 7)
    assert np.array_equal(np.asarray(value), arrays[0] * 7)
    assert np.array_equal(np.from_dlpack(value), arrays[0] * 7)
    for wrong in (np.ones((2, 3)), np.ones(6, np.float32)):
        with pytest.raises(UsageError, match="E2590"):
            value.update_inplace(wrong)


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "uint8"])
def test_an_array_of_another_type_is_refused_by_both(kind: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    model, x = network().SerializeToString(), np.ones((1, 4, 4, 4))
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        ort.InferenceSession(model).run(None, {"x": x.astype(kind)})
    with pytest.raises(UsageError, match=f"E2503 .* must be float32, not {kind}"):
        onnxhw.InferenceSession(model).run(None, {"x": x.astype(kind)})
    lists = [one.InferenceSession(model).run(None, {"x": x.tolist()})[0] for one in (ort, onnxhw)]
    assert np.array_equal(*lists)


def test_overrides_of_dimensions_that_there_are_not_are_ignored_by_both() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = network()
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    shapes = []
    for one in (ort, onnxhw):
        options = one.SessionOptions()
        options.add_free_dimension_override_by_name("another", 5)
        options.add_free_dimension_override_by_denotation("ANOTHER", 5)
        shapes.append(one.InferenceSession(model.SerializeToString(), options).get_inputs()[0].shape)
        options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
        shapes.append(one.InferenceSession(model.SerializeToString(), options).get_inputs()[0].shape)
    assert shapes == 2 * [["N", 4, 4, 4], [2, 4, 4, 4]]
    with pytest.raises(UsageError, match="E2540"):
        onnxhw.InferenceSession(model, shapes={"another": 5})


def test_run_options_that_would_change_a_result_are_refused() -> None:
    session, x = onnxhw.InferenceSession(network()), np.zeros((1, 4, 4, 4), np.float32)
    for options, code in ((onnxhw.RunOptions(terminate=True), "E2591"), ("x", "E2590")):
        with pytest.raises(UsageError, match=code):
            session.run(None, {"x": x}, options)


def test_a_seed_gives_a_warning() -> None:
    with pytest.warns(UserWarning, match="set_seed"):
        onnxhw.set_seed(3)


VALUES: list[Any] = [1, 0, True, 0.5, -3, "x", b"x", None, [1], {}, np.bool_(True), np.int64(3)]


@pytest.mark.parametrize("ours", [onnxhw.SessionOptions, onnxhw.RunOptions])
def test_options_take_the_names_and_types_that_onnxruntime_takes(ours: type[Any]) -> None:
    import onnxruntime

    theirs = getattr(onnxruntime, ours.__name__)
    names = [name for name in dir(theirs()) if not name.startswith("_") and not callable(getattr(theirs(), name))]
    values = [*VALUES, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, onnxruntime.ExecutionMode.ORT_PARALLEL]
    assert {"log_severity_level", "logid"} <= set(names)
    for name in [*names, "enable_profilng", "foo"]:
        for value in values:
            found: list[Any] = []
            for options in (ours(), theirs()):
                try:
                    setattr(options, name, value)
                    found.append(getattr(options, name))
                except (AttributeError, TypeError) as error:
                    found.append(type(error))
            if not (name == "execution_order" or hasattr(found[0], "value")):
                assert found[0] == found[1], (name, value)
            assert isinstance(found[0], type) == isinstance(found[1], type), (name, value)
    options = onnxhw.SessionOptions()
    options.graph_optimization_level = onnxhw.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = onnxhw.ExecutionMode.ORT_PARALLEL


def test_no_profile_has_no_name() -> None:
    assert onnxhw.InferenceSession(network()).end_profiling() == ""


def test_a_missing_input_is_a_value_error_as_of_onnxruntime() -> None:
    import onnxruntime

    model = network().SerializeToString()
    for session in (onnxhw.InferenceSession(model), onnxruntime.InferenceSession(model)):
        with pytest.raises(ValueError, match="x"):
            session.run(None, {})
    with pytest.raises(UsageError, match="E2502"):
        onnxhw.InferenceSession(model).run(None, {})


def test_a_library_tells_nobody_about_this_machine(tmp_path: Path) -> None:
    """onnxruntime's wheels would write what they tell their maker to the home and the temporary folder."""
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    for folder in (home, temporary):
        folder.mkdir()
    graph = helper.make_graph(
        [helper.make_node("Erf", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    code = ("import numpy, onnxhw\ns = onnxhw.InferenceSession('m.onnx')\n"
            "s.run(None, {'x': numpy.ones(2, numpy.float32)})")  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(home)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert [*home.rglob("*"), *temporary.rglob("*")] == []
