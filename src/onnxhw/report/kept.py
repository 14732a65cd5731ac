"""What memory keeps in another form than the model's: inputs as patches, and tensors less their constants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..isa.memory import host_stride
from ..program.kept import Constants, Patches
from ..program.layout import Place
from ..program.model import Program


@dataclass(frozen=True)
class Loaded:
    """An input that is loaded as patches of `window` (rows, columns): bytes on the link as it is, and as patches."""

    tensor: str
    window: tuple[int, int]
    bytes_plain: int
    bytes: int


def patched(programs: Sequence[Program]) -> list[Loaded]:
    """The inputs that are loaded as patches."""
    found = []
    for program in programs:
        word = program.config.word
        for entry in program.tensors.values():
            if isinstance(entry.kept, Patches):
                sizes = [
                    place.blocks(word) * place.shape[2] * place.shape[3] * 4 * host_stride(word)
                    for place in (Place(0, 0, 0, entry.shape), entry.place)
                ]
                found.append(Loaded(entry.name, entry.kept.kernel, sizes[0], sizes[1]))
    return found


def constant_channels(programs: Sequence[Program]) -> dict[str, int]:
    """Channels that are not computed because they are constant, `left_out`, and all that operations make, `of`."""
    made = [entry for program in programs for entry in program.tensors.values() if entry.op]
    gone = sum(len(entry.kept.values) for entry in made if isinstance(entry.kept, Constants))
    return {"left_out": gone, "of": sum(entry.shape[1] for entry in made)}


def sentences(loaded: Sequence[Loaded], constant: Mapping[str, int]) -> list[str]:
    """Both, for people."""
    lines = [
        f"input {one.tensor!r} travels as patches of {one.window[0]}x{one.window[1]}: "
        f"{one.bytes_plain:,} -> {one.bytes:,} bytes"
        for one in loaded
    ]
    if constant["left_out"]:
        lines.append(f"{constant['left_out']:,} of {constant['of']:,} channels are constant and not computed")
    return lines
