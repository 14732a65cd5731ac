"""Plans that are broken on purpose: each proof of the checker refuses its own."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from small_networks import NETWORKS, SMALL, anything

from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.ir.boxes import Box
from onnxhw.segments import Buffer, Plan, Region, check_plan, make_plan
from onnxhw.segments.estimate import depends
from onnxhw.segments.gathering import gathered_words
from onnxhw.segments.plan import peak_words, weights_of

CONFIG = replace(SMALL, act_depth=128)
GRAPH = NETWORKS["branches"]()
PLAN = make_plan(GRAPH, CONFIG, anything)


def changed(n: int, **fields: object) -> Plan:
    """The plan with another segment `n`."""
    segments = list(PLAN.segments)
    segments[n] = replace(segments[n], **fields)  # type: ignore[arg-type]
    return replace(PLAN, segments=tuple(segments))


def buffered(change: Callable[[Buffer], Buffer], weights: bool = False, first: int | None = None) -> Plan:
    """The plan with its largest buffer of a kind changed."""
    among = [each for each in PLAN.buffers if each.weights == weights and (first is None or each.first == first)]
    largest = max(among, key=lambda each: each.size)
    return replace(PLAN, buffers=tuple(change(each) if each is largest else each for each in PLAN.buffers))


def lost(n: int) -> Plan:
    return replace(PLAN, segments=PLAN.segments[:n] + PLAN.segments[n + 1 :])


def twice(n: int) -> Plan:
    return replace(PLAN, segments=PLAN.segments[: n + 1] + PLAN.segments[n:])


def shifted(region: Region) -> Region:
    return replace(region, box=region.box._replace(channels=tuple(at + 1 for at in region.box.channels)))


MADE = next(n for n, segment in enumerate(PLAN.segments[1:], 1) if depends(segment, PLAN.segments[n - 1].outputs))
KEPT = next(n for n, segment in enumerate(PLAN.segments) if len(segment.loads) < len(segment.inputs))
LAST = len(PLAN.segments) - 1
FIRST = PLAN.segments[0]
BROKEN: dict[str, tuple[Plan, str]] = {
    "a lost segment": (lost(1), "read before it is written"),
    "the last one lost": (lost(LAST), "not written as a whole"),
    "a segment twice": (twice(0), "written twice"),
    "no loads": (changed(0, loads=()), "not on chip"),
    "a load for nothing": (changed(0, loads=(*FIRST.loads, Region("x", Box((0, 1), (0, 1), (0, 1))))), "for nothing"),
    "another box": (changed(0, outputs=tuple(map(shifted, FIRST.outputs))), "no box|is not|twice"),
    "a smaller box": (
        changed(0, outputs=(replace(FIRST.outputs[0], box=Box((0, 1), (0, 1), (0, 1))), *FIRST.outputs[1:])), "is not",
    ),
    "another tensor": (
        changed(0, outputs=(replace(FIRST.outputs[0], tensor="x"), *FIRST.outputs[1:])),
        "no box|is not|twice|is being made",
    ),
    "no outputs": (changed(0, outputs=()), "other ports"),
    "too early": (changed(MADE, early=True), "loaded while|comes too early"),
    "what is not kept": (lost(KEPT - 1), "not on chip|before it is written"),
    "early before all": (changed(0, early=True), "nothing runs before it"),
    "a small buffer": (buffered(lambda each: replace(each, size=each.size - 1)), "tensor's size"),
    "small weights": (buffered(lambda each: replace(each, size=each.size - 1), True), "bytes for its weights"),
    "weights that come late": (buffered(lambda each: replace(each, first=0), True), "not kept"),
    "weights that go": (buffered(lambda each: replace(each, last=0), True), "not kept"),
    "an input that comes late": (buffered(lambda each: replace(each, first=0), first=-1), "not kept"),
    "a buffer that goes": (buffered(lambda each: replace(each, last=each.first)), "not kept"),
    "beyond the end": (buffered(lambda each: replace(each, address=1 << 25)), "leaves external"),
    "below 0": (buffered(lambda each: replace(each, address=-1)), "leaves external"),
    "one byte shared": (
        buffered(lambda each: replace(each, address=each.address + 32 - 31 * (each.address > 0))), "shares bytes",
    ),
    "no buffers": (replace(PLAN, buffers=()), "has no buffer"),
    "a buffer twice": (replace(PLAN, buffers=(*PLAN.buffers, PLAN.buffers[0])), "one name"),
}  # fmt: skip


def test_the_plan_is_proved() -> None:
    check_plan(GRAPH, PLAN, CONFIG)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_plans_are_refused(name: str) -> None:
    broken, why = BROKEN[name]
    with pytest.raises(InternalError, match=why) as error:
        check_plan(GRAPH, broken, CONFIG)
    assert error.value.code == "E1391"


def proved(config: HwConfig, plan: Plan) -> bool:
    """Whether a plan is proved for a configuration."""
    try:
        check_plan(GRAPH, plan, config)
    except InternalError as error:
        return "words" not in error.what
    return True


def test_memories_as_large_as_the_plan_needs_and_no_smaller() -> None:
    """Weights: those of the segment with most. Activations: of early loads, tensors of two segments lie there."""
    most = max(sum(weights_of(segment, CONFIG).values()) for segment in PLAN.segments)
    assert proved(replace(CONFIG, weight_depth=most), PLAN)
    assert not proved(replace(CONFIG, weight_depth=most - 1), PLAN)
    roomy = make_plan(GRAPH, replace(CONFIG, act_depth=256), anything)
    late = replace(roomy, segments=tuple(replace(each, early=False) for each in roomy.segments))
    alone = max(peak_words(segment.graph, CONFIG) + gathered_words(segment, CONFIG) for segment in roomy.segments)
    banks = [n for n in range(1, 17) if proved(replace(CONFIG, act_banks=n, act_depth=64), late)]
    assert banks == [*range(-(-alone // 64), 17)]
    assert not proved(replace(CONFIG, act_banks=banks[0], act_depth=64), roomy)
    assert proved(replace(CONFIG, act_depth=256), roomy)
