"""The generated C++, cut into pieces that compile in parallel and in linear time.

CXXRTL writes the whole design as one function, ``eval``, on which an optimizing compiler spends minutes.
Its statements are independent of each other but for the local values that they share, so

    bool p_top::eval(...) { value<8> a; value<1> b; S1; S2; S3; S4; return converged; }

becomes

    bool p_top::eval_0(...) { value<1> b; S1; S2; ... }        // b is used only here
    bool p_top::eval_1(...) { S3; S4; ... }                    // a is a member now
    bool p_top::eval(...)   { return eval_0(...) & eval_1(...); }

Values that only rename another (the clock of every submodule) are replaced by what they rename. Before they are cut,
statements become plain machine words (`statements`) and those that are alike become loops (`loops`). Reset and debug
information, which take no part in speed, go into a file of their own that is compiled without optimization.
"""

import re
from collections import Counter
from dataclasses import dataclass

from . import state
from .expression import FormError
from .loops import ordered, rolled
from .statements import translate
from .words import PROLOGUE

_DECLARATION = re.compile(r"\t(value<\d+>) (\w+);")
_ALIAS = re.compile(r"\t(\w+) = (\w+)(\.curr)?;")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_EVAL = re.compile(r"^bool (\w+)::eval\(performer \*performer\) \{\n(.*?)^\}\n", re.M | re.S)
_PORT = re.compile(r"^\t(?:/\*\w+\*/ )?value<(\d+)> (\w+)(?: \{[^;]*\})?;\n", re.M)
_EDGE = re.compile(r"\bbool (posedge|negedge)_\w+ = .*;")


class SplitError(Exception):
    """The text does not have the form that CXXRTL writes; the caller compiles it whole."""


@dataclass(frozen=True)
class TranslationUnits:
    """Translation units: `header`, the optimized `hot` ones and the `cold` one; `top` is the top module's struct."""

    header: str
    hot: list[str]
    cold: str
    top: str


def split(source: str, header: str, header_name: str, size: int = 16_000, unit: int = 200_000) -> TranslationUnits:
    """Cut `source` (written with ``-header``) into functions of about `size` characters, `unit` characters per file."""
    match = _EVAL.search(source)
    if match is None or len(_EVAL.findall(source)) != 1:
        raise SplitError("not exactly one eval function")
    top = match[1]
    edges, declared, statements = _parse(match[2])
    statements = _inline_aliases(declared, _glued(statements))
    try:
        registers = state.registers_of(header)
        members = registers | {found[2]: int(found[1]) for found in _PORT.finditer(header)}
        translated = translate(declared, members, statements)
        registers = ordered(translated, registers)
        cold = state.cold(source[: match.start()] + source[match.end() :], registers)
        statements = rolled(translated, state.places(registers))
    except FormError as error:
        raise SplitError(str(error)) from error
    chunks = _chunks(statements, size)
    shared, private = _places(declared, chunks)
    # With debug information a member of the same name may exist, which the local hid.
    rename = {name: f"shared_{name}" for name in shared}
    chunks = [[state.renamed(_replaced(statement, rename), registers) for statement in chunk] for chunk in chunks]

    prologue = f'#include "{header_name}"\nusing namespace cxxrtl_yosys;\nnamespace cxxrtl_design {{\n{PROLOGUE}'
    functions = []
    for k, chunk in enumerate(chunks):
        used = _names(chunk)
        lines = [f"bool {top}::eval_{k}(performer *performer) {{", "\t(void)performer;", "\tbool converged = true;"]
        lines += [edge for edge in edges if edge.split()[1] in used]
        lines += [f"\t{declared[name]} {name};" for name in private[k]]
        functions.append("\n".join([*lines, *chunk, "\treturn converged;", "}", ""]))
    calls = "".join(f"\tconverged &= eval_{k}(performer);\n" for k in range(len(chunks)))
    functions.append(
        f"bool {top}::eval(performer *performer) {{\n\tbool converged = true;\n{calls}\treturn converged;\n}}\n"
        f"void {top}::latch() {{\n{state.latch(header, registers)}}}\n"
    )
    hot = [prologue + "".join(group) + "}\n" for group in _grouped(functions, unit)]
    more = "".join(f"\t{declared[name]} {rename[name]};\n" for name in shared)
    more += "".join(f"\tbool eval_{k}(performer *performer);\n" for k in range(len(chunks)))
    more += "\tvoid latch();\n"
    end = f"}}; // struct {top}"
    if header.count(end) != 1:
        raise SplitError("no end of the top module's struct")
    return TranslationUnits(state.declared(header, registers).replace(end, more + end), hot, cold, top)


