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
    BITWISE, COMPARISONS, Bits, Choice, Constant, Join, Operation, Part, Reader, Tree, Unknown, extended, join, select, variables,
)  # fmt: skip

PROLOGUE = """\
typedef uint32_t u32;
typedef uint64_t u64;
struct some { u32 data[1 << 16]; };
struct one { u32 data[1]; };
static inline some &at(void *from, size_t bytes) { return *(some*)((uint8_t*)from + bytes); }
static inline one at_8(void *from, size_t bytes) { return one { ((uint8_t*)from)[bytes] }; }
static inline one at_16(void *from, size_t bytes) { return one { ((uint16_t*)from)[bytes / 2] }; }
static inline u64 two(const u32 *at) { return (u64)at[1] << 32 | at[0]; }
template<int bits> static inline u32 sign(u32 a) { return (u32)((int32_t)(a << (32 - bits)) >> (32 - bits)); }
template<int bits> static inline u64 sign64(u64 a) { return (u64)((int64_t)(a << (64 - bits)) >> (64 - bits)); }
"""

INLINED = 16
"""Variables in a tree that may take the place of a local that is used once."""
_ASSIGNMENT = re.compile(
    r"(?:\tif \((?P<edge>(?:pos|neg)edge_\w+)\) \{\n\t)?\t(?P<name>\w+(?:\.next)?)(?:\.slice<(?P<high>\d+)(?:,(?P<low>\d+))?>\(\))?"
    r" = (?P<value>.*);(?:\n\t\})?"
)
_WRITE = re.compile(
    r"(?P<start>\tif \((?:pos|neg)edge_\w+\) \{\n)(?P<index>\t\tauto tmp_\d+ = memory_index\((?P<address>.*), 0, \d+\);\n)"
    r"\t\tCXXRTL_ASSERT\(.*\);\n(?P<test>\t\tif \(tmp_\d+\.valid\) \{\n)"
    r"\t\t\t(?P<memory>memory_\w+)\.update\((?P<at>tmp_\d+\.index), (?P<values>.*), (?P<priority>\d+)\);\n\t\t\}\n\t\}"
)
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
           "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip


@dataclass(frozen=True)
class Assignment:
    """Bits `low` .. of variable `name` (of `whole` bits) become `tree`, at an edge if one is named."""

    edge: str | None
    name: str
    low: int
    whole: int
    tree: Tree


@dataclass(frozen=True)
class Write:
    """A write port of a memory: the text around `word` and `mask`."""

    text: re.Match[str]
    word: Tree
    mask: Tree


Statement = str | Assignment | Write


class Unordered(Exception):
    """A local is used before it is assigned."""


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
            low, high = (0, whole - 1) if match["high"] is None else (int(match["low"] or match["high"]), int(match["high"]))
            tree = reader.read(match["value"])
            if tree.width != high - low + 1:
                return statement
            return Assignment(match["edge"], match["name"], low, whole, tree)
        if match := _WRITE.fullmatch(statement):
            word, mask = reader.read_list(match["values"], 2)
            return Write(match, word, mask)
    except Unknown:
        pass
    return statement


def _renamed(declared: dict[str, str], statements: list[Statement]) -> list[Statement]:
    """Locals in slices become a local per slice; those that only name other bits vanish."""
    raw = {name for text in statements if isinstance(text, str) for name in _NAME.findall(text)}
    raw |= {name for write in statements if isinstance(write, Write) for name in _NAME.findall(write.text["address"])}
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
        elif isinstance(statement, Write):
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
        for tree in _trees(statement):
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
        elif isinstance(statement, Write):
            out.append(replace(statement, word=once.put(statement.word), mask=once.put(statement.mask)))
        else:
            out.append(statement)
    return out


def _trees(statement: Statement) -> list[Tree]:
    if isinstance(statement, Write):
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
            case Choice():
                return Choice(self.put(tree.test), self.put(tree.then), self.put(tree.other), tree.width)
            case Operation():
                return replace(tree, arguments=tuple(self.put(part) for part in tree.arguments))
            case Part():
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
            raise Unordered(name)
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
        f"{text['start']}{text['index']}\t\tif ({_truth(statement.mask)})\n{text['test']}"
        + "".join(f"\t\t\t{line}\n" for line in lines)
        + f"\t\t\t{text['memory']}.update({text['at']}, word, mask, {text['priority']});\n\t\t}}\n\t}}"
    )


def assign(name: str, low: int, whole: int, tree: Tree) -> list[str]:
    """Lines that assign `tree` to bits from `low` on of the variable `name` of `whole` bits."""
    width = tree.width
    if width > 64 and isinstance(tree, Choice):
        then, other = (assign(name, low, whole, part) for part in (tree.then, tree.other))
        return [f"if ({_truth(tree.test)}) {{", *then, "} else {", *other, "}"]
    if low == 0 and 32 < width == whole <= 64:
        return [f"{{ u64 whole = {word(tree)}; {name}.data[0] = (u32)whole; {name}.data[1] = (u32)(whole >> 32); }}"]
    lines = []
    at = low
    while at < low + width:
        chunk, shift = divmod(at, 32)
        bits = min(32 - shift, low + width - at)
        text = word(select(tree, at - low, bits))
        place = f"{name}.data[{chunk}]"
        if shift or bits < min(32, whole - 32 * chunk):
            text = f"({place} & {~(_ones(bits) << shift) & 0xFFFFFFFF:#x}u) | ({text} << {shift})"
        lines.append(f"{place} = {text};")
        at += bits
    return lines


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _number(number: int, width: int) -> str:
    return f"{number:#x}{'u' if width <= 32 else 'ull'}"


