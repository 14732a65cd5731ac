"""What of each memory a program uses, and where each tensor lies while it lives."""

from dataclasses import dataclass

from ..isa.memory import Space
from ..isa.microcode import length
from ..isa.timeline import Timeline
from ..isa.units import Unit, units_of
from ..program.external_use import external_words, filled_words
from ..program.model import DeviceProgram


@dataclass(frozen=True)
class Usage:
    """One memory: words used of words there are. `bytes` is the used part."""

    memory: str
    used: int
    words: int
    bytes: int

    @property
    def share(self) -> float:
        """Used part, 0..1."""
        return self.used / self.words if self.words else 0.0


@dataclass(frozen=True)
class Residence:
    """A tensor's stay in activation memory: words ``[low, high)`` per block, cycles ``[born, dead)``."""

    name: str
    shape: tuple[int, int, int, int]
    blocks: tuple[tuple[int, int], ...]
    born: int
    dead: int

    @property
    def words(self) -> int:
        """Words over all blocks."""
        return sum(high - low for low, high in self.blocks)


def usage(program: DeviceProgram) -> list[Usage]:
    """The memories of a program's configuration and what the program uses of them."""
    config = program.config
    act = len({word for life in lives(program, None) for low, high in life.blocks for word in range(low, high)})
    weights = len(program.weights) or filled_words(program, Space.WEIGHT)
    params = len(program.params) or filled_words(program, Space.PARAM)
    tables = len(program.tables) or -(-filled_words(program, Space.TABLE) // 256)
    rows = [
        Usage("activations", act, config.act_words, act * config.word),
        Usage("weights", weights, config.weight_depth, weights * config.weight_word),
        Usage("requantizer parameters", params, config.param_depth, params * config.lanes * 8),
        Usage("tables", tables, config.tables, tables * 256),
    ]
    for unit in units_of(config):
        words = min(length(program.code.get(unit, [])), unit.ucode(config))  # moves bring the others in time
        rows.append(Usage(f"microcode, {unit} unit", words, unit.ucode(config), words * 4))
    if config.external is not None:
        words = external_words(program)
        rows.append(Usage("external memory", words, config.external.host_words, words * 4))
    return rows


def lives(program: DeviceProgram, timeline: Timeline | None) -> list[Residence]:
    """The tensors in activation memory in the order of their birth; without a timeline all times are 0."""
    word, out = program.config.word, []
    for entry in program.tensors.values():
        if entry.external:
            continue
        place = entry.place
        _, _, height, width = place.shape
        height_words = (height - 1) * place.row + width
        starts = [place.base + block * place.plane for block in range(place.blocks(word))]
        blocks: list[tuple[int, int]] = []
        for start in starts:
            if blocks and blocks[-1][1] == start:
                blocks[-1] = (blocks[-1][0], start + height_words)
            else:
                blocks.append((start, start + height_words))
        born, dead = (_cycle(timeline, entry.ready), _cycle(timeline, entry.last)) if timeline else (0, 0)
        out.append(Residence(entry.name, place.shape, tuple(blocks), born, dead))
    return sorted(out, key=lambda life: (life.born, life.blocks))


def _cycle(timeline: Timeline, completed: int) -> int:
    """The cycle in which that many vector instructions have completed."""
    spans = timeline.spans[Unit.VECTOR]
    if completed <= 0:
        return 0
    return timeline.cycles if completed >= len(spans) else spans[completed - 1].over