def whole(source: str, header: str, header_name: str) -> TranslationUnits:
    """The same pieces without cutting: everything that runs in one unit."""
    match = _EVAL.search(source)
    if match is None:
        raise SplitError("no eval function")
    top, end = match[1], f"}}; // struct {match[1]}"
    latch = f'#include "{header_name}"\nnamespace cxxrtl_design {{\nvoid {top}::latch() {{ commit(); }}\n}}\n'
    return TranslationUnits(header.replace(end, "\tvoid latch();\n" + end), [source, latch], "", top)


def _parse(body: str) -> tuple[list[str], dict[str, str], list[str]]:
    """Edge flags, local values by name, and top-level statements in order."""
    edges: list[str] = []
    declared: dict[str, str] = {}
    statements: list[str] = []
    open_lines: list[str] = []
    depth = 0
    for line in body.splitlines():
        text = line.strip()
        if not text or text.startswith("//"):
            continue
        if depth == 0 and not open_lines:
            if match := _DECLARATION.fullmatch(line):
                declared[match[2]] = match[1]
                continue
            if _EDGE.fullmatch(text):
                edges.append(line)
                continue
            if text in ("bool converged = true;", "return converged;"):
                continue
        open_lines.append(line)
        depth += line.count("{") - line.count("}")
        if depth < 0:
            raise SplitError(f"unbalanced braces at {text!r}")
        if depth == 0 and text[-1] in ";}":
            statements.append("\n".join(open_lines))
            open_lines = []
    if open_lines or depth:
        raise SplitError("an open statement at the end of eval")
    return edges, declared, statements


def _glued(statements: list[str]) -> list[str]:
    """Join statements that use a temporary (``auto tmp_7 = ...``) with the one that declares it."""
    out: list[str] = []
    last_use: dict[str, int] = {}
    for i, statement in enumerate(statements):
        for name in re.findall(r"\btmp_\d+\b", statement):
            last_use[name] = i
    until = -1
    for i, statement in enumerate(statements):
        if i <= until:
            out[-1] += "\n" + statement
        else:
            out.append(statement)
        if match := re.match(r"\t(?:auto|value<\d+>) (tmp_\d+)\b", statement):
            until = max(until, last_use[match[1]])
    return out


def _inline_aliases(declared: dict[str, str], statements: list[str]) -> list[str]:
    """Remove locals that are assigned once, from a clock, an input, a register or another such local."""
    assigned: Counter[str] = Counter()
    for statement in statements:
        assigned.update(re.findall(r"\b(\w+)(?:\.slice<[\d,]+>\(\))? = ", statement))
    alias: dict[str, str] = {}
    kept: list[str] = []
    for statement in statements:
        match = _ALIAS.fullmatch(statement)
        if match and match[1] in declared and assigned[match[1]] == 1:
            source = alias.get(match[2], match[2]) + (match[3] or "")
            # A register's present value and an input never change inside eval; a local does not once assigned.
            base = source.partition(".")[0]
            if source.endswith(".curr") or assigned[base] == 0 or (base in declared and assigned[base] == 1):
                alias[match[1]] = source
                continue
        kept.append(statement)
    for name in alias:
        del declared[name]
    return [_replaced(statement, alias) for statement in kept]


def _replaced(statement: str, names: dict[str, str]) -> str:
    """The statement with some identifiers replaced."""
    return _NAME.sub(lambda found: names.get(found[0], found[0]), statement)


def _chunks(statements: list[str], size: int) -> list[list[str]]:
    """Consecutive statements in groups of about `size` characters; runs under one clock edge are joined."""
    joined: list[str] = []
    for statement in statements:
        opening = re.match(r"\tif \((?:pos|neg)edge_\w+\) \{\n", statement)
        if opening and joined and joined[-1].startswith(opening[0]) and len(joined[-1]) < size // 8:
            joined[-1] = joined[-1].removesuffix("}").rstrip() + "\n" + statement[len(opening[0]) :]
        else:
            joined.append(statement)
    return _grouped(joined, size)


def _grouped(texts: list[str], size: int) -> list[list[str]]:
    """Consecutive texts in groups of about `size` characters."""
    groups: list[list[str]] = [[]]
    length = 0
    for text in texts:
        if length + len(text) // 2 > size:
            groups.append([])
            length = 0
        groups[-1].append(text)
        length += len(text)
    return groups


def _names(chunk: list[str]) -> set[str]:
    return {name for statement in chunk for name in _NAME.findall(statement)}


def _places(declared: dict[str, str], chunks: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Locals that several chunks use, and per chunk those that only it uses."""
    uses: dict[str, list[int]] = {name: [] for name in declared}
    for k, chunk in enumerate(chunks):
        for name in _names(chunk) & declared.keys():
            uses[name].append(k)
    shared = [name for name, where in uses.items() if len(where) > 1]
    private: list[list[str]] = [[] for _ in chunks]
    for name, where in uses.items():
        if len(where) == 1:
            private[where[0]].append(name)
    return shared, private
