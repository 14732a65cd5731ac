"""What the checker says of programs with moves: a linked program passes, and each rule refuses what breaks it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from small_networks import SMALL, inverted

from onnxhw.errors import InternalError
from onnxhw.isa.external_instructions import Move, waiting
from onnxhw.isa.instructions import Load, Ordered, Vector
from onnxhw.isa.memory import Space, host_stride
from onnxhw.isa.microcode import pack
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.sched import check, checker
from onnxhw.sched.completion_order import PLACE
from onnxhw.segments import PartCycles, link, make_plan

TIGHT = replace(
    SMALL, name="tight", act_depth=16, weight_depth=64, load_ucode=48, array_ucode=96, vector_ucode=128, move_ucode=512
)
"""Rings that most segments fill a good part of."""
MANY = replace(TIGHT, name="many", load_ucode=512, array_ucode=1024, vector_ucode=2048, move_ucode=2048)
"""The same with all its microcode on chip."""
FEW = replace(MANY, name="few", param_depth=16)
"""Most parameters come in each run, and two rows stay."""


@cache
def linked(name: str) -> DeviceProgram:
    graph, config = inverted(4, 6), {"tight": TIGHT, "many": MANY, "few": FEW}[name]
    return link(graph, make_plan(graph, config, PartCycles(config)), config)


def changed(program: DeviceProgram, unit: Unit, index: int, instruction: Ordered) -> DeviceProgram:
    """With another instruction, and the cycles that this gives."""
    code = {each: list(mine) for each, mine in program.code.items()}
    code[unit][index] = instruction
    return replace(program, code=code, cycles=timeline(program.config, code).cycles)


def broken(program: DeviceProgram, unit: Unit, index: int, **fields: int) -> DeviceProgram:
    """With some fields of an instruction changed."""
    return changed(program, unit, index, program.code[unit][index].but(**fields))


def refused(program: DeviceProgram, code: str, words: str) -> None:
    with pytest.raises(InternalError, match=words) as caught:
        check(program)
    assert caught.value.code == code


def refusal(program: DeviceProgram) -> str:
    """The code with which the checker refuses, empty if it does not."""
    try:
        check(program)
    except InternalError as error:
        return error.code
    return ""


def first(program: DeviceProgram, holds: Callable[[Move], bool]) -> tuple[int, Move]:
    """The first move of a kind."""
    moves = program.code[Unit.MOVE]
    return next((index, i) for index, i in enumerate(moves) if isinstance(i, Move) and holds(i))


@pytest.mark.parametrize("name", ["tight", "many"])
def test_a_linked_program_passes(name: str) -> None:
    program = linked(name)
    spaces = {i.space for i in program.code[Unit.MOVE] if isinstance(i, Move)}
    assert (Space.VECTOR_UCODE in spaces) == (name == "tight")
    assert check(program).cycles == program.cycles
    with pytest.raises(InternalError, match="cycles must be"):
        check(replace(program, cycles=program.cycles + 1))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"space": Space.EXTERNAL}, "no move loads into"),
        ({"space": Space.PARAM, "store": 1}, "no move stores from"),
        ({"chip": (1 << 24) - 1}, "reaches host word"),
        ({"external": (1 << 24) - 1}, "reaches word"),
        ({"word_n": 9000, "run_n": 4000, "block_n": 4000}, "words are moved so far"),
    ],
)
def test_what_no_move_can_do(fields: dict[str, int], words: str) -> None:
    program = linked("many")
    move = program.code[Unit.MOVE][0].but(**fields)
    refused(replace(program, code={**program.code, Unit.MOVE: [move, *program.code[Unit.MOVE][1:]]}), "E1204", words)


def test_a_store_goes_neither_over_constants_nor_over_inputs() -> None:
    program = linked("many")
    at, _ = first(program, lambda i: bool(i.store))
    _, constant = first(program, lambda i: i.space == Space.WEIGHT)
    refused(broken(program, Unit.MOVE, at, external=constant.external), "E1214", "which is a constant")
    _, whole = first(program, lambda i: i.space == Space.ACT and not i.store)
    refused(broken(program, Unit.MOVE, at, external=whole.external), "E1214", "which is of an input")


def test_constants_and_tensors_do_not_mix() -> None:
    program = linked("many")
    weights, constant = first(program, lambda i: i.space == Space.WEIGHT)
    tensor, box = first(program, lambda i: i.space == Space.ACT and not i.store)
    refused(broken(program, Unit.MOVE, weights, external=box.external), "E1214", "which is no constant")
    refused(broken(program, Unit.MOVE, tensor, external=constant.external), "E1214", "was not stored")


def test_all_outputs_are_stored_and_all_constants_brought() -> None:
    program = linked("many")
    last = max(n for n, i in enumerate(program.code[Unit.MOVE]) if isinstance(i, Move) and i.store)
    shorter = {**program.code, Unit.MOVE: program.code[Unit.MOVE][:last]}
    refused(replace(program, code=shorter, cycles=timeline(program.config, shorter).cycles), "E1214", "is not stored")
    more = np.append(program.external, np.uint32(7))
    refused(replace(program, external=more), "E1214", f"no move brings word {len(more) - 1} of the image")


@pytest.mark.parametrize("unit", [Unit.LOAD, Unit.ARRAY])
def test_every_instruction_waits_for_what_moves_bring(unit: Unit) -> None:
    """All microcode is there; the vector unit knows of moves by the array's instructions, so its fields may be less."""
    program, before, found = linked("many"), 0, set()
    for index, i in enumerate(program.code[unit]):
        if i.waits[-1] > before:
            found.add(refusal(changed(program, unit, index, i.but(after_move=before))))
            before = i.waits[-1]
    assert found - {""}
    assert found <= {"", "E1206", "E1207", "E1210"}


