"""Execution providers by onnxruntime's names, the settings of its module, and what is refused of its interface."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UsageError

PROVIDER = "OnnxhwExecutionProvider"
"""What runs the hardware's operations: a device, the RTL, or the integers of the golden model."""
CPU_PROVIDER = "CPUExecutionProvider"
"""What runs the host's nodes."""


class MissingInputError(UsageError, ValueError):
    """An input that a run needs was not given; a ValueError as well, which onnxruntime raises then."""


def chosen_providers(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> None:
    """Check what a script asks for as onnxruntime does: providers that are not there give a warning.

    `UsageError` E2590: another number of options than of providers, something that is no name, or options for the
    hardware, which are parameters of the session.
    """
    asked = list(providers or [])
    if options is not None and len(options) != len(asked):
        raise UsageError("E2590", f"{len(options)} provider_options for {len(asked)} providers")
    pairs = [(one, {}) if isinstance(one, str) else one for one in asked]
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise UsageError("E2590", "a provider must be a name, or a pair of a name and options", hint=PROVIDER)
    for (name, inline), given in zip(pairs, options or [{}] * len(pairs), strict=True):
        if name == PROVIDER and (inline or given):
            what = f"{PROVIDER} has no options"
            raise UsageError("E2590", what, hint="InferenceSession(model, device=..., config=..., board=...)")
        if name not in get_available_providers():
            warnings.warn(
                f"provider {name!r} is not available here; available: {', '.join(get_available_providers())}",
                stacklevel=4,
            )


def get_available_providers() -> list[str]:
    """The providers that `InferenceSession` knows."""
    return [PROVIDER, CPU_PROVIDER]


get_all_providers = get_available_providers


def get_device() -> str:
    """Where results lie: always "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted; this package has no logger of its own."""


set_default_logger_verbosity = set_default_logger_severity


def disable_telemetry_events() -> None:
    """Accepted; this package has no telemetry, and keeps onnxruntime from its own."""


enable_telemetry_events = disable_telemetry_events


def set_seed(seed: int) -> None:
    """Accepted with a warning: only the attribute `seed` of a random operator decides what it gives."""
    warnings.warn("set_seed changes nothing: a random operator has its own seed, as an attribute", stacklevel=2)


def unsupported(what: str, hint: str) -> UsageError:
    """E2591 for a part of onnxruntime's interface that has no meaning here."""
    return UsageError("E2591", f"{what} is not supported", hint=hint)


def refused(what: str, hint: str) -> Callable[..., Any]:
    """A method that raises `unsupported`, whatever it is called with."""

    def method(*_: Any, **__: Any) -> Any:
        raise unsupported(what, hint)

    method.__doc__ = f"`UsageError` E2591: {what}."
    return method
