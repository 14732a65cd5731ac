"""The page docs/isa.md: the instruction set as Markdown, from its declarations. `generate_docs.py` writes it."""

import ast
import inspect
from enum import IntEnum
from types import ModuleType

from onnxhw.config import HwConfig
from onnxhw.isa import (
    early_instructions,
    external_instructions,
    input_port,
    instructions,
    memory,
    move_timing,
    timeline,
    timing,
)
from onnxhw.isa.early_instructions import READ_SLACK, drain_slack
from onnxhw.isa.external_instructions import COUNT_BITS, Move
from onnxhw.isa.fields import WORD_BITS, FieldSpec
from onnxhw.isa.instructions import UNITS, Ordered, VectorOp
from onnxhw.isa.memory import Control, Space, host_stride, word_bytes
from onnxhw.isa.units import Unit
from onnxhw.presets import PRESETS


def attribute_docs(source: ModuleType | type) -> dict[str, str]:
    """The strings below the assignments of a module or class: name -> text."""
    tree: ast.Module | ast.ClassDef = ast.parse(inspect.getsource(source))
    if isinstance(source, type):
        tree = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    out = {}
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            out[target.id] = " ".join(str(after.value.value).replace("``", "`").split())
    return out


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines] + [""]


def prose(source: object) -> list[str]:
    """A docstring as Markdown: its literal blocks fenced, its double backquotes single."""
    out: list[str] = []
    inside = False
    text = inspect.cleandoc(str(source.__doc__))  # Python 3.13 strips the indentation itself
    for line in (line.rstrip() for line in text.split("\n")):
        if inside and line and not line.startswith(" "):
            inside = False
            out[-1:] = ["```", ""]
        if inside:
            out.append(line.removeprefix("    "))
        elif line.endswith("::"):
            inside = True
            out += [line[:-1].replace("``", "`"), "", "```python"]
        else:
            out.append(line.replace("``", "`"))
    if inside:
        out.append("```")
    return [*"\n".join(out).replace("```python\n\n", "```python\n").split("\n"), ""]


