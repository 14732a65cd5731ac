"""What memory keeps in another form than the model's: inputs as patches, and tensors less their constants."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..isa.link import MAX_STEP
from ..program.kept import Constants, Patches
from ..program.layout import Place
from ..program.model import DeviceProgram
from ..program.spans import spans


@dataclass(frozen=True)
class Loaded:
    """An input that is loaded as patches of `window` (rows, columns): bytes on the link as it is, and as patches."""

    tensor: str
    window: tuple[int, int]
    bytes_plain: int
    bytes: int


def patched(programs: Sequence[DeviceProgram]) -> list[Loaded]:
    """The inputs that are loaded as patches."""
    found = []
    for program in programs:
        for entry in program.tensors.values():
            if isinstance(entry.kept, Patches):
                _, _, height, width = entry.shape
                plain = _travelling(Place(0, height * width, width, entry.shape), program)
                found.append(Loaded(entry.name, entry.kept.kernel, plain, _travelling(entry.place, program)))
    return found


def _travelling(place: Place, program: DeviceProgram) -> int:
    """Bytes of a tensor on the link, without frames."""
    return 4 * sum(span.count for span in spans(place, program.config.word, MAX_STEP))


def constant_channels(programs: Sequence[DeviceProgram]) -> dict[str, int]:
    """Channels that are not computed because they are constant, `left_out`, and all that operations make, `of`."""
    made = [entry for program in programs for entry in program.tensors.values() if entry.op]
    gone = sum(len(entry.kept.values) for entry in made if isinstance(entry.kept, Constants))
    return {"left_out": gone, "of": sum(entry.shape[1] for entry in made)}


def sentences(loaded: Sequence[Loaded], constant: Mapping[str, int]) -> list[str]:
    """Both, for people."""
    lines = [
        f"input {one.tensor!r} travels as patches of {one.window[0]}x{one.window[1]}, which the host makes: "
        f"{one.bytes_plain:,} -> {one.bytes:,} bytes"
        for one in loaded
    ]
    if constant["left_out"]:
        gone, total = constant["left_out"], constant["of"]
        lines.append(f"{gone:,} of {total:,} channels are constant with these weights and not computed")
    return lines


def premises(programs: Sequence[DeviceProgram]) -> dict[str, Any]:
    """Both, for ``--json``: what a cycle count takes for granted."""
    return {
        "patches": [asdict(one) for one in patched(programs)],
        "constant_channels": constant_channels(programs),
    }
