"""`LinkedCode`: instructions of segments one behind the other, the moves beside them, and their microcode.

What an instruction waits for is kept as numbers from the begin of the run, and as references to moves, until all moves
are known. Then the ordering fields are set, microcode that does not fit the rings is brought by moves, too, and at the
end of the run the rings get their first words back, for the next run.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..config import HwConfig
from ..errors import DoesNotFitError, InternalError
from ..isa.external_instructions import COUNT_BITS, Move, fetched, reads_waited, waiting
from ..isa.instructions import UNITS, Ordered
from ..isa.memory import Space
from ..isa.microcode import mask, pack
from ..isa.units import Unit
from .regions import ExternalMap, linear

LOADER = 128
"""Words of the moves' microcode that one move brings. Four fit the ring of a preset, so that it comes long before the
fetcher is there; each costs some 150 columns of external memory."""
ROUNDS = 16
"""Times that the microcode is laid out at most. What is left out of the moves may make it shorter, which moves the
rest; three times were enough for all networks so far."""
MOST = (1 << COUNT_BITS) - 1
"""Instructions of a unit in a run, which counters and ordering fields count."""
Counts = dict[Unit, int]


@dataclass(frozen=True)
class Microcode:
    """The microcode of the instructions `first .. end - 1` of a unit: of it what lies before the end of the ring, or,
    if `wrapped`, what lies behind it."""

    unit: Unit
    first: int
    end: int
    wrapped: bool


@dataclass(eq=False)
class LinkedMove:
    """A move: its fields, and what it waits for. `number`: of moves that are completed with it; 0 before they are in
    order."""

    fields: dict[str, int]
    after: Counts
    number: int = 0
    microcode: Microcode | None = None


@dataclass(eq=False)
class LinkedInstruction:
    """An instruction; what it waits for from the begin of the run on, of each `Unit` in turn, and of vector
    instructions that must have read; and the moves that it waits for."""

    instruction: Ordered
    waits: tuple[int, ...]
    reads: int
    moves: list[LinkedMove] = field(default_factory=list)

    @property
    def move(self) -> int:
        """How many moves it waits for."""
        return max((move.number for move in self.moves), default=0)


class LinkedCode:
    """Everything that runs, as far as it is known.

    Members: `units`, instructions by unit; `moves`, in order.
    """

    def __init__(self, config: HwConfig, external: ExternalMap) -> None:
        self.config, self.external = config, external
        self.units: dict[Unit, list[LinkedInstruction]] = {unit: [] for unit in UNITS}
        self.moves: list[LinkedMove] = []
        self._known: dict[Unit, tuple[list[int], list[Ordered]]] = {}
        """Of a unit the moves that its instructions waited for when they were last encoded, and what came of it."""
        self._brought = 0
        """Words of the moves' microcode that are read from external memory."""

    @property
    def counts(self) -> Counts:
        """Instructions of each unit so far."""
        return {unit: len(mine) for unit, mine in self.units.items()}

    def put(self, move: LinkedMove) -> None:
        """Append a move."""
        self.moves.append(move)
        move.number = len(self.moves)

    def segment(self, code: Mapping[Unit, Sequence[Ordered]]) -> dict[Unit, list[LinkedInstruction]]:
        """Append the code of a segment, of which each instruction waits for all that came before, and return it."""
        before = self.counts
        offsets = [before.get(unit, 0) for unit in Unit]
        added: dict[Unit, list[LinkedInstruction]] = {}
        for unit in UNITS:
            mine = code.get(unit, ())
            added[unit] = []
            for instruction in mine:
                counts = tuple(count + offset for count, offset in zip(instruction.waits, offsets, strict=True))
                reads = reads_waited(instruction) + before[Unit.VECTOR]
                added[unit].append(LinkedInstruction(instruction, counts, reads))
            self.units[unit] += added[unit]
        return added

    def microcode(self, unit: Unit, count: int) -> list[LinkedMove]:
        """The moves that bring the microcode of a unit's last `count` instructions: one up to the end of the ring, one
        behind it. The instruction before waits for them, because with it the next one is fetched."""
        end = len(self.units[unit])
        first = end - count
        moves = [LinkedMove({}, {}, microcode=Microcode(unit, first, end, wrapped)) for wrapped in (False, True)]
        if first:
            self.units[unit][first - 1].moves += moves
        return moves

    def require_countable(self) -> None:
        """`DoesNotFitError` E5190 if a unit has more instructions than its counter counts."""
        for unit, mine in self.units.items():
            _require_countable(unit, len(mine))

    def free_for(self, unit: Unit) -> list[int]:
        """For each of a unit's instructions, how many must have completed before words of microcode up to its last one
        may be brought, as far as that can be told before moves have numbers: rather one too many."""
        ends = np.array([each.end for each in fetched(self._encoded(unit))], np.int64)
        most = ends + np.cumsum([bool(item.moves) for item in self.units[unit]], dtype=np.int64)
        last = np.searchsorted(ends, most - unit.ucode(self.config), side="left")
        found: list[int] = np.where(most > unit.ucode(self.config), last + 1, 0).tolist()
        return found

    # -- the end -------------------------------------------------------------------------------

    def finish(self) -> dict[Unit, list[Ordered]]:
        """The code of all units; microcode that is longer than its ring lies in external memory, too.

        `DoesNotFitError` E5104: a segment's microcode is too long for its ring; E5190: there are more moves than their
        counter counts.
        """
        kept, ends = self._without_preloaded()
        _require_countable(Unit.MOVE, len(kept))
        lengths = {unit: mine[-1] if mine else 0 for unit, mine in ends.items()}
        bases = {unit: self.external.reserve(n) for unit, n in lengths.items() if n > unit.ucode(self.config)}
        for move in kept:
            if move.microcode:
                self._place(move, move.microcode, ends, bases)
        for unit, base in bases.items():
            self._restore(kept, unit, base)
        own = self.external.words
        final = self._with_loaders(kept, own)
        code = {unit: list(self._encoded(unit)) for unit in UNITS}
        code[Unit.MOVE] = final
        for unit in UNITS:
            words = np.array(pack(code[unit]), np.uint32)
            if len(words) != lengths[unit]:
                raise InternalError("E1392", f"{unit} has {len(words)} words of microcode, not {lengths[unit]}")
            if unit in bases:
                self.external.fill(bases[unit], words)
        if self._brought:  # the last loaders may bring words behind the last one
            words = np.array(pack(final), np.uint32)
            words = np.append(words, np.zeros(max(0, self._brought - len(words)), np.uint32))
            self.external.reserve(len(words))
            self.external.fill(own, words)
        return code

    def _without_preloaded(self) -> tuple[list[LinkedMove], dict[Unit, list[int]]]:
        """The moves without those for microcode that is in the rings from the begin on, and where in its microcode the
        words of each instruction of a unit end, the next one's mask included."""
        every = [move for move in self.moves if move.fields or move.microcode]
        kept = every
        for _ in range(ROUNDS):
            _number(self.moves, kept)
            ends = {unit: [each.end for each in fetched(self._encoded(unit))] for unit in UNITS}
            now = [move for move in every if not move.microcode or self._words(move.microcode, ends)[1] > 0]
            if len(now) == len(kept) and all(a is b for a, b in zip(now, kept, strict=True)):
                return kept, ends
            kept = now

        raise InternalError("E1392", "the microcode of a linked program has no fixed place")

    def _words(self, part: Microcode, ends: Mapping[Unit, Sequence[int]]) -> tuple[int, int]:
        """The first word of a piece of microcode that is not in the ring from the begin on, and how many there are."""
        depth, mine = part.unit.ucode(self.config), ends[part.unit]
        first, end = max(depth, mine[part.first - 1] if part.first else 0), mine[part.end - 1]
        wrap = -(-(first + 1) // depth) * depth
        if part.wrapped:
            return wrap, max(0, end - wrap)
        return first, max(0, min(end, wrap) - first)

    def _place(
        self, move: LinkedMove, part: Microcode, ends: Mapping[Unit, Sequence[int]], bases: Mapping[Unit, int]
    ) -> None:
        """The fields of a move that brings microcode, which waits until what it overwrites has been fetched."""
        unit, depth, mine = part.unit, part.unit.ucode(self.config), ends[part.unit]
        first, words = self._words(part, ends)
        # The last instruction that has words at or before the last one that is overwritten.
        last = bisect_left(mine, first + words - depth)
        if last >= part.first - 1:
            raise DoesNotFitError(
                "E5104", f"{unit} microcode of {mine[part.end - 1] - mine[part.first - 1]} words at once, the ring of "
                f"{self.config.name} has {depth}", hint=f"a configuration with more {unit}_ucode",
            )  # fmt: skip
        (strided,) = linear(first % depth, bases[unit] + first, words)
        move.fields = strided.fields(unit.microcode, False)
        move.after[unit] = last + 1

    def _restore(self, kept: list[LinkedMove], unit: Unit, base: int) -> None:
        """Bring the first words of a ring back at the end of the run."""
        (strided,) = linear(0, base, unit.ucode(self.config))
        kept.append(LinkedMove(strided.fields(unit.microcode, False), self.counts, len(kept) + 1))

    def _encoded(self, unit: Unit) -> list[Ordered]:
        """A unit's instructions with their ordering fields."""
        items = self.units[unit]
        moves = [item.move if item.moves else 0 for item in items]
        if unit not in self._known or self._known[unit][0] != moves:
            absolute: Sequence[int] = [0] * len(Unit)
            found: list[Ordered] = []
            for item, move in zip(items, moves, strict=True):
                absolute = list(map(max, absolute, (*item.waits[:-1], move)))
                found.append(waiting(item.instruction, absolute, item.reads))
            self._known[unit] = moves, found
        return self._known[unit][1]

    def _with_loaders(self, kept: list[LinkedMove], own: int) -> list[Ordered]:
        """The moves as instructions, numbered anew: with those that bring further microcode of moves, whose words lie
        at `own` in external memory, if it does not fit its ring."""
        plain = _moves(kept)
        depth = self.config.move_ucode
        if len(pack(plain)) <= depth:
            _number(self.moves, kept)
            return plain
        if depth < 4 * LOADER:
            raise DoesNotFitError("E5104", f"move microcode has a ring of {depth} words, {4 * LOADER} are needed",
                                  hint="a configuration with more move_ucode")  # fmt: skip
        # A loader stands as soon as the words that it overwrites lie before it, which are fetched when it runs.
        # With each come its own words, and of the move behind it those that were as in the move before.
        most = (len(pack(plain)) // (LOADER - 2 * (Move.words() + 1)) + 1) * LOADER
        sequence, loaded, words = self._loaded(kept, own, most)
        if (fewer := self._loaded(kept, own, words))[2] <= depth + fewer[1] * LOADER:
            sequence, loaded, _ = fewer
        (strided,) = linear(0, own, depth)
        sequence.append(LinkedMove(strided.fields(Space.MOVE_UCODE, False), self.counts, 0))
        _require_countable(Unit.MOVE, len(sequence))
        _number(self.moves, sequence)
        self.moves, self._brought = sequence, depth + loaded * LOADER
        return _moves(sequence)

    def _loaded(self, kept: Sequence[LinkedMove], own: int, most: int) -> tuple[list[LinkedMove], int, int]:
        """The moves, with those that bring their microcode up to the word `most`: how many these are, and the words of
        all, but for the one that brings the first words back."""
        depth = self.config.move_ucode
        sequence: list[LinkedMove] = []
        words, loaded = 0, 0
        absolute: list[int] = [0] * len(Unit)
        last: Ordered | None = None
        for move in kept:
            loader = None
            if words >= (loaded + 1) * LOADER and depth + loaded * LOADER < most:
                (strided,) = linear(loaded * LOADER % depth, own + depth + loaded * LOADER, LOADER)
                loader = LinkedMove(strided.fields(Space.MOVE_UCODE, False), {}, 0)
                loaded += 1
            for each in (loader, move) if loader else (move,):
                absolute, instruction = _next(each, absolute)
                words += mask(last, instruction).bit_count() + 1
                sequence.append(each)
                last = instruction
        return sequence, loaded, words + Move.words() + 1


def _require_countable(unit: Unit, count: int) -> None:
    if count > MOST:
        what = f"{count} {unit} instructions in a run, a counter counts {MOST}"
        raise DoesNotFitError("E5190", what, hint="a smaller model, or a preset with larger memories")


def _number(moves: Iterable[LinkedMove], kept: Sequence[LinkedMove]) -> None:
    """Number the moves that are kept; who waits for another waits for the one before it."""
    for number, move in enumerate(kept):
        move.number = number + 1
    there, last = set(map(id, kept)), 0
    for move in moves:
        if id(move) in there:
            last = move.number
        else:
            move.number = last


def _moves(moves: Sequence[LinkedMove]) -> list[Ordered]:
    """The moves as instructions."""
    found: list[Ordered] = []
    absolute = [0] * len(Unit)
    for move in moves:
        absolute, instruction = _next(move, absolute)
        found.append(instruction)
    return found


def _next(move: LinkedMove, absolute: Sequence[int]) -> tuple[list[int], Ordered]:
    """A move as an instruction behind others that waited for the counts `absolute`; and what it waits for."""
    counts = [*(move.after.get(unit, 0) for unit in UNITS), 0]
    waits = list(map(max, absolute, counts))
    return waits, waiting(Move(**move.fields), waits)
