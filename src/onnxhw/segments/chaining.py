"""`chained`: segments that find on chip what the one before has left, and load while it runs."""

from collections.abc import Sequence
from dataclasses import replace

from ..config import HwConfig
from .estimate import depends
from .plan import Segment, peak_words, ports_of, region_words


def chained(segments: Sequence[Segment], config: HwConfig) -> tuple[Segment, ...]:
    """The segments without loads of what is on chip from the one before, and with early loads where there is room."""
    found: list[Segment] = []
    for segment in segments:
        before, pending = (found[-1], found[-2].outputs if len(found) > 1 else ()) if found else (None, ())
        if before:
            kept = tuple(region for region in segment.loads if region in (*before.inputs, *before.outputs))
            if peak_words(before.graph, config, ports_of(before, kept)) > config.act_words:
                kept = ()
            loads = tuple(region for region in segment.loads if region not in kept)
            words = peak_words(before.graph, config, ports_of(before, kept))
            words += region_words(loads, config) + region_words(pending, config)
            early = bool(loads) and words <= config.act_words
            segment = replace(segment, loads=loads)
            segment = replace(segment, early=early and not depends(segment, before.outputs))
        found.append(segment)
    return tuple(found)
