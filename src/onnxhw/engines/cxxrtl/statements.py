"""Statements of the C++ that CXXRTL writes, in plain machine words.

CXXRTL's ``value<N>`` computes through templates on arrays of 32-bit chunks; a slice of a wide value shifts all of it,
and an assignment to a slice rebuilds all of it. Here each statement whose expressions have a tree (`expression`)
becomes C on words of 32 or 64 bits,

    p_sum.next = add_uu<17>(p_sum.curr, p_a.curr).slice<15,0>().val();
    p_sum.next.data[0] = ((p_sum.curr.data[0] + p_a.curr.data[0]) & 0xffffu);

a local that is assigned in slices becomes a local per slice, and one that only names bits of another variable becomes
those bits. Other statements stay as they are.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from .expression import (
    Bits,
    CellOperation,
    Conditional,
    Constant,
    FormError,
    Join,
    Reader,
    ResultBits,
    Tree,
    join,
    select,
    variables,
)
from .words import assign, truth

INLINED = 16
"""Variables in a tree that may take the place of a local that is used once."""
_ASSIGNMENT = re.compile(
    r"(?:\tif \((?P<edge>(?:pos|neg)edge_\w+)\) \{\n\t)?\t(?P<name>\w+(?:\.next)?)"
    r"(?:\.slice<(?P<high>\d+)(?:,(?P<low>\d+))?>\(\))?"
    r" = (?P<value>.*);(?:\n\t\})?"
)
_WRITE = re.compile(
    r"(?P<start>\tif \((?:pos|neg)edge_\w+\) \{\n)"
    r"(?P<index>\t\tauto tmp_\d+ = memory_index\((?P<address>.*), 0, \d+\);\n)"
    r"\t\tCXXRTL_ASSERT\(.*\);\n(?P<test>\t\tif \(tmp_\d+\.valid\) \{\n)"
    r"\t\t\t(?P<memory>memory_\w+)\.update\((?P<at>tmp_\d+\.index), (?P<values>.*), (?P<priority>\d+)\);\n\t\t\}\n\t\}"
)
_NAME = re.compile(r"\b[A-Za-z_]\w*")


@dataclass(frozen=True)
class Assignment:
    """Bits `low` .. of variable `name` (of `whole` bits) become `tree`, at an edge if one is named."""

    edge: str | None
    name: str
    low: int
    whole: int
    tree: Tree


@dataclass(frozen=True)
class MemoryWrite:
    """A write port of a memory: the text around `word` and `mask`."""

    text: re.Match[str]
    word: Tree
    mask: Tree


Statement = str | Assignment | MemoryWrite


def translate(declared: dict[str, str], registers: dict[str, int], statements: list[str]) -> list[Statement]:
    """Statements in plain words where possible.

    declared : types of the locals, by name; changed to those that the result uses.
    registers : bits of the registers and ports.
    """
    widths = {name: int(kind[6:-1]) for name, kind in declared.items()}
    widths |= registers
    widths |= {f"{name}.{half}": bits for name, bits in registers.items() for half in ("curr", "next")}
    reader = Reader(widths)
    read = [_read(reader, widths, statement) for statement in statements]
    return _renamed(declared, read)


def _read(reader: Reader, widths: dict[str, int], statement: str) -> Statement:
    try:
        if match := _ASSIGNMENT.fullmatch(statement):
            if match["name"] not in widths:
                return statement
            whole = widths[match["name"]]
            high = whole - 1 if match["high"] is None else int(match["high"])
            low = 0 if match["high"] is None else int(match["low"] or high)
            tree = reader.read(match["value"])
            if tree.width != high - low + 1:
                return statement
            return Assignment(match["edge"], match["name"], low, whole, tree)
        if match := _WRITE.fullmatch(statement):
            word, mask = reader.read_list(match["values"], 2)
            return MemoryWrite(match, word, mask)
    except FormError:
        pass
    return statement


def _renamed(declared: dict[str, str], statements: list[Statement]) -> list[Statement]:
    """Locals in slices become a local per slice; those that only name other bits vanish."""
    raw = {name for text in statements if isinstance(text, str) for name in _NAME.findall(text)}
    raw |= {
        name for write in statements if isinstance(write, MemoryWrite) for name in _NAME.findall(write.text["address"])
    }
    assigned = {statement.name for statement in statements if isinstance(statement, Assignment)} | raw
    pieces: dict[str, list[Assignment]] = {}
    for statement in statements:
        if isinstance(statement, Assignment) and statement.name in declared and statement.name not in raw:
            pieces.setdefault(statement.name, []).append(statement)
    locals_ = Locals({name: parts for name, parts in pieces.items() if _disjoint(parts)})
    out: list[Statement] = []
    for statement in statements:
        if isinstance(statement, str):
            out.append(statement)
        elif isinstance(statement, MemoryWrite):
            out.append(replace(statement, word=locals_.put(statement.word), mask=locals_.put(statement.mask)))
        elif statement.name not in locals_.parts:
            out.append(replace(statement, tree=locals_.put(statement.tree)))
        else:
            tree = locals_.put(statement.tree)
            if not locals_.fixed(tree, assigned):
                name = f"{statement.name}_at{statement.low}"
                declared[name] = f"value<{tree.width}>"
                out.append(Assignment(None, name, 0, tree.width, tree))
                tree = Bits(name, 0, tree.width, tree.width)
                locals_.made.add(name)
            locals_.known.setdefault(statement.name, []).append((statement.low, tree))
    for name in locals_.parts:
        del declared[name]
    return _inlined(out, locals_.made)


def _inlined(statements: list[Statement], made: set[str]) -> list[Statement]:
    """Locals of `made` that are used once give way to what they are."""
    uses: Counter[str] = Counter()
    for statement in statements:
        for tree in trees_of(statement):
            uses.update(bits.name for bits in variables(tree))
    once = Locals({})
    out: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Assignment):
            tree = once.put(statement.tree)
            if statement.name in made and uses[statement.name] == 1 and sum(1 for _ in variables(tree)) <= INLINED:
                once.parts[statement.name], once.known[statement.name] = [statement], [(0, tree)]
            else:
                out.append(replace(statement, tree=tree))
        elif isinstance(statement, MemoryWrite):
            out.append(replace(statement, word=once.put(statement.word), mask=once.put(statement.mask)))
        else:
            out.append(statement)
    return out


def trees_of(statement: Statement) -> list[Tree]:
    """The expressions of a statement that has been read."""
    if isinstance(statement, MemoryWrite):
        return [statement.word, statement.mask]
    return [statement.tree] if isinstance(statement, Assignment) else []


class Locals:
    """Locals that are replaced: the assignments to each, and what stands for their bits so far."""

    def __init__(self, parts: dict[str, list[Assignment]]) -> None:
        self.parts = parts
        self.known: dict[str, list[tuple[int, Tree]]] = {}
        self.made: set[str] = set()

    def fixed(self, tree: Tree, assigned: set[str]) -> bool:
        """Whether a tree is only bits that do not change any more: present values, inputs and locals made."""
        if isinstance(tree, Join):
            return all(self.fixed(part, assigned) for part in tree.parts)
        if isinstance(tree, Bits):
            return tree.name.endswith(".curr") or tree.name in self.made or tree.name not in assigned
        return isinstance(tree, Constant)

    def put(self, tree: Tree) -> Tree:
        """The tree with what stands for the locals."""
        match tree:
            case Bits():
                return self._bits(tree) if tree.name in self.parts else tree
            case Join():
                return join([self.put(part) for part in tree.parts])
            case Conditional():
                return Conditional(self.put(tree.test), self.put(tree.then), self.put(tree.other), tree.width)
            case CellOperation():
                return replace(tree, arguments=tuple(self.put(part) for part in tree.arguments))
            case ResultBits():
                return replace(tree, whole=replace(tree.whole, arguments=tuple(map(self.put, tree.whole.arguments))))
        return tree

    def _bits(self, wanted: Bits) -> Tree:
        end = wanted.low + wanted.width
        found: list[Tree] = []
        at = wanted.low
        for low, tree in sorted(self.known.get(wanted.name, []), key=lambda item: item[0]):
            first, last = max(low, at), min(low + tree.width, end)
            if first < last:
                if first > at:
                    found.append(self._nothing(wanted.name, at, first))
                found.append(select(tree, first - low, last - first))
                at = last
        if at < end:
            found.append(self._nothing(wanted.name, at, end))
        return join(found[::-1])

    def _nothing(self, name: str, low: int, end: int) -> Tree:
        """Bits that no statement assigns are 0."""
        if any(part.low < end and low < part.low + part.tree.width for part in self.parts[name]):
            raise FormError(f"{name} is used before it is assigned")
        return Constant(0, end - low)


def _disjoint(parts: list[Assignment]) -> bool:
    """Whether the assignments are to different bits, all without an edge."""
    at = 0
    for part in sorted(parts, key=lambda part: part.low):
        if part.low < at or part.edge:
            return False
        at = part.low + part.tree.width
    return True


def text_of(statement: Statement) -> str:
    """C++ of a statement."""
    if isinstance(statement, str):
        return statement
    if isinstance(statement, Assignment):
        lines = assign(statement.name, statement.low, statement.whole, statement.tree)
        if statement.edge is None:
            return "\n".join(f"\t{line}" for line in lines)
        return "\n".join([f"\tif ({statement.edge}) {{", *(f"\t\t{line}" for line in lines), "\t}"])
    bits = statement.word.width
    lines = [f"value<{bits}> word, mask;"]
    lines += assign("word", 0, bits, statement.word) + assign("mask", 0, bits, statement.mask)
    text = statement.text
    return (
        f"{text['start']}{text['index']}\t\tif ({truth(statement.mask)})\n{text['test']}"
        + "".join(f"\t\t\t{line}\n" for line in lines)
        + f"\t\t\t{text['memory']}.update({text['at']}, word, mask, {text['priority']});\n\t\t}}\n\t}}"
    )