def field_row(spec: FieldSpec, default: int) -> list[str]:
    """One field: bits of the instruction, word and bits in it, range, default, meaning."""
    first, last = spec.offset, spec.offset + spec.bits - 1
    words = "-".join(f"{word}" for word in sorted({first // WORD_BITS, last // WORD_BITS}))
    low = -(1 << (spec.bits - 1)) if spec.signed else 0
    high = low + (1 << spec.bits) - 1
    return [f"`{spec.name}`", f"{first}", f"{spec.bits}", words, f"{low} .. {high}", f"{default}", spec.doc]


def unit_section(kind: type[Ordered]) -> list[str]:
    """One unit's instruction."""
    lines = [f"## `{kind.UNIT}`: {kind.bits()} bits in {kind.words()} words", "", *prose(kind)]
    head = ["field", "bit", "bits", "word", "range", "default", "meaning"]
    defaults = kind()
    return lines + table(head, [field_row(spec, getattr(defaults, spec.name)) for spec in kind.specs()])


def external_section() -> list[str]:
    """What configurations with external memory have besides: the unit `move`, and a field of all other units."""
    lines = ["## With external memory", "", *prose(external_instructions)]
    lines += [f"Of each unit above the ordering fields are others, of {COUNT_BITS} bits:", ""]
    added = [_added(kind) for kind in external_instructions.EXTERNAL.values() if kind is not Move]
    head = ["unit", "field", "bit", "bits", "word", "range", "default", "meaning"]
    lines += table(head, [row for rows in added for row in rows])
    lines += [*unit_section(Move), "### Its timing", "", *prose(move_timing)]
    docs = attribute_docs(move_timing)
    return lines + table(
        ["constant", "cycles", "meaning"], [[f"`{name}`", f"{getattr(move_timing, name)}", docs[name]] for name in docs]
    )


def early_section() -> list[str]:
    """What configurations with early completion have besides: a field of two units."""
    lines = ["## With early completion", "", *prose(early_instructions)]
    head = ["unit", "field", "bit", "bits", "word", "range", "default", "meaning"]
    added = [_added(early_instructions.EARLY[unit]) for unit in (Unit.ARRAY, Unit.VECTOR)]
    lines += table(head, [row for rows in added for row in rows if "after_" not in row[1]])
    slack = [[config.name, f"{drain_slack(config)}"] for config in PRESETS.values()]
    docs = attribute_docs(early_instructions)
    lines += table(["constant", "cycles", "meaning"], [["`READ_SLACK`", f"{READ_SLACK}", docs["READ_SLACK"]]])
    lines += ["`drain_slack` by preset:", ""]
    return lines + table(["preset", "cycles"], slack)


def _added(kind: type[Ordered]) -> list[list[str]]:
    """The rows of fields that the external form of a unit's instruction has otherwise."""
    known, defaults = {spec.name for spec in UNITS[kind.UNIT].specs()}, kind()
    return [
        [f"`{kind.UNIT}`", *field_row(spec, getattr(defaults, spec.name))]
        for spec in kind.specs()
        if spec.name not in known or spec.name.startswith("after_")
    ]


def enum_table(kind: type[IntEnum], head: list[str], docs: dict[str, str]) -> list[str]:
    """The members of an enumeration with what is written below them."""
    return table(head, [[f"{member.value}", f"`{member.name}`", docs.get(member.name, "")] for member in sorted(kind)])


def memory_section() -> list[str]:
    """Address spaces, host words and control registers."""
    lines = ["## Memories and control registers", "", *prose(memory)]
    presets = list(PRESETS.values())
    rows = []
    for space in Space:
        cells = [f"{_size(config, space)}" for config in presets]
        rows.append([f"{space.value}", f"`{space.name}`", *cells])
    lines += ["Bytes of a word / host words per word, by preset:", ""]
    lines += table(["space", "name", *(config.name for config in presets)], rows)
    lines += ["### Control registers", ""]
    lines += enum_table(Control, ["address", "name", "meaning"], attribute_docs(Control))
    units = ", ".join(f"{unit.number} {unit}" for unit in Unit)
    return [*lines, f"Units in the ring: {units}.", ""]


def _size(config: HwConfig, space: Space) -> str:
    if space in (Space.EXTERNAL, Space.MOVE_UCODE):  # presets have neither by themselves
        return "-"
    size = word_bytes(config, space)
    return f"{size} / {host_stride(size)}"


def input_section() -> list[str]:
    """The input port."""
    lines = ["## The input port", "", *prose(input_port), *prose(input_port.InputRegion)]
    lines += ["Its words in the table:", "", *prose(input_port.InputRegion.to_words)]
    docs = attribute_docs(input_port)
    rows = [[f"`{name}`", f"{getattr(input_port, name)}", text] for name, text in docs.items()]
    return lines + table(["constant", "value", "meaning"], rows)


def timing_section() -> list[str]:
    """The cycle formulas and their constants."""
    lines = ["## Timing", "", *prose(timeline)]
    docs = attribute_docs(timing)
    constants = [[f"`{name}`", f"{getattr(timing, name)}", text] for name, text in docs.items()]
    lines += table(["constant", "cycles", "meaning"], constants)
    rows = [[f"`{name}`", *values, text] for name, values, text in _latencies()]
    return lines + table(["by preset", *PRESETS, "meaning"], rows)


def _latencies() -> list[tuple[str, list[str], str]]:
    """The public functions of `timing` that give cycles for a configuration alone, with their values.

    Where a configuration has a depthwise unit, its value stands after that of the array.
    """
    out = []
    for name, function in inspect.getmembers(timing, inspect.isfunction):
        taken = list(inspect.signature(function).parameters)
        known = taken == ["config", "depthwise"][: len(taken)]
        if function.__module__ == timing.__name__ and not name.startswith("_") and known:
            values = []
            for config in PRESETS.values():
                units = [0, 1] if "depthwise" in taken and config.depthwise else [0]
                found = [function(*[config, unit][: len(taken)]) for unit in units]
                values.append(" / ".join(f"{cycles}" for cycles in dict.fromkeys(found)))
            out.append((name, values, " ".join((inspect.getdoc(function) or "").split())))
    return out


def markdown() -> str:
    """The whole page."""
    lines = [
        "# The instruction set",
        "",
        "<!-- Printed by `make docs`; do not edit. -->",
        "",
        *prose(instructions),
        "R, C, W, Q and k are the `rows`, `cols`, `word`, `lanes` and `load_rows` of the hardware configuration, D its",
        "`depthwise_lanes`.",
        "Fields are packed in the order of the tables, least significant bit first, into 32-bit words.",
        "In text an instruction is its unit and every field that is not its default: `load tiles=9 base=18`.",
        "",
    ]
    for unit, kind in UNITS.items():
        lines += unit_section(kind)
        if unit == Unit.VECTOR:
            lines += ["### Operations", ""]
            lines += enum_table(VectorOp, ["`op`", "name", "meaning"], attribute_docs(VectorOp))
    lines += early_section() + external_section() + memory_section() + input_section() + timing_section()
    return "\n".join(lines).rstrip("\n") + "\n"
