"""Expressions of the C++ that CXXRTL writes, as trees.

    (p_a.curr ? add_uu<9>(p_b.curr, value<1>{0x1u}).slice<7,0>().val() : b.concat(c).val())

becomes ``Conditional(Bits a, Operation add of 8 bits, Join(b, c))``: selections of bits are pushed towards the leaves
while reading, so a slice of a wide value costs what its bits cost. `FormError` is raised for what has no tree; the
caller then leaves the statement as it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r"\s*(0x[0-9a-fA-F]+u|\d+u|[A-Za-z_]\w*(?:<[\d, ]*>)?|[(){}?:,.])")
_CALL = re.compile(r"(\w+)<(\d+)>")
_SLICE = re.compile(r"slice<(\d+)(?:,(\d+))?>")

WORD = 64
"""Bits of the widest machine word."""
SHIFTS = 3
"""Bits of the amount of a shift that is read as choices between its results."""
MODULAR = ("add", "sub", "mul")
"""Operations whose low bits depend on low bits only."""
BITWISE = ("and", "or", "xor")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
REDUCTIONS = ("reduce_or", "reduce_bool", "reduce_and", "logic_not")


class FormError(Exception):
    """The text is not of the form that is understood."""


@dataclass(frozen=True)
class Bits:
    """Bits ``low .. low + width - 1`` of the variable `name`, of `whole` bits."""

    name: str
    low: int
    width: int
    whole: int


@dataclass(frozen=True)
class Constant:
    """A number of `width` bits."""

    number: int
    width: int


@dataclass(frozen=True)
class Join:
    """Parts beside each other, the most significant one first."""

    parts: "tuple[Tree, ...]"
    width: int


@dataclass(frozen=True)
class Conditional:
    """`then` if `test` is not 0, else `other`; both of `width` bits."""

    test: "Tree"
    then: "Tree"
    other: "Tree"
    width: int


@dataclass(frozen=True)
class CellOperation:
    """`name` of one or two arguments, signed or not, to `width` bits."""

    name: str
    signed: bool
    arguments: "tuple[Tree, ...]"
    width: int


@dataclass(frozen=True)
class ResultBits:
    """Bits of an operation whose other bits count, too (a comparison has none)."""

    whole: CellOperation
    low: int
    width: int


Tree: TypeAlias = Bits | Constant | Join | Conditional | CellOperation | ResultBits


def join(parts: list[Tree]) -> Tree:
    """The parts beside each other, the most significant one first; neighbouring bits of a variable are one part."""
    flat: list[Tree] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Join) else (part,):
            last = flat[-1] if flat else None
            if isinstance(last, Constant) and isinstance(piece, Constant):
                flat[-1] = Constant(last.number << piece.width | piece.number, last.width + piece.width)
            elif (
                isinstance(last, Bits)
                and isinstance(piece, Bits)
                and last.name == piece.name
                and last.low == piece.low + piece.width
            ):
                flat[-1] = Bits(last.name, piece.low, last.width + piece.width, last.whole)
            else:
                flat.append(piece)
    return flat[0] if len(flat) == 1 else Join(tuple(flat), sum(part.width for part in flat))


def select(tree: Tree, low: int, width: int) -> Tree:
    """Bits ``low .. low + width - 1`` of a tree."""
    if low == 0 and width == tree.width:
        return tree
    match tree:
        case Bits():
            return Bits(tree.name, tree.low + low, width, tree.whole)
        case Constant():
            return Constant(tree.number >> low & (1 << width) - 1, width)
        case Conditional():
            return Conditional(tree.test, select(tree.then, low, width), select(tree.other, low, width), width)
        case Join():
            return _select_parts(tree, low, width)
        case ResultBits():
            return ResultBits(tree.whole, tree.low + low, width)
    if tree.name in MODULAR and low == 0:
        return CellOperation(tree.name, tree.signed, tree.arguments, width)
    if tree.name in (*BITWISE, "not"):
        pieces = tuple(select(extended(part, tree.width, tree.signed), low, width) for part in tree.arguments)
        return CellOperation(tree.name, False, pieces, width)
    return ResultBits(tree, low, width)


def _select_parts(tree: Join, low: int, width: int) -> Tree:
    found: list[Tree] = []
    at = tree.width
    for part in tree.parts:
        at -= part.width
        first, end = max(low, at), min(low + width, at + part.width)
        if first < end:
            found.append(select(part, first - at, end - first))
    return join(found)


def variables(tree: Tree) -> Iterator[Bits]:
    """The bits of variables in a tree, in a fixed order."""
    match tree:
        case Bits():
            yield tree
        case Join():
            for part in tree.parts:
                yield from variables(part)
        case Conditional():
            for part in (tree.test, tree.then, tree.other):
                yield from variables(part)
        case CellOperation():
            for part in tree.arguments:
                yield from variables(part)
        case ResultBits():
            yield from variables(tree.whole)


def extended(tree: Tree, width: int, signed: bool) -> Tree:
    """The tree cut or extended to `width` bits."""
    if width <= tree.width:
        return select(tree, 0, width)
    more = width - tree.width
    if not signed:
        return join([Constant(0, more), tree])
    return join([*[select(tree, tree.width - 1, 1)] * more, tree])


def _multiple(tree: Tree, factor: Tree, width: int) -> Tree | None:
    """`tree` times a power of two is `tree` with zeros behind it."""
    if isinstance(factor, Constant) and factor.number.bit_count() == 1:
        return extended(join([tree, *_zeros(factor.number.bit_length() - 1)]), width, False)
    return None


def _zeros(bits: int) -> list[Tree]:
    return [Constant(0, bits)] if bits else []


def _shifted(tree: Tree, amount: Tree) -> Tree:
    """`tree` moved to the right by one of few amounts: a choice for each bit of `amount` that varies."""
    varying = [k for k in range(amount.width) if not isinstance(select(amount, k, 1), Constant)]
    if len(varying) > SHIFTS:
        raise FormError("a shift by many amounts")
    for k in range(amount.width):
        bit = select(amount, k, 1)
        if bit == Constant(0, 1):
            continue
        kept = max(0, tree.width - (1 << k))
        moved = join([*_zeros(tree.width - kept), *([select(tree, 1 << k, kept)] if kept else [])])
        tree = moved if isinstance(bit, Constant) else Conditional(bit, moved, tree, tree.width)
    return tree


class Reader:
    """Reads expressions; `widths` are the bits of the variables (``p_x.curr``, ``p_x.next``, ``local``)."""

    def __init__(self, widths: dict[str, int]) -> None:
        self.widths = widths

    def read(self, text: str) -> Tree:
        """The tree of a whole expression; `FormError` if it has none."""
        (tree,) = self.read_list(text, 1)
        return tree

    def read_list(self, text: str, count: int) -> list[Tree]:
        """The trees of `count` expressions with commas between them; `FormError` if they have none."""
        tokens: list[str] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise FormError(text[at : at + 20])
            tokens.append(match[1])
            at = match.end()
        self._tokens, self._at = [*tokens, ""], 0
        try:
            trees = [self._choice()]
            while len(trees) < count:
                self._next(",")
                trees.append(self._choice())
        except (RecursionError, IndexError) as error:
            raise FormError(text[:20]) from error
        if self._tokens[self._at]:
            raise FormError(self._tokens[self._at])
        return trees

    def _next(self, expected: str | None = None) -> str:
        token = self._tokens[self._at]
        if expected is not None and token != expected:
            raise FormError(f"{token!r} in place of {expected!r}")
        self._at += 1
        return token

    def _choice(self) -> Tree:
        test = self._postfix()
        if self._tokens[self._at] != "?":
            return test
        self._next("?")
        then = self._choice()
        self._next(":")
        other = self._choice()
        if then.width != other.width:
            raise FormError("branches of different widths")
        return Conditional(test, then, other, then.width)

    def _postfix(self) -> Tree:
        tree = self._primary()
        while self._tokens[self._at] == ".":
            self._next(".")
            word = self._next()
            if word == "concat":
                self._next("(")
                parts = [tree, self._choice()]
                self._next(")")
                tree = join(parts)
                continue
            self._next("(")
            self._next(")")
            if match := _SLICE.fullmatch(word):
                high, low = int(match[1]), int(match[2] or match[1])
                tree = select(tree, low, high - low + 1)
            elif word.startswith("repeat<"):
                tree = join([tree] * int(word[7:-1]))
            elif word != "val":
                raise FormError(word)
        return tree

    def _primary(self) -> Tree:
        word = self._next()
        if word == "(":
            tree = self._choice()
            self._next(")")
            return tree
        if match := _CALL.fullmatch(word):
            if match[1] == "value":
                return self._constant(int(match[2]))
            return self._operation(match[1], int(match[2]))
        name = word
        if self._tokens[self._at] == "." and self._tokens[self._at + 1] in ("curr", "next"):
            self._next(".")
            name = f"{word}.{self._next()}"
        if name not in self.widths:
            raise FormError(name)
        return Bits(name, 0, self.widths[name], self.widths[name])

    def _constant(self, width: int) -> Tree:
        self._next("{")
        number, place = 0, 0
        while self._tokens[self._at] != "}":
            number |= int(self._next()[:-1], 0) << place
            place += 32
            if self._tokens[self._at] == ",":
                self._next(",")
        self._next("}")
        return Constant(number, width)

    def _operation(self, word: str, width: int) -> Tree:
        self._next("(")
        arguments = [self._choice()]
        while self._tokens[self._at] == ",":
            self._next(",")
            arguments.append(self._choice())
        self._next(")")
        if word in ("shift_uu", "shr_uu", "shiftx_uu") and len(arguments) == 2:
            value = extended(arguments[0], max(width, arguments[0].width), False)
            return extended(_shifted(value, arguments[1]), width, False)
        if (
            word == "mul_uu"
            and len(arguments) == 2
            and (product := _multiple(arguments[0], arguments[1], width)) is not None
        ):
            return product
        name, _, kind = word.rpartition("_")
        if max(width, *(part.width for part in arguments)) > WORD and name in (*MODULAR, *COMPARISONS):
            raise FormError(f"{word} of more than {WORD} bits")
        if word in REDUCTIONS and len(arguments) == 1:
            return CellOperation(word, False, tuple(arguments), width)
        if word == "not_u" and len(arguments) == 1:
            return CellOperation("not", False, (extended(arguments[0], width, False),), width)
        if kind in ("uu", "ss") and len(arguments) == 2 and name in (*MODULAR, *BITWISE, *COMPARISONS):
            return CellOperation(name, kind == "ss", tuple(arguments), width)
        raise FormError(word)
