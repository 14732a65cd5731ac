"""What mutants of files are made of: damaged bytes, other numbers, other JSON."""

import json
import random
from dataclasses import dataclass
from typing import Any

EDGES = (0, 1, 2, 3, 127, 128, 255, 256, 4095, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
"""Numbers at which something changes."""
TEXTS = ("", "a", "\0", "../x", "é\n", "x" * 5000, "[" * 3000, "NaN", "1e999", "-1", "null", "{}", "int64", "float16")


@dataclass(frozen=True)
class Base:
    """What mutants are made of: programs by name, a board file, a manifest and its simulations, arrays."""

    programs: tuple[bytes, ...]
    board: str
    manifest: str
    simulations: str
    arrays: tuple[bytes, ...]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut, repeated or put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + rng.randint(1, 16)]
        elif kind == 3:
            out[at:at] = out[at : at + rng.randint(1, 64)]
        else:
            out[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(out)


def number(value: int, bits: int, rng: random.Random) -> int:
    """Another number of so many bits."""
    others = value + 1, value - 1, value * 2, value ^ 1 << rng.randrange(bits), rng.choice(EDGES)
    return rng.choice(others) % (1 << bits)


def json_text(text: str, rng: random.Random) -> str:
    """A JSON text with one value changed; or damaged."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # of an earlier change
        return text
    if rng.random() < 0.15:
        return damaged(text.encode(), rng).decode("utf-8", "replace")
    return json.dumps(_changed(found, rng))


def _changed(value: Any, rng: random.Random) -> Any:
    """A value like it, with something changed at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        kind = rng.randrange(10)
        if kind == 0:
            return {name: item for name, item in value.items() if name != key}
        if kind == 1:
            return {**value, rng.choice(TEXTS): value[key]}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    others: list[Any] = [None, True, False, [], {}, [1], {"a": 1}, -1, 0, 1, 1 << 31, 1 << 70, 0.5, -1e308,
                         float("nan"), float("inf"), rng.choice(TEXTS), "x", "\ud800", [[]]]  # fmt: skip
    if type(value) is int:
        others += [value + 1, value - 1, value * 2, -value] * 3
    if type(value) is str:
        others += [value + "x", value[:-1], value.upper()] * 3
    return rng.choice(others)
