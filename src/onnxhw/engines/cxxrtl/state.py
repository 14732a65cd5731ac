"""The registers of a generated design: present and next values apart, so that a clock edge is one copy.

CXXRTL declares a register as ``wire<N>``, which holds both. Here the struct of the top module gets

    struct registers { value<8> p_a; value<1> p_b; ... } now, next;

and ``p_a.curr`` becomes ``now.p_a``, ``p_a.next`` becomes ``next.p_a``, in all the text. Initial values are written as
numbers, which compile faster than constructors.
"""

import re
from collections.abc import Iterable

from .expression import FormError

REGISTER = re.compile(r"^\t(?:/\*output\*/ )?wire<(\d+)> (\w+)(?: \{[^;]*\})?;\n", re.M)
_COMMIT = re.compile(r"\t\tif \((\w+)\.commit\(observer\)\) changed = true;\n")
_CHANGED = "\t\tbool changed = false;\n"
_PREVIOUS = re.compile(r"\t\t(prev_\w+ = \w+;)\n")
_HALF = re.compile(r"\b(\w+)\.(curr|next)\b")
_RESET = re.compile(r"^\t(\w+) = wire<(\d+)>\{([^}]*)\};\n", re.M)
_MEMORY = re.compile(
    r"\tstatic const value<(?P<bits>\d+)> (?P<name>mem_init_\d+)\[(?P<depth>\d+)\] \{\n(?P<words>.*?)\n\t\};\n"
    r"\tstd::copy\(std::begin\((?P=name)\), std::end\((?P=name)\), &(?P<memory>memory_\w+)\.data\[0\]\);\n",
    re.S,
)
_WORD = re.compile(r"value<\d+>\{([^}]*)\}")
_TEXT = r'"(?:[^"\\]|\\.)*"'
_ITEM = re.compile(
    rf"^\t\titems->add\(path, (?P<path>{_TEXT}),\s+(?:/\*.*\*/\s+)?(?P<about>{_TEXT}), (?P<alias>debug_alias\(\), )?"
    r"(?P<name>\w+)(?:, 0)?(?:, (?P<flags>[\w:|]+))?\);\n",
    re.M,
)

ITEMS = """\
		static const struct { const char *path, *about; size_t bits, word; uint32_t flags; } items_of_registers[] = {
%s		};
		for (auto &row : items_of_registers) {
			cxxrtl_object object = {};
			object.type = debug_item::WIRE;
			object.flags = row.flags;
			object.width = row.bits;
			object.depth = 1;
			object.curr = (uint32_t*)&now + row.word;
			object.next = (uint32_t*)&next + row.word;
			items->add(path + row.path, debug_item(object), metadata::deserialize(row.about));
		}
"""


def registers_of(header: str) -> dict[str, int]:
    """The registers' bits, by name."""
    found = {match[2]: int(match[1]) for match in REGISTER.finditer(header)}
    if not found or not found.keys() <= set(_COMMIT.findall(header)):
        raise FormError("wires and commit differ")
    if header.count(_CHANGED) != 1:
        raise FormError("not exactly one commit")
    return found


def places(registers: dict[str, int]) -> dict[str, int]:
    """The 32-bit word at which each register begins in its struct."""
    found, at = {}, 0
    for name, bits in registers.items():
        found[name] = at
        at += -(-bits // 32)
    return found


def renamed(text: str, registers: Iterable[str]) -> str:
    """The text with present and next values of the registers in their new places."""
    known = frozenset(registers)

    def place(match: re.Match[str]) -> str:
        if match[1] not in known:
            return match[0]
        return f"{'now' if match[2] == 'curr' else 'next'}.{match[1]}"

    return _HALF.sub(place, text)


def declared(header: str, registers: dict[str, int]) -> str:
    """The header with the registers in two structs, and a ``commit`` that copies one to the other."""
    lines = "".join(f"\t\tvalue<{bits}> {name};\n" for name, bits in registers.items())
    first = REGISTER.search(header)
    assert first is not None
    struct = f"\tstruct registers {{\n{lines}\t}} now, next;\n"
    header = header[: first.start()] + struct + REGISTER.sub("", header[first.start() :])
    copy = (
        "\t\tif (memcmp((void*)&now, (void*)&next, sizeof(now))) changed = true;\n"
        "\t\tmemcpy((void*)&now, (void*)&next, sizeof(now));\n"
    )
    start = header.index(_CHANGED) + len(_CHANGED)
    rest = _COMMIT.sub(lambda match: "" if match[1] in registers else match[0], header[start:])
    return header[:start] + copy + rest


def latch(header: str, registers: dict[str, int]) -> str:
    """What ``commit`` does, without comparing old and new: the body of a function."""
    lines = ["\tobserver observer;", "\t(void)observer;", "\tmemcpy((void*)&now, (void*)&next, sizeof(now));"]
    lines += [f"\t{name}.commit(observer);" for name in _COMMIT.findall(header) if name not in registers]
    lines += [f"\t{text}" for text in _PREVIOUS.findall(header)]
    return "\n".join(lines) + "\n"


def cold(text: str, registers: dict[str, int]) -> str:
    """Reset and debug information in terms of the two structs, without long initializers."""
    end = text.index("\n}\n", text.index("::reset() {")) + 1
    reset, rest = text[:end], text[end:]
    words = places(registers)
    reset = reset.replace("::reset() {\n", "::reset() {\n\tmemset((void*)&now, 0, sizeof(now));\n", 1)
    reset = _RESET.sub(lambda match: _initial(match, registers), _MEMORY.sub(_filled, reset))
    rows = ""
    for match in _ITEM.finditer(rest):
        name = match["name"]
        if name in registers and not match["alias"]:
            row = (match["path"], match["about"], str(registers[name]), str(words[name]), match["flags"] or "0")
            rows += f"\t\t\t{{{', '.join(row)}}},\n"
    rest = _ITEM.sub(lambda match: _item(match, registers), rest)
    if rows:
        place = rest.index("\tif (items) {\n") + len("\tif (items) {\n")
        rest = rest[:place] + ITEMS % rows + rest[place:]
    return renamed(reset + "\tnext = now;\n" + rest, registers)


def _numbers(text: str) -> list[int]:
    return [int(word.strip().rstrip("u"), 0) for word in text.split(",")]


def _initial(match: re.Match[str], registers: dict[str, int]) -> str:
    if match[1] not in registers:
        return match[0]
    return f"\tnow.{match[1]} = value<{match[2]}>{{{match[3]}}};\n" if any(_numbers(match[3])) else ""


def _filled(match: re.Match[str]) -> str:
    chunks = -(-int(match["bits"]) // 32)
    words: list[int] = []
    for found in _WORD.finditer(match["words"]):
        numbers = _numbers(found[1])
        words += numbers + [0] * (chunks - len(numbers))
    if len(words) != chunks * int(match["depth"]):
        raise FormError(match["name"])
    at = f"(void*){match['memory']}.data.get()"
    if not any(words):
        return f"\tmemset({at}, 0, {4 * len(words)});\n"
    name, listed = match["name"], ", ".join(f"{word:#x}u" for word in words)
    return f"\tstatic const uint32_t {name}[] = {{{listed}}};\n\tmemcpy({at}, {name}, {4 * len(words)});\n"


def _item(match: re.Match[str], registers: dict[str, int]) -> str:
    if match["name"] not in registers:
        return match[0]
    if match["alias"]:
        return f"\t\titems->add(path, {match['path']}, {match['about']}, debug_alias(), now.{match['name']}, 0);\n"
    return ""
