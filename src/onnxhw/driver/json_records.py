"""What the JSON files of an output directory may hold; they may have been edited, or come from somebody else.

A form is a type, a compiled regular expression for texts, a range for whole numbers, a function that says what is
wrong, a list of one form for a list of such, or a dict: of the key ``*`` for any keys, else of keys that must be there.
Keys that no form knows are kept as they are.
"""

import re
from collections.abc import Mapping
from typing import Any

from ..board import SENSORS
from ..board_tables import BAUD
from ..errors import short
from ..preprocess import Preprocess

Form = Any
SCHEMA = 1
"""Version of the manifest's form."""
CLOCK = range(1, 10**9 + 1)
"""Clocks of a core, in Hz."""
HASH = re.compile("[0-9a-f]{64}")


def _wrong_preprocess(record: Any) -> str:
    """`Preprocess.record`: nothing, or its four fields, with numbers that are numbers."""
    if record == {}:
        return ""
    form = {"scale": float, "mean": [float], "std": [float], "layout": str}
    if why := _wrong("preprocess", record, form, least=-LARGEST):
        return why
    try:
        Preprocess.from_record(record)
    except ValueError as error:
        return str(error)
    return ""


def _wrong_choice(record: Any) -> str:
    """`onnxhw.cli.common.placement_options.PlacementOptions.record`, or nothing."""
    if record == {}:
        return ""
    if why := _wrong("choice", record, {"prefer": re.compile("speed|hardware"), "rates": object}):
        return why
    if record["rates"] is None:
        return ""
    return _wrong("choice.rates", record["rates"], {"baud": BAUD, "clock_hz": CLOCK})


def _wrong_boot(record: Any) -> str:
    """`onnxhw.build.manifest.Manifest.boot`, or nothing."""
    return "" if record == {} else _wrong("boot", record, {"offset": int, "bytes": int, "seconds": float})


LARGEST = 1 << 53
"""Numbers are below: a float holds them."""
MANIFEST: dict[str, Form] = {
    "schema": range(SCHEMA, SCHEMA + 1), "board": str, "device": str, "preset": str,
    "config": re.compile("([0-9a-f]{16})?"), "model_sha256": re.compile("([0-9a-f]{64})?"),
    "design": re.compile("([0-9a-f]{16,})?"), "clock_hz": range(CLOCK.stop), "baud": (range(1), BAUD), "seed": int,
    "link": re.compile("(uart|usb)?"), "input": re.compile(f"({'|'.join(SENSORS)})?"),
    "fmax_mhz": float, "timing_met": bool, "critical_path": str, "deterministic": bool, "tools": {"*": str},
    "resources": {"*": {"used": int, "available": int}}, "clocks": {"*": {"*": float}},
    "shapes": [re.compile(".+=[0-9]{1,18}", re.DOTALL)], "limits": [re.compile(r"[a-z_ -]+=\s*[0-9_,]+\s*")],
    "exact_softmax": bool, "persist": [re.compile(".+=.+", re.DOTALL)],
    "preprocess": _wrong_preprocess, "choice": _wrong_choice, "files": {"*": HASH},
    "boot": _wrong_boot,
}  # fmt: skip
"""Fields of a manifest (`onnxhw.build.manifest.Manifest`), each of which but `schema` may be missing."""
SIMULATION: dict[str, Form] = {
    "engine": str, "inferences": int, "reference": str, "equal": bool, "predicted_cycles": int, "program_sha256": str,
}  # fmt: skip
"""Fields that a simulation's record must have; its `cycles` and `part_cycles` may be numbers or null."""


def wrong_manifest(record: Any) -> str:
    """What is wrong with a manifest, empty if nothing is."""
    if not isinstance(record, dict):
        return f"must be an object, not {short(record)}"
    if "schema" not in record:
        return "has no schema"
    known = ((name, form) for name, form in MANIFEST.items() if name in record)
    return next((why for name, form in known if (why := _wrong(name, record[name], form))), "")


def wrong_simulations(records: Any) -> str:
    """What is wrong with the list of simulations, empty if nothing is."""
    if not isinstance(records, list):
        return f"must be a list, not {short(records)}"
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


def _wrong(name: str, value: Any, form: Form, least: int = 0) -> str:
    """What is wrong with a value of a form, empty if nothing is; numbers are `least` or more."""
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{name} must be a list, not {short(value)}"
        return next((why for item in value if (why := _wrong(f"an item of {name}", item, form[0], least))), "")
    if isinstance(form, dict):
        return _wrong_keys(name, value, form, least)
    if isinstance(form, re.Pattern):
        fits = isinstance(value, str) and form.fullmatch(value) is not None
        return "" if fits else f"{name} must match {form.pattern}, not {short(value)}"
    if isinstance(form, range | tuple):
        ranges = form if isinstance(form, tuple) else (form,)
        fits = type(value) is int and any(value in one for one in ranges)
        words = " or ".join(f"{one[0]:,}..{one[-1]:,}" if len(one) > 1 else str(one[0]) for one in ranges)
        return "" if fits else f"{name} must be {words}, not {short(value)}"
    if form in (int, float):
        kinds = (int,) if form is int else (int, float)
        if type(value) not in kinds or not least <= value < LARGEST:
            return f"{name} must be a number{' of 0 or more' if not least else ''}, not {short(value)}"
        return ""
    if isinstance(form, type):
        return "" if isinstance(value, form) else f"{name} must be of type {form.__name__}, not {short(value)}"
    return str(form(value))


def _wrong_keys(name: str, value: Any, form: Mapping[str, Form], least: int) -> str:
    if not isinstance(value, dict):
        return f"{name} must be an object, not {short(value)}"
    if missing := set(form) - set(value) - {"*"}:
        return f"{name} has no {min(missing)!r}"
    pairs = ((key, form[key] if key in form else form.get("*", object)) for key in value)
    return next((why for key, kind in pairs if (why := _wrong(f"{name}.{short(key)}", value[key], kind, least))), "")
