"""Assignments of registers that are alike, as loops.

An array of 256 cells has 256 assignments that differ in their registers only,

    next.p_cell_0_0_p.data[0] = now.p_cell_0_0_a.data[0] * now.p_cell_0_0_b.data[0];      // and so on

and as straight code their instructions alone would fill the processor's caches. So registers that are assigned alike
lie beside each other in their struct (`ordered`), in the order of the numbers in their names, and assignments whose
registers then lie at constant distances become one loop over them (`rolled`):

    for (int i = 0; i < 256; i++) at(&next, 4096 + 4 * i).data[0] = at(&now, 64 + 4 * i).data[0] * ...

At a clock edge every register is assigned from present values, so the order of these statements is free.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from .expression import Bits, CellOperation, Conditional, Constant, Join, ResultBits, Tree, select, variables
from .statements import Assignment, Statement, text_of, trees_of
from .words import assign

SHORTEST = 4
"""Assignments that make a loop."""
_NUMBERS = re.compile(r"\d+")
_NEXT = re.compile(r"\b\w+\.next\b")

Shape = tuple[object, ...]


def _register(name: str) -> bool:
    return name.endswith(".curr")


def shape(tree: Tree) -> Shape:
    """What trees that differ in their registers only have in common."""
    match tree:
        case Bits():
            return ("register", tree.width) if _register(tree.name) else ("local", tree)
        case Constant():
            return ("constant", tree)
        case Join():
            return ("join", *map(shape, tree.parts))
        case Conditional():
            return ("choice", shape(tree.test), shape(tree.then), shape(tree.other))
        case ResultBits():
            return ("part", tree.low, tree.width, shape(tree.whole))
    return (tree.name, tree.signed, tree.width, *map(shape, tree.arguments))


def leaves(tree: Tree) -> list[Bits]:
    """The bits of registers in a tree, in a fixed order."""
    return [bits for bits in variables(tree) if _register(bits.name)]


def _with_leaves(tree: Tree, new: Iterator[Bits]) -> Tree:
    """The tree with other bits of registers, in the order of `leaves`."""
    match tree:
        case Bits():
            return next(new) if _register(tree.name) else tree
        case Join():
            return replace(tree, parts=tuple(_with_leaves(part, new) for part in tree.parts))
        case Conditional():
            test, then, other = (_with_leaves(part, new) for part in (tree.test, tree.then, tree.other))
            return Conditional(test, then, other, tree.width)
        case CellOperation():
            return replace(tree, arguments=tuple(_with_leaves(part, new) for part in tree.arguments))
        case ResultBits():
            return replace(
                tree, whole=replace(tree.whole, arguments=tuple(_with_leaves(p, new) for p in tree.whole.arguments))
            )
    return tree


def _order(statement: Assignment) -> tuple[int, ...]:
    """By the last number of the name (the stage of a delay), then by the others (the cell), then by the bits."""
    numbers = [int(number) for number in _NUMBERS.findall(statement.name)]
    return (*numbers[-1:], *numbers[:-1], statement.low)


def _chunks(statement: Assignment) -> list[Assignment]:
    """An assignment of a wide register as one for every 32-bit chunk of it."""
    width = statement.tree.width
    if width <= 64 or statement.low % 32:
        return [statement]
    return [
        replace(statement, low=statement.low + at, tree=select(statement.tree, at, min(32, width - at)))
        for at in range(0, width, 32)
    ]


def _free(statements: list[Statement]) -> set[str]:
    """Registers' next values that one assignment at an edge makes and nothing reads: their order is free."""
    assigned: Counter[str] = Counter()
    kept: set[str] = set()
    for statement in statements:
        if isinstance(statement, str):
            kept.update(_NEXT.findall(statement))
            continue
        kept.update(bits.name for tree in trees_of(statement) for bits in variables(tree))
        if isinstance(statement, Assignment):
            assigned[statement.name] += 1
            if statement.edge is None:
                kept.add(statement.name)
    return {name for name, count in assigned.items() if count == 1 and name.endswith(".next")} - kept