def word(tree: Tree) -> str:
    """C for the value of a tree, of type u32 if it has at most 32 bits, u64 if at most 64; bits above are 0."""
    width = tree.width
    match tree:
        case Bits():
            return _bits(tree)
        case Constant():
            return _number(tree.number, width)
        case Choice():
            return f"({_truth(tree.test)} ? {word(tree.then)} : {word(tree.other)})"
        case Join():
            return _joined(tree)
        case Part():
            text = f"({word(tree.whole)} >> {tree.low} & {_number(_ones(width), tree.whole.width)})"
            return f"(u32){text}" if width <= 32 < tree.whole.width else text
    return _operation(tree)


def _bits(tree: Bits) -> str:
    width = tree.width
    chunk, shift = divmod(tree.low, 32)
    at, end = f"{tree.name}.data", tree.low + width
    if shift + width <= 32:
        text, last = f"{at}[{chunk}]", min(tree.whole, 32 * chunk + 32)
    else:
        text, last = f"two({at} + {chunk})", min(tree.whole, 32 * chunk + 64)
    if shift:
        text = f"({text} >> {shift})"
    if shift + width > 64:
        text, last = f"({text} | (u64){at}[{chunk + 2}] << {64 - shift})", tree.whole + 1
    if end < last:
        text = f"({text} & {_number(_ones(width), shift + width)})"
    return f"(u32){text}" if width <= 32 < shift + width else text


def _joined(tree: Join) -> str:
    kind = "u32" if tree.width <= 32 else "u64"
    texts: list[str] = []
    at, k = 0, len(tree.parts)
    while k:
        part, count = tree.parts[k - 1], 1
        while part.width == 1 and k > count and tree.parts[k - 1 - count] == part:
            count += 1
        text = f"({kind}){word(part)}"
        if count > 1:
            text = f"(({kind})0 - {text} & {_number(_ones(count), tree.width)})"
        if text != f"({kind}){_number(0, part.width)}":
            texts.append(f"{text} << {at}" if at else text)
        at += count * part.width
        k -= count
    return f"({' | '.join(f'({text})' for text in texts) or _number(0, tree.width)})"


def _truth(tree: Tree) -> str:
    """C that is true if any bit is 1."""
    if isinstance(tree, Choice):
        return f"({_truth(tree.test)} ? {_truth(tree.then)} : {_truth(tree.other)})"
    if tree.width <= 64:
        return f"({word(tree)} != 0)" if tree.width > 1 else word(tree)
    parts = set(tree.parts) if isinstance(tree, Join) else {
        select(tree, low, min(64, tree.width - low)) for low in range(0, tree.width, 64)
    }  # fmt: skip
    return f"({' || '.join(sorted(_truth(part) for part in parts))})"


def _operation(tree: Operation) -> str:
    width, arguments = tree.width, tree.arguments
    if tree.name in ("reduce_or", "reduce_bool"):
        return f"(u32)({_truth(arguments[0])} ? 1 : 0)"
    if tree.name == "logic_not":
        return f"(u32)({_truth(arguments[0])} ? 0 : 1)"
    if tree.name == "reduce_and":
        return f"(u32)({_truth(select(Operation('not', False, arguments, arguments[0].width), 0, arguments[0].width))} ? 0 : 1)"
    if tree.name == "not":
        return f"({word(arguments[0])} ^ {_number(_ones(width), width)})"
    both = max(part.width for part in arguments) if tree.name in COMPARISONS else width
    left, right = (_operand(part, both, tree.signed, full=tree.name in COMPARISONS) for part in arguments)
    if tree.name in COMPARISONS:
        kind = ("int32_t" if both <= 32 else "int64_t") if tree.signed else ("u32" if both <= 32 else "u64")
        return f"(u32)(({kind}){left} {_SYMBOL[tree.name]} ({kind}){right})"
    text = f"({left} {_SYMBOL[tree.name]} {right})"
    if tree.name in BITWISE and not tree.signed or width in (32, 64):
        return text
    return f"({text} & {_number(_ones(width), width)})"


def _operand(tree: Tree, width: int, signed: bool, *, full: bool) -> str:
    """An operand cut or extended to `width` bits; bits above are copies of the sign, if signed, or wrong for sums."""
    kind = "u32" if width <= 32 else "u64"
    if tree.width > width:
        tree = extended(tree, width, signed)
    text = f"({kind}){word(tree)}"
    if not signed or tree.width == (32 if width <= 32 else 64) or (tree.width == width and not full):
        return text
    return f"sign{'' if width <= 32 else '64'}<{tree.width}>({text})"
