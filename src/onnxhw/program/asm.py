"""The text of a program's code: configuration, then one instruction per line.

Example::

    # mini: tiny.onnx
    config {"acc_bits": 24, ...}

    # conv1 (Conv), 4608 MACs
    load tiles=9                                        # 0
    array after_load=1 kh_n=3 kw_n=3 oh_n=8 ow_n=8 ...  # 0
    vector after_array=1 oh_n=8 ow_n=8 ...              # 0

A line is ``config`` and JSON, or a unit and its fields (`Instruction.text`); ``#`` begins a comment
(the number at the end counts the unit's instructions; a name in a heading has its line breaks
escaped). Units run concurrently: only the order of lines of the same unit means something.
"""

from collections.abc import Mapping, Sequence

from ..config import HwConfig
from ..errors import InternalError, UsageError
from ..isa.external_instructions import kinds
from ..isa.instructions import UNITS, Code, Ordered
from ..isa.units import Unit
from .model import DeviceProgram, Layer


def disassemble(program: DeviceProgram) -> str:
    """The text of a program's code, layer by layer."""
    return listing(program.config, program.code, program.layers, program.model)


def listing(
    config: HwConfig, code: Code, layers: Sequence[Layer] = (), model: str = ""
) -> str:
    """The text of some code; what belongs to no layer comes last.

    A unit's instructions stand in their order, so those of a layer that takes turns with another one may stand under
    the other's heading; their comments then name the layer.
    """
    lines = [f"# {_plain(config.name)}: {_plain(model)}".rstrip(": "), f"config {config.to_json()}"]
    written = dict.fromkeys(Unit, 0)
    owners = {(unit, index): layer for layer in layers for unit in Unit for index in layer.indices(unit)}

    def section(title: str, last: Mapping[Unit, int], layer: Layer | None = None) -> None:
        body = []
        for unit in Unit:
            for index in range(written[unit], last.get(unit, 0)):
                owner = owners.get((unit, index))
                whose = f" of {_plain(owner.name)}" if owner is not None and owner is not layer else ""
                body.append(f"{code[unit][index].text()}  # {index}{whose}")
            written[unit] = max(written[unit], last.get(unit, 0))
        lines.extend(["", f"# {title}", *body] if body else [])

    for layer in layers:
        section(f"{_plain(layer.name)} ({_plain(layer.kind)}), {layer.macs} MACs",
                {unit: runs[-1][1] for unit, runs in layer.instructions.items() if runs}, layer)  # fmt: skip
    section("no layer", {unit: len(instructions) for unit, instructions in code.items()})
    return "\n".join(lines) + "\n"


def assemble(text: str) -> tuple[HwConfig, dict[Unit, list[Ordered]]]:
    """Configuration and code of a text; inverse of `disassemble`.

    A `UsageError` (E2127, or that of the field) names the line.
    """
    config: HwConfig | None = None
    code: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
    for number, line in enumerate(text.split("\n"), 1):
        where = f"line {number}"
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        try:
            if word == "config":
                if config is not None:
                    raise UsageError("E2127", "a second configuration")
                config = HwConfig.from_json(rest)
            elif word in list(Unit):
                code[Unit(word)].append(_instruction(line, kinds(config) if config else UNITS))
            else:
                names = ", ".join(kinds(config) if config else UNITS)
                raise UsageError("E2127", f"a line is 'config' or one of {names}, not {word!r}")
        except UsageError as error:
            raise UsageError(error.code, error.what, where=where, hint=error.hint) from None
    if config is None:
        raise UsageError("E2127", "no 'config' line")
    return config, {unit: code[unit] for unit in kinds(config)}


def _instruction(line: str, known: Mapping[Unit, type[Ordered]]) -> Ordered:
    """The instruction of a line, its fields each given once and within their ranges."""
    fields = line.partition("#")[0].split()
    names = [field.partition("=")[0] for field in fields[1:]]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError("E2127", f"{fields[0]}.{min(repeated)} is given twice")
    if Unit(fields[0]) not in known:
        raise UsageError("E2127", f"the configuration has no unit {fields[0]!r}")
    instruction = known[Unit(fields[0])].parse(" ".join(fields))
    try:
        instruction.encode()
    except InternalError as error:
        raise UsageError("E2127", error.what) from None
    return instruction


def _plain(name: str) -> str:
    """A name on one line."""
    return name.encode("unicode_escape").decode() if not name.isprintable() else name
