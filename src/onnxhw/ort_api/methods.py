"""The methods of onnxruntime's session that only call `run`, describe what computes, or are refused."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .providers import CPU_PROVIDER, PROVIDER, chosen_providers, refused
from .values import IOBinding, OrtValue


class Runs(Protocol):
    """What the methods need that call `run`."""

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """See `onnxhw.runtime.session.InferenceSession.run`."""


class SessionMethods:
    """What a session has beside `run`; `device` is what it runs on, in words."""

    device: str
    _options: Any

    def get_providers(self) -> list[str]:
        """What computes: the hardware's operations, then the host's nodes."""
        return [PROVIDER, CPU_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The device behind each provider."""
        return {PROVIDER: {"device": self.device}, CPU_PROVIDER: {}}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Checks the names as the constructor does; what computes stays."""
        chosen_providers(providers, provider_options)

    def get_session_options(self) -> Any:
        """The options given, or the defaults."""
        return self._options

    def run_with_ort_values(
        self: Runs, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
        run_options: Any = None,
    ) -> list[OrtValue]:  # fmt: skip
        """`run` with values around the arrays."""
        feeds = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(result) for result in self.run(output_names, feeds, run_options)]

    def io_binding(self) -> IOBinding:
        """A binding for `run_with_iobinding`."""
        return IOBinding()

    def run_with_iobinding(self: Runs, iobinding: IOBinding, run_options: Any = None) -> None:
        """`run` on the inputs that are bound; the outputs that are bound are then in the binding."""
        iobinding.results = self.run(iobinding.wanted, iobinding.inputs, run_options)

    def run_async(
        self: Runs, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
        callback: Callable[[list[Any] | None, Any, str], None], user_data: Any, run_options: Any = None,
    ) -> None:  # fmt: skip
        """`run` in a thread of its own; `callback(results, user_data, error)`: the error is a text, "" for none."""

        def work() -> None:
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as error:  # the caller is elsewhere by now: it is told by the callback
                callback(None, user_data, str(error))
            else:
                callback(results, user_data, "")

        threading.Thread(target=work, name="onnxhw run_async").start()

    def end_profiling(self) -> str:
        """The name of the profile's file: none, for `enable_profiling` is refused."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        """0: nothing is profiled, as in onnxruntime without `enable_profiling`."""
        return 0

    def disable_fallback(self) -> None:
        """Nothing: there is no other provider to fall back to, and errors are raised."""

    enable_fallback = disable_fallback

    def get_tuning_results(self) -> list[Any]:
        """None: there are no kernels to tune."""
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Accepted; changes nothing."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing: no graph is captured."""

    create_ortvalue_from_shape_and_type = refused(
        "memory of a session's provider", "OrtValue.ortvalue_from_shape_and_type(shape, type)"
    )
    run_with_ortvaluevector = refused("a vector of values", "run_with_ort_values(names, values)")
    get_input_memory_infos = refused("a description of memory", "all arrays are in this process's memory")
    get_output_memory_infos = get_input_memory_infos
    get_input_epdevices = refused("a list of onnxruntime's devices", "get_provider_options() names the device")
    get_provider_graph_assignment_info = refused("a list of nodes by provider", "onnxhw check says where nodes run")
    set_ep_dynamic_options = refused("changing a provider's options", "make another session")
