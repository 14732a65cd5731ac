"""Every public name of onnxruntime is here, does something or is refused."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from ort_network import network

import onnxhw
import onnxhw.backend
from onnxhw import ort_api
from onnxhw.errors import UsageError


def test_public_names_can_be_found() -> None:
    assert set(onnxhw.__all__) <= set(dir(onnxhw))
    for name in onnxhw.__all__:
        assert getattr(onnxhw, name) is not None


def names_of(kind: Any) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def objects_of(ort: ModuleType) -> dict[str, Any]:
    """One object of each of onnxruntime's classes that scripts use."""
    session = ort.InferenceSession(network().SerializeToString(), providers=["CPUExecutionProvider"])
    return {
        "InferenceSession": session, "OrtValue": ort.OrtValue.ortvalue_from_numpy(np.ones((2, 3), np.float32)),
        "SessionOptions": ort.SessionOptions(), "RunOptions": ort.RunOptions(), "IOBinding": session.io_binding(),
        "NodeArg": session.get_inputs()[0], "ModelMetadata": session.get_modelmeta(),
    }  # fmt: skip


def bound() -> ort_api.IOBinding:
    binding = ort_api.IOBinding()
    binding.bind_cpu_input("x", np.zeros((1, 4, 4, 4), np.float32))
    return binding


CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "InferenceSession": {
        "run": (None, {"x": np.zeros((1, 4, 4, 4), np.float32)}), "run_async": (None, {}, lambda *_: None, None),
        "run_with_iobinding": (bound(),),
        "run_with_ort_values": (None, {"x": ort_api.OrtValue(np.zeros((1, 4, 4, 4), np.float32))}),
        "set_tuning_results": ([],),
    },
    "OrtValue": {
        "from_dlpack": (np.ones(2, np.float32),), "ortvalue_from_numpy": (np.ones(2),),
        "update_inplace": (np.ones((2, 3), np.float32),),
        "ortvalue_from_numpy_with_onnx_type": (np.ones(2, np.uint16), TensorProto.BFLOAT16),
        "ortvalue_from_shape_and_type": ([2, 3], np.float32),
    },
    "SessionOptions": {
        "add_free_dimension_override_by_denotation": ("DATA_BATCH", 1), "add_session_config_entry": ("a", "b"),
        "add_free_dimension_override_by_name": ("N", 1), "get_session_config_entry": ("a",),
        "add_provider": ("CPUExecutionProvider", {}), "set_load_cancellation_flag": (True,),
    },
    "RunOptions": {"add_run_config_entry": ("a", "b"), "get_run_config_entry": ("a",)},
    "IOBinding": {
        "bind_cpu_input": ("x", np.zeros(1)), "bind_output": ("y",),
        "bind_ortvalue_input": ("x", ort_api.OrtValue(np.zeros(1))),
    },
}  # fmt: skip
"""Arguments of the methods that need some."""
REFUSED = {
    "InferenceSession": {
        "create_ortvalue_from_shape_and_type", "get_input_epdevices", "get_input_memory_infos",
        "get_output_memory_infos", "get_provider_graph_assignment_info", "run_with_ortvaluevector",
        "set_ep_dynamic_options",
    },
    "OrtValue": {"as_sparse_tensor", "ort_value_from_sparse_tensor"},
    "SessionOptions": {
        "add_external_initializers", "add_external_initializers_from_files_in_memory", "add_initializer",
        "add_provider_for_devices", "register_custom_ops_library", "set_ep_context_data_read_func",
        "set_load_cancellation_flag", "set_provider_selection_policy", "set_provider_selection_policy_delegate",
    },
    "RunOptions": {"add_active_adapter"},
    "IOBinding": {"bind_input", "bind_ortvalue_output", "get_outputs_as_ortvaluevector"},
}  # fmt: skip
"""Public names of onnxruntime that are refused here, E2591; all others do something."""


@pytest.mark.parametrize("kind", [*REFUSED, "NodeArg", "ModelMetadata"])
def test_every_public_name_of_onnxruntime_works_or_is_refused(kind: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    theirs, ours = objects_of(ort)[kind], objects_of(onnxhw)[kind]
    assert names_of(theirs) - names_of(ours) == set()
    for name in sorted(names_of(theirs)):
        attribute = getattr(ours, name)
        if not callable(attribute):
            assert type(attribute).__name__ == type(getattr(theirs, name)).__name__, name
            continue
        arguments = CALLS.get(kind, {}).get(name, ())
        if name in REFUSED.get(kind, set()):
            with pytest.raises(UsageError, match=r"E2591 .* is not supported Hint: ."):
                attribute(*arguments)
        else:
            attribute(*arguments)


def test_every_public_name_of_the_module_works_or_is_refused() -> None:
    ort = pytest.importorskip("onnxruntime")
    theirs = {name for name in names_of(ort) if callable(getattr(ort, name))} - {"import_capi_exception"}
    assert {"OrtDevice", "SparseTensor", "preload_dlls", "get_version_string", "get_ep_devices"} <= theirs
    ours = set(dir(onnxhw))
    for name in sorted(theirs - ours):
        assert hasattr(onnxhw, name)
        for use in (getattr(onnxhw, name), lambda name=name: getattr(onnxhw, name).CPU):
            with pytest.raises(UsageError, match=rf"E2591 usage: {name}.* is not supported Hint: ."):
                use()
    assert theirs - ours == set(ort_api.REFUSED)
    assert onnxhw.get_version_string() == onnxhw.__version__
    assert type(onnxhw.get_build_info()) is type(ort.get_build_info())
    assert onnxhw.has_collective_ops() is ort.has_collective_ops()
    assert onnxhw.preload_dlls(cuda=False) is None
    assert onnxhw.set_global_thread_pool_sizes(1, 1) is None
    assert not hasattr(onnxhw, "nothing_of_this_name")
