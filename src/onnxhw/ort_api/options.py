"""`SessionOptions` and `RunOptions` by onnxruntime's names. What only tunes onnxruntime changes nothing here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any

import onnx

from ..errors import UsageError
from .providers import chosen_providers, refused, unsupported


class GraphOptimizationLevel(Enum):
    """onnxruntime's levels; they change nothing here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """onnxruntime's modes; they change nothing here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """onnxruntime's orders; they change nothing here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class TypedFields:
    """Attributes as onnxruntime's classes have them: `AttributeError` for another name, `TypeError` for another type.

    What they take, they convert: a flag any number, a number what is none of floats, a text bytes.
    """

    def __setattr__(self, name: str, value: object) -> None:
        kinds = {one.name: one.default for one in fields(self)}  # type: ignore[arg-type]
        if name not in kinds:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        object.__setattr__(self, name, _converted(name, value, kinds[name]))


def _converted(name: str, value: Any, like: object) -> object:
    """A value of the type of the default `like`; onnxruntime's own enumerations stand for ours."""
    if isinstance(like, bool) and (value is None or hasattr(type(value), "__bool__")):
        return bool(value)
    whole = hasattr(type(value), "__int__") and not isinstance(value, float)
    if isinstance(like, int) and not isinstance(like, bool) and whole:
        return int(value)
    if isinstance(like, str) and isinstance(value, str | bytes):
        return value if isinstance(value, str) else value.decode()
    if isinstance(like, Enum) and type(value).__name__ == type(like).__name__ and hasattr(value, "name"):
        return type(like)[value.name]
    if like is MISSING:  # a dictionary or list of ours
        return value
    raise TypeError(f"{name} must be {type(like).__name__}, not {type(value).__name__}")


@dataclass
class SessionOptions(TypedFields):
    """Options of a session, by onnxruntime's names and with its defaults.

    Sizes given by `add_free_dimension_override_by_name` are used. Threads, levels, memory and logging change nothing.
    `UsageError` E2591 for a profile, an optimised model to be written, and custom operators.
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
    execution_order: Any = ExecutionOrder.DEFAULT
    graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    sizes: dict[str, int] = field(default_factory=dict)
    """Dimensions by symbol, from `add_free_dimension_override_by_name`."""
    entries: dict[str, str] = field(default_factory=dict)
    """What `add_session_config_entry` was given."""
    denoted: dict[str, int] = field(default_factory=dict)
    """Dimensions by denotation, from `add_free_dimension_override_by_denotation`."""
    providers: list[str] = field(default_factory=list)
    """What `add_provider` was given."""

    def add_provider(self, provider: str, options: Mapping[str, Any] | None = None) -> None:
        """As `providers` of the session, which checks it the same way."""
        chosen_providers([provider], [options or {}])
        self.providers.append(provider)

    def has_providers(self) -> bool:
        """Whether `add_provider` was called."""
        return bool(self.providers)

    def add_free_dimension_override_by_denotation(self, dim_denotation: str, dim_value: int) -> None:
        """The size of the dynamic dimensions of inputs that the model denotes so, as DATA_BATCH."""
        self.denoted[dim_denotation] = int(dim_value)

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """The size of a dynamic dimension."""
        self.sizes[dim_name] = int(dim_value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Note a setting; it changes nothing."""
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A setting that was noted; `UsageError` E2592 if there is none."""
        if key not in self.entries:
            raise UsageError("E2592", f"there is no session configuration entry {key!r}")
        return self.entries[key]

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """`UsageError` E2591 for True: nothing can cancel reading a model."""
        if cancel:
            raise unsupported("cancelling a session that is made", "make it in a process of its own")

    def clear_ep_context_data_read_func(self) -> None:
        """Nothing: there is none."""

    register_custom_ops_library = refused("a library of custom operators", "write them as functions of the model")
    add_initializer = refused("an initializer in the options", "feed it to run: initializers that are inputs can be")
    add_external_initializers = refused("initializers in the options", "put their values into the model")
    add_external_initializers_from_files_in_memory = refused("external data in memory", "put it into the model")
    add_provider_for_devices = refused("onnxruntime's devices", "InferenceSession(model, device=...)")
    set_provider_selection_policy = refused("a policy that selects providers", "InferenceSession(model, prefer=...)")
    set_provider_selection_policy_delegate = set_provider_selection_policy
    set_ep_context_data_read_func = refused("contexts of other providers", "give the model that they were made of")


@dataclass
class RunOptions(TypedFields):
    """Options of a run, by onnxruntime's names; but for `terminate`, which is refused, they change nothing."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    entries: dict[str, str] = field(default_factory=dict)
    """What `add_run_config_entry` was given."""

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Note a setting; it changes nothing."""
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """A setting that was noted; `UsageError` E2592 if there is none."""
        if key not in self.entries:
            raise UsageError("E2592", f"there is no run configuration entry {key!r}")
        return self.entries[key]

    add_active_adapter = refused("a LoRA adapter", "merge it into the model")


def sizes_of(options: Any, inputs: Callable[[], Sequence[onnx.ValueInfoProto]]) -> dict[str, int]:
    """The sizes of open dimensions of a model's inputs that session options give, as `shapes` of a session has them.

    Options may be ours, onnxruntime's own (whose overrides cannot be read back, so their names are unknown), or None.
    Names and denotations that no input has are ignored, as onnxruntime does. `inputs` is asked if there are any.
    `UsageError` E2590 for something else, as a device given in their place; E2591 for options that ask for files.
    """
    if options is None:
        return {}
    if not hasattr(options, "graph_optimization_level"):
        what = f"sess_options must be SessionOptions, not {type(options).__name__}"
        raise UsageError("E2590", what, hint="a device is given by name: InferenceSession(model, device=...)")
    if options.enable_profiling:
        raise unsupported("enable_profiling", "InferenceSession.profile() gives the cycles of each layer")
    if options.optimized_model_filepath:
        raise unsupported("optimized_model_filepath", "onnxhw compile writes what is made of a model")
    if not isinstance(options, SessionOptions) or not (options.sizes or options.denoted):
        return {}
    sizes = {}
    for value in inputs():
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            key = dim.dim_param or f"{value.name}:{axis}"
            if dim.HasField("dim_value"):
                continue
            if dim.denotation in options.denoted:
                sizes[key] = options.denoted[dim.denotation]
            if dim.dim_param in options.sizes:
                sizes[key] = options.sizes[dim.dim_param]
    return sizes


def check_run_options(options: Any) -> None:
    """`UsageError` E2590 for what is no `RunOptions`, ours or onnxruntime's; E2591 for a run that is to terminate."""
    if options is None:
        return
    if not hasattr(options, "terminate"):
        raise UsageError("E2590", f"run_options must be RunOptions, not {type(options).__name__}")
    if options.terminate:
        raise unsupported("RunOptions.terminate", "end the process, or run fewer samples at a time")
