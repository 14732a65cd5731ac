"""Results of several segments that stay on chip together, as the whole tensor that the segments behind them read.

Each of these segments, its `gathered` is that tensor, writes its only result where it belongs in the tensor's words.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..config import HwConfig
from ..ir.boxes import Box
from ..program.layout import Place
from .plan import Region, Segment, act_words, region_words


def on_chip(segments: Sequence[Segment]) -> set[Region]:
    """What is on chip, or may be, behind these segments: what the last one has read and made, and what it has made
    whole."""
    if not segments:
        return set()
    last = segments[-1]
    made = {last.gathered} if last.gathered and _complete(segments, last.gathered) else set[Region]()
    return {*last.inputs, *last.outputs, *made}


def _complete(segments: Sequence[Segment], whole: Region) -> bool:
    """Whether the last segments have made all of a tensor."""
    size = 0
    for segment in reversed(segments):
        if segment.gathered != whole:
            break
        size += sum(region.box.size for region in segment.outputs)
    return size == whole.box.size


def gathered_words(segment: Segment, config: HwConfig) -> int:
    """Activation words of the other parts of the tensor of which a segment makes one."""
    if segment.gathered is None:
        return 0
    return act_words(segment.gathered.box.shape, config) - region_words(segment.outputs, config)


def gathered_inputs(segments: Sequence[Segment], n: int) -> set[Region]:
    """What segment `n` reads, and finds on chip, that several segments have made."""
    made = {each.gathered for each in segments[:n]}
    return {region for region in segments[n].inputs if region in made and region not in segments[n].loads}


def not_gathered(segments: Sequence[Segment], whole: Region) -> tuple[Segment, ...]:
    """The segments if this tensor is stored, and loaded by those that read it."""
    return tuple(
        replace(
            segment,
            gathered=None if segment.gathered == whole else segment.gathered,
            loads=tuple(each for each in segment.inputs if each in segment.loads or each == whole),
            early=segment.early and whole not in segment.inputs,
        )
        for segment in segments
    )


def place_in(whole: Place, box: Box, word: int) -> Place:
    """Where a box of whole rows of a tensor lies in it; its channels begin with a word."""
    base = whole.base + box.channels[0] // word * whole.plane + box.rows[0] * whole.row
    return Place(base, whole.plane, whole.row, box.shape)
