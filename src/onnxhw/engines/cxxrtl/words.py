"""Expressions as C on plain machine words of 32 or 64 bits, and assignments of values of any width.

A value of CXXRTL is an array ``data`` of 32-bit chunks whose unused bits are 0; so is every word here.
"""

from .expression import (
    BITWISE,
    COMPARISONS,
    Bits,
    CellOperation,
    Conditional,
    Constant,
    Join,
    ResultBits,
    Tree,
    extended,
    select,
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

_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
           "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip


def assign(name: str, low: int, whole: int, tree: Tree) -> list[str]:
    """Lines that assign `tree` to bits from `low` on of the variable `name` of `whole` bits."""
    width = tree.width
    if width > 64 and isinstance(tree, Conditional):
        then, other = (assign(name, low, whole, part) for part in (tree.then, tree.other))
        return [f"if ({truth(tree.test)}) {{", *then, "} else {", *other, "}"]
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
        case Conditional():
            return f"({truth(tree.test)} ? {word(tree.then)} : {word(tree.other)})"
        case Join():
            return _joined(tree)
        case ResultBits():
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


def truth(tree: Tree) -> str:
    """C that is true if any bit is 1."""
    if isinstance(tree, Conditional):
        return f"({truth(tree.test)} ? {truth(tree.then)} : {truth(tree.other)})"
    if tree.width <= 64:
        return f"({word(tree)} != 0)" if tree.width > 1 else word(tree)
    parts = set(tree.parts) if isinstance(tree, Join) else {
        select(tree, low, min(64, tree.width - low)) for low in range(0, tree.width, 64)
    }  # fmt: skip
    return f"({' || '.join(sorted(truth(part) for part in parts))})"


def _operation(tree: CellOperation) -> str:
    width, arguments = tree.width, tree.arguments
    if tree.name in ("reduce_or", "reduce_bool"):
        return f"(u32)({truth(arguments[0])} ? 1 : 0)"
    if tree.name == "logic_not":
        return f"(u32)({truth(arguments[0])} ? 0 : 1)"
    if tree.name == "reduce_and":
        return f"(u32)({truth(CellOperation('not', False, arguments, arguments[0].width))} ? 0 : 1)"
    if tree.name == "not":
        return f"({word(arguments[0])} ^ {_number(_ones(width), width)})"
    both = max(part.width for part in arguments) if tree.name in COMPARISONS else width
    left, right = (_operand(part, both, tree.signed, full=tree.name in COMPARISONS) for part in arguments)
    if tree.name in COMPARISONS:
        kind = ("int32_t" if both <= 32 else "int64_t") if tree.signed else ("u32" if both <= 32 else "u64")
        return f"(u32)(({kind}){left} {_SYMBOL[tree.name]} ({kind}){right})"
    text = f"({left} {_SYMBOL[tree.name]} {right})"
    if (tree.name in BITWISE and not tree.signed) or width in (32, 64):
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