def _groups(statements: list[Statement]) -> list[list[Assignment]]:
    """Assignments whose order is free, those that are alike together, in the order of their names."""
    found: dict[Shape, list[Assignment]] = {}
    free = _free(statements)
    for statement in statements:
        if isinstance(statement, Assignment) and statement.name in free:
            pattern = _NUMBERS.sub("", statement.name)
            for part in _chunks(statement):
                key = (part.edge, part.low % 32, part.whole, pattern, shape(part.tree))
                found.setdefault(key, []).append(part)
    for group in found.values():
        group.sort(key=_order)
    return list(found.values())


def ordered(statements: list[Statement], registers: dict[str, int]) -> dict[str, int]:
    """The registers, those that are assigned alike beside each other."""
    names = [statement.name.removesuffix(".next") for group in _groups(statements) for statement in group]
    first = dict.fromkeys(name for name in names if name in registers)
    others = sorted(registers.keys() - first.keys(), key=lambda name: (registers[name], name))
    return {name: registers[name] for name in (*first, *others)}


def rolled(statements: list[Statement], words: dict[str, int]) -> list[str]:
    """The text of all statements; assignments whose order is free come last, in loops where they are alike.

    words : where the registers begin (see `state.places`).
    """
    free = _free(statements)
    out = [text_of(item) for item in statements if not (isinstance(item, Assignment) and item.name in free)]
    for group in _groups(statements):
        at = 0
        while at < len(group):
            count = _run(group, at, words)
            if count < SHORTEST:
                out.append(text_of(group[at]))
                at += 1
            else:
                out.append(_loop(group[at : at + count], words))
                at += count
    return out


def _positions(statement: Assignment, words: dict[str, int]) -> list[int]:
    """Bit addresses in their structs of the register that is assigned, and of those that are read."""
    target = 32 * words[statement.name.removesuffix(".next")] + statement.low - statement.low % 32
    return [target, *(32 * words[leaf.name.removesuffix(".curr")] + leaf.low for leaf in leaves(statement.tree))]


def _run(group: list[Assignment], at: int, words: dict[str, int]) -> int:
    """How many assignments from number `at` on have their registers at constant distances."""
    if at + 1 == len(group):
        return 1
    here, after = _positions(group[at], words), _positions(group[at + 1], words)
    steps = [b - a for a, b in zip(here, after, strict=True)]
    widths = [32, *(leaf.width for leaf in leaves(group[at].tree))]
    if not all(_steady(*item) for item in zip(here, steps, widths, strict=True)):
        return 1
    count = 2
    while at + count < len(group):
        now = _positions(group[at + count], words)
        if any(a + count * step != b for a, step, b in zip(here, steps, now, strict=True)):
            break
        count += 1
    return count


def _steady(position: int, step: int, width: int) -> bool:
    """Whether bits at ``position + i * step`` are read alike for every i."""
    if step % 32 == 0:
        return True
    return sys.byteorder == "little" and width in (8, 16) and position % width == 0 and step % width == 0


def _loop(run: list[Assignment], words: dict[str, int]) -> str:
    first = run[0]
    here, after = _positions(first, words), _positions(run[1], words)
    alike = zip(*(leaves(statement.tree) for statement in run), strict=True)
    ends = [all(leaf.low + leaf.width == leaf.whole for leaf in same) for same in alike]
    new = []
    for leaf, position, then, end in zip(leaves(first.tree), here[1:], after[1:], ends, strict=True):
        step = then - position
        if step == 0:
            new.append(leaf)
        elif step % 32 == 0:
            low = position % 32
            name = f"at(&now, {(position - low) // 8} + {step // 8} * i)"
            new.append(Bits(name, low, leaf.width, low + leaf.width + (not end)))
        else:
            name = f"at_{leaf.width}(&now, {position // 8} + {step // 8} * i)"
            new.append(Bits(name, 0, leaf.width, leaf.width))
    target = f"at(&next, {here[0] // 8} + {(after[0] - here[0]) // 8} * i)"
    low = first.low % 32
    lines = assign(target, low, first.whole - first.low + low, _with_leaves(first.tree, iter(new)))
    return "\n".join([
        f"\tif ({first.edge}) {{", f"\t\tfor (int i = 0; i < {len(run)}; i++) {{",
        *(f"\t\t\t{line}" for line in lines), "\t\t}", "\t}",
    ])  # fmt: skip
