"""What the JSON files of an output directory may hold; they may have been edited, or come from somebody else.

A form is a type, a list of one form for a list of such, or a dict: of the key ``*`` for any keys, else of keys that
must be there. Keys that no form knows are kept as they are.
"""

from collections.abc import Mapping
from typing import Any

Form = Any
LARGEST = 1 << 53
"""Numbers are below: a float holds them."""
MANIFEST: dict[str, Form] = {
    "schema": int, "board": str, "device": str, "preset": str, "config": str, "model_sha256": str, "design": str,
    "clock_hz": int, "baud": int, "seed": int, "fmax_mhz": float, "timing_met": bool, "critical_path": str,
    "deterministic": bool, "tools": {"*": str}, "resources": {"*": {"used": int, "available": int}},
    "clocks": {"*": {"*": float}}, "shapes": [str], "limits": [str], "exact_softmax": bool,
    "preprocess": {"*": object}, "choice": {"*": object}, "files": {"*": str},
}  # fmt: skip
"""Fields of a manifest (`onnxhw.build.manifest.Manifest`), each of which may be missing."""
SIMULATION: dict[str, Form] = {
    "engine": str, "inferences": int, "reference": str, "equal": bool, "predicted_cycles": int, "program_sha256": str,
}  # fmt: skip
"""Fields that a simulation's record must have; its `cycles` and `part_cycles` may be numbers or null."""


def wrong_manifest(record: Any) -> str:
    """What is wrong with a manifest, empty if nothing is."""
    if not isinstance(record, dict):
        return f"must be an object, not {record!r:.40}"
    known = ((name, form) for name, form in MANIFEST.items() if name in record)
    return next((why for name, form in known if (why := _wrong(name, record[name], form))), "")


def wrong_simulations(records: Any) -> str:
    """What is wrong with the list of simulations, empty if nothing is."""
    if not isinstance(records, list):
        return f"must be a list, not {records!r:.40}"
    for record in records:
        if why := _wrong("a record", record, SIMULATION):
            return why
        if "cycles" not in record:
            return "a record has no 'cycles'"
        runs = record.get("part_cycles")
        counts = [record["cycles"], *(runs if isinstance(runs, list) else [runs])]
        if why := next((why for count in counts if count is not None and (why := _wrong("cycles", count, int))), ""):
            return why
    return ""


def _wrong(name: str, value: Any, form: Form) -> str:
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{name} must be a list, not {value!r:.40}"
        return next((why for item in value if (why := _wrong(f"an item of {name}", item, form[0]))), "")
    if isinstance(form, dict):
        return _wrong_keys(name, value, form)
    if form in (int, float):
        kinds = (int,) if form is int else (int, float)
        if type(value) not in kinds or not 0 <= value < LARGEST:
            return f"{name} must be a number of 0 or more, not {value!r:.40}"
    elif not isinstance(value, form):
        return f"{name} must be of type {form.__name__}, not {value!r:.40}"
    return ""


def _wrong_keys(name: str, value: Any, form: Mapping[str, Form]) -> str:
    if not isinstance(value, dict):
        return f"{name} must be an object, not {value!r:.40}"
    if missing := set(form) - set(value) - {"*"}:
        return f"{name} has no {min(missing)!r}"
    pairs = ((key, form[key] if key in form else form.get("*", object)) for key in value)
    return next((why for key, kind in pairs if (why := _wrong(f"{name}.{key}", value[key], kind))), "")
