"""A critical path in words: which blocks and registers it lies between, what it spends its time on, what would help."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BLOCKS = (
    (r"core\.array\.array\.pe_(\d+)_(\d+)", "element {0} of array column {1}", "rows, cols"),
    (r"core\.array\.array\.products_(\d+)", "element {0} of the activation products", "rows, cols"),
    (r"core\.array\.array", "the systolic array", "rows, cols"),
    (r"core\.array\.accumulators", "the accumulators", "cols, acc_depth"),
    (r"core\.depthwise\.window", "the depthwise unit's window", "depthwise, cols"),
    (r"core\.depthwise\.counter", "the depthwise unit's window counter", "depthwise"),
    (r"core\.depthwise\.sums", "the depthwise unit's sums", "window_depth"),
    (r"core\.depthwise", "the depthwise unit", "depthwise"),
    (r"core\.array\.loops", "the array unit's address loops", ""),
    (r"core\.array", "the array unit", ""),
    (r"core\.vector\.lane_(\d+)", "requantizer lane {0}", "lanes"),
    (r"core\.vector\.reduce", "the window reduction", "word"),
    (r"core\.vector\.params", "the parameter memory", "param_depth"),
    (r"core\.vector\.tables", "the tables", "tables"),
    (r"core\.vector\.(?:out_)?loops", "the vector unit's address loops", ""),
    (r"core\.vector", "the vector unit", "lanes"),
    (r"core\.load", "the weight memory", "weight_depth"),
    (r"core\.act", "the activation memory", "act_depth, word"),
    (r"core\.(\w+)_fetch", "the {0} unit's fetcher", "{0}_ucode"),
    (r"core\.control", "the run control", ""),
    (r"core", "the core's host port", ""),
    (r"loader", "the link", ""),
    (r"receiver|transmitter", "the serial line", ""),
    (r"autorun", "the start from the bitstream", ""),
)
"""Place in the design, below the device; its name; the fields of `HwConfig` that make it smaller when lowered."""
DEVICE = re.compile(r"^(?:\w+\.)*?device\.")


@dataclass(frozen=True)
class CellNames:
    """What a family's tools call cells and pins."""

    suffix: re.Pattern[str]
    """What Yosys and nextpnr put behind the name of a signal to name a cell."""
    inputs: Mapping[str, str]
    """Pins worth telling, in words."""


KINDS = (
    (r"(?:^|\.)cell$", "a multiplier"),
    (r"(?:^|\.)tile_(\d+)$", "block RAM {0}"),
)
"""Cells that are no registers, by the end of the names that the RTL gives them."""


def block_of(name: str) -> tuple[str, str, str]:
    """The block that a cell or net lies in, the rest of its name, and what to lower to make the block smaller."""
    inner = DEVICE.sub("", name)
    for pattern, words, smaller in BLOCKS:
        found = re.match(rf"(?:{pattern})(?=\.|$)", inner)
        if found:
            rest, groups = inner[found.end() :].removeprefix("."), found.groups()
            return words.format(*groups), rest, smaller.format(*groups)
    return "the board's surroundings", inner, ""


def end_of(name: str, port: str, names: CellNames) -> str:
    """One end of a path: the register (or multiplier, or block RAM), which input of it, and its block."""
    block, rest, _ = block_of(names.suffix.sub("", name))
    what = next(
        (words.format(*found.groups()) for kind, words in KINDS if (found := re.search(kind, rest))),
        f"register {rest}" if rest else "a register",
    )
    return f"{what}{f' ({names.inputs[port]})' if port in names.inputs else ''} of {block}"


def describe_path(path: list[dict[str, Any]], names: CellNames) -> str:
    """A critical path, as nextpnr's report has it, in a sentence or two; empty where there is none.

    From which register to which, of which blocks; nanoseconds in logic and wires; the longest wire and how far it goes.
    """
    if not path:
        return ""
    wires = [segment for segment in path if segment["type"] == "routing"]
    total = sum(float(segment["delay"]) for segment in path)
    routing = sum(float(segment["delay"]) for segment in wires)
    levels = sum(segment["type"] == "logic" and float(segment["delay"]) > 0.1 for segment in path)
    first, last = path[0]["from"], path[-1]["to"]
    text = (
        f"{total:.2f} ns from {end_of(first['cell'], '', names)} to "
        f"{end_of(last['cell'], path[-1]['from']['port'], names)}: "
        f"{total - routing:.2f} ns in {levels} level{'' if levels == 1 else 's'} of logic and the cells at both ends, "
        f"{routing:.2f} ns in wires"
    )
    if not wires:
        return text
    longest = max(wires, key=lambda segment: float(segment["delay"]))
    start, stop = longest["from"].get("loc"), longest["to"].get("loc")
    far = f", over {abs(start[0] - stop[0])} columns and {abs(start[1] - stop[1])} rows" if start and stop else ""
    return f"{text}; longest wire {float(longest['delay']):.2f} ns{far}"


def remedy(path: list[dict[str, Any]], names: CellNames) -> str:
    """What would help, by where the path spends its time and which blocks it joins."""
    total = sum(float(segment["delay"]) for segment in path)
    routing = sum(float(segment["delay"]) for segment in path if segment["type"] == "routing")
    ends = [path[0]["from"]["cell"], path[-1]["to"]["cell"]] if path else []
    lower = dict.fromkeys(name for end in ends for name in block_of(names.suffix.sub("", end))[2].split(", ") if name)
    less = f"lower {', '.join(lower)} in the preset" if lower else "a smaller preset"
    if routing > 0.6 * total:
        return f"mostly wires: other placements (--seeds 10), a lower clock (--freq), or {less}"
    return f"mostly logic, which placement cannot change: a lower clock (--freq), or {less}"
