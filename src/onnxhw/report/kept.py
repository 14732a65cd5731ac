"""What memory keeps in another form than the model's: inputs as patches, and tensors less their constants."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..isa.link import MAX_STEP
from ..program.kept import Constants, Patches
from ..program.layout import Place
from ..program.model import DeviceProgram
from ..program.spans import spans


def patched(programs: Sequence[DeviceProgram]) -> list[dict[str, Any]]:
    """The inputs that are loaded as patches of a window (rows, columns): bytes on the link as they are, and so."""
    found = []
    for program in programs:
        for entry in program.tensors.values():
            if isinstance(entry.kept, Patches):
                _, _, height, width = entry.shape
                plain = _travelling(Place(0, height * width, width, entry.shape), program)
                sizes = {"bytes_plain": plain, "bytes": _travelling(entry.place, program)}
                found.append({"tensor": entry.name, "window": entry.kept.kernel, **sizes})
    return found


def _travelling(place: Place, program: DeviceProgram) -> int:
    """Bytes of a tensor on the link, without frames."""
    return 4 * sum(span.count for span in spans(place, program.config.word, MAX_STEP))


def constant_channels(programs: Sequence[DeviceProgram]) -> dict[str, int]:
    """Channels that are not computed because they are constant, `left_out`, and all that operations make, `of`."""
    made = [entry for program in programs for entry in program.tensors.values() if entry.op]
    gone = sum(len(entry.kept.values) for entry in made if isinstance(entry.kept, Constants))
    return {"left_out": gone, "of": sum(entry.shape[1] for entry in made)}


def premises(programs: Sequence[DeviceProgram]) -> dict[str, Any]:
    """Both, for ``--json``: what a cycle count takes for granted."""
    return {"patches": patched(programs), "constant_channels": constant_channels(programs)}


def sentences(record: Mapping[str, Any]) -> list[str]:
    """The `premises` in a record, for people."""
    lines = [
        f"input {one['tensor']!r} travels as patches of {'x'.join(map(str, one['window']))}, which the host makes: "
        f"{one['bytes_plain']:,} -> {one['bytes']:,} bytes"
        for one in record["patches"]
    ]
    constant = record["constant_channels"]
    if constant["left_out"]:
        gone, total = constant["left_out"], constant["of"]
        lines.append(f"{gone:,} of {total:,} channels are constant with these weights and not computed")
    return lines