def test_a_move_waits_for_who_uses_what_it_overwrites() -> None:
    program, before, found = linked("many"), [0] * len(Unit), set()
    for index, i in enumerate(program.code[Unit.MOVE]):
        for place, count in enumerate(i.waits):
            if count > before[place]:
                counts = [*i.waits[:place], before[place], *i.waits[place + 1 :]]
                code = refusal(changed(program, Unit.MOVE, index, waiting(i, counts)))
                assert code in ("", "E1206", "E1207", "E1210")
                found |= {place} if code else set()
        before = [max(pair) for pair in zip(before, i.waits, strict=True)]
    assert found >= {PLACE[Unit.LOAD], PLACE[Unit.VECTOR]}


@pytest.mark.parametrize("space", [Space.WEIGHT, Space.PARAM])
def test_a_word_of_constants_is_read_whole(space: Space) -> None:
    program = linked("few")
    at, move = first(program, lambda i: i.space == space and i.word_n > 4)
    refused(broken(program, Unit.MOVE, at, chip=move.chip + 1), "E1206", "nothing has brought|different places")


def test_vector_and_move_do_not_write_one_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same cycle: a long move, and a vector instruction beside it that writes into its bank. Such a program
    breaks other rules, too, so the bank is looked at alone."""
    program = linked("many")
    config, moves = program.config, program.code[Unit.MOVE]
    words = host_stride(config.word) * config.act_depth

    def moving(at: int, bank: int) -> DeviceProgram:
        fields = {"chip": bank * words, "word_n": words, "run_n": 100, "block_n": 1, "c_run": 0, "e_run": 0}
        return changed(program, Unit.MOVE, at, waiting(moves[at].but(**fields), [0, 0, 0, 0, 0]))

    def beside(at: int) -> list[int]:
        """The banks that vector instructions write while a move goes on."""
        spans = timeline(config, moving(at, 0).code).spans
        move, pairs = spans[Unit.MOVE][at], zip(program.code[Unit.VECTOR], spans[Unit.VECTOR], strict=True)
        return [i.o_base // config.act_depth for i, span in pairs
                if isinstance(i, Vector) and move.issue < span.issue < span.done < move.done]  # fmt: skip

    loads = [n for n, i in enumerate(moves) if isinstance(i, Move) and i.space == Space.ACT and not i.store]
    at, banks = next((n, found) for n in loads if (found := beside(n)))
    monkeypatch.setattr(checker, "check_moves", lambda *_: None)
    refused(moving(at, banks[0]), "E1210", "writes a bank that")


def refill(program: DeviceProgram, last: bool) -> int:
    """The first or last move that brings microcode."""
    rings = {int(unit.microcode) for unit in Unit}
    found = [n for n, i in enumerate(program.code[Unit.MOVE]) if isinstance(i, Move) and i.space in rings]
    return found[-1 if last else 0]


def test_rings_have_the_words_that_are_fetched() -> None:
    program = linked("tight")
    at = refill(program, last=False)
    move = program.code[Unit.MOVE][at]
    assert isinstance(move, Move)
    assert move.word_n > 1
    made = broken(program, Unit.MOVE, at, word_n=move.word_n - 1)
    refused(with_microcode(program, made), "E1215", "are not in the ring")


def test_rings_are_at_the_end_as_they_were() -> None:
    program = linked("tight")
    at = refill(program, last=True)
    move = program.code[Unit.MOVE][at]
    assert isinstance(move, Move)
    refused(with_microcode(program, broken(program, Unit.MOVE, at, word_n=1)), "E1215", "not at the end what it was")


def with_microcode(before: DeviceProgram, after: DeviceProgram) -> DeviceProgram:
    """External memory with the microcode of the changed moves."""
    image, old = after.external.copy(), np.array(pack(before.code[Unit.MOVE]), np.uint32)
    new = np.array(pack(after.code[Unit.MOVE]), np.uint32)
    at = image.tobytes().find(old.tobytes())
    if at >= 0:
        image[at // 4 : at // 4 + len(new)] = new
    return replace(after, external=image)


def test_what_the_host_loads_stays_for_the_next_run() -> None:
    """Words that moves bring may be loaded by the host at first, but not be read before and then be written over."""
    program = linked("many")
    load = program.code[Unit.LOAD][0]
    assert isinstance(load, Load)
    weights = np.ones((program.config.weight_depth, program.config.weight_word), np.uint8)
    check(replace(program, weights=weights))
    code = {**program.code, Unit.LOAD: [load.but(after_move=0), *program.code[Unit.LOAD][1:]]}
    early = replace(program, weights=weights, code=code, cycles=timeline(program.config, code).cycles)
    with pytest.raises(InternalError) as caught:
        check(early)
    assert caught.value.code in ("E1206", "E1207")


def test_no_move_writes_over_constants_that_stay() -> None:
    program = linked("few")
    assert len(program.params)
    last = max(n for n, i in enumerate(program.code[Unit.MOVE]) if isinstance(i, Move) and i.space == Space.PARAM)
    refused(broken(program, Unit.MOVE, last, chip=0), "E1207", "over word 0, which the next run reads")
