"""The protobuf wire format, as far as it must be known before the protobuf library may allocate.

`walk` follows tags and lengths only. It finds where a file is cut, how deep its messages lie in each other, how many
fields there are (each costs the library far more memory than the two bytes it takes in a file), and the outermost.
"""

from dataclasses import dataclass, field
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(Exception):
    """The bytes are not a protobuf message."""


class TooManyFieldsError(Exception):
    """More fields than allowed."""


@dataclass
class MessageFields:
    """The fields of a message type that are messages themselves, by number."""

    name: str
    children: dict[int, "MessageFields"] = field(default_factory=dict)


@dataclass
class Outline:
    """What `walk` found: numbers of the outermost fields in order, all fields counted, the deepest message."""

    top: list[int]
    fields: int
    depth: int


def table(descriptor: Any, seen: dict[str, MessageFields] | None = None) -> MessageFields:
    """The table of a protobuf descriptor; types that contain themselves are loops in it."""
    seen = {} if seen is None else seen
    if descriptor.full_name not in seen:
        found = seen[descriptor.full_name] = MessageFields(descriptor.name)
        for entry in descriptor.fields:
            if entry.message_type is not None:
                found.children[entry.number] = table(entry.message_type, seen)
    return seen[descriptor.full_name]


def walk(data: bytes, root: MessageFields, most: int, *, deep: bool) -> Outline:
    """The outline of a message, with the messages in it if `deep`.

    `WireError` says what is wrong and at which byte; `TooManyFieldsError` beyond `most` fields.
    """
    at, size = 0, len(data)
    stack: list[tuple[int, MessageFields]] = [(size, root)]
    top: list[int] = []
    count, depth = 0, 1
    while stack:
        end, here = stack[-1]
        if at == end:
            stack.pop()
            continue
        count += 1
        if count > most:
            raise TooManyFieldsError
        start = at
        tag = data[at]  # nearly all tags and lengths are of one byte
        at += 1
        if tag > 127:
            tag, at = _varint(data, start, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError(f"field 0 at byte {start}")
        if len(stack) == 1:
            top.append(number)
        if kind == VARINT:
            _, at = _varint(data, at, end)
        elif kind == BYTES:
            if at < end and data[at] < 128:
                length = data[at]
                at += 1
            else:
                length, at = _varint(data, at, end)
            if length > end - at:
                raise WireError(
                    f"field {number} of {here.name} at byte {start} is {length} bytes long, {end - at} are left"
                )
            child = here.children.get(number) if deep else None
            if child is None:
                at += length
            else:
                stack.append((at + length, child))
                depth = max(depth, len(stack))
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
            if at > end:
                raise WireError(f"field {number} of {here.name} at byte {start} is cut")
        else:
            raise WireError(f"field {number} of {here.name} at byte {start} has the wire type {kind}")
    return Outline(top, count, depth)


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    low, more = value & 127, value >> 7
    return bytes([low | 128]) + varint(more) if more else bytes([low])


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A variable-length integer and where it ends."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise WireError(f"a number longer than 64 bits at byte {at}")
    raise WireError(f"a number that is cut at byte {at}")
