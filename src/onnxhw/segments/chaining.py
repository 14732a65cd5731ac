"""`chained`: segments that find on chip what those before have left, and load while the one before runs."""

from collections.abc import Sequence
from dataclasses import replace

from ..config import HwConfig
from .estimate import depends
from .gathering import gathered_inputs, gathered_words, not_gathered, on_chip
from .plan import Segment, peak_words, ports_of, region_words


def chained(segments: Sequence[Segment], config: HwConfig) -> tuple[Segment, ...]:
    """The segments without loads of what is on chip from those before, and with early loads where there is room. What
    nobody would find is not gathered."""
    made = _chained(segments, config)
    found = {region for n in range(len(made)) for region in gathered_inputs(made, n)}
    for whole in dict.fromkeys(segment.gathered for segment in segments):
        if whole and whole not in found:
            segments = not_gathered(segments, whole)
    return _chained(segments, config)


def _chained(segments: Sequence[Segment], config: HwConfig) -> tuple[Segment, ...]:
    found: list[Segment] = []
    for segment in segments:
        before, pending = (found[-1], pending_words(found[:-1], config)) if found else (None, 0)
        if before:
            there = on_chip(found)
            kept = tuple(region for region in segment.loads if region in there)
            others = gathered_words(before, config)
            if peak_words(before.graph, config, ports_of(before, kept)) + others > config.act_words:
                kept = ()
            loads = tuple(region for region in segment.loads if region not in kept)
            words = peak_words(before.graph, config, ports_of(before, kept)) + others
            words += region_words(loads, config) + pending
            early = bool(loads) and words <= config.act_words
            segment = replace(segment, loads=loads)
            segment = replace(segment, early=early and not depends(segment, before.outputs))
        found.append(segment)
    return tuple(found)


def pending_words(segments: Sequence[Segment], config: HwConfig) -> int:
    """Activation words of results of the last one of these segments that are stored while the next one runs; those that
    are gathered lie in words that are in use anyway."""
    return region_words(segments[-1].outputs, config) if segments and not segments[-1].gathered else 0
