"""What a program in segments takes of external memory, and of the core's memories that moves fill."""

from collections.abc import Iterable
from typing import Any

from ..config import HwConfig
from ..isa.external_instructions import Move
from ..isa.memory import Space, host_stride, word_bytes
from ..isa.units import Unit
from .model import DeviceProgram


def moves(program: DeviceProgram) -> list[Move]:
    """The moves of a program, in order."""
    return [move for move in program.code.get(Unit.MOVE, ()) if isinstance(move, Move)]


def moved_bytes(program: DeviceProgram) -> int:
    """Bytes that pass between external memory and the core in a run."""
    return sum(4 * move.runs * move.word_n for move in moves(program))


def external_words(program: DeviceProgram) -> int:
    """32-bit words of external memory up to the last one that a program uses."""
    pieces = [piece.place for entry in program.tensors.values() for piece in entry.external]
    word = program.config.word
    tensors = [(place.base + place.blocks(word) * place.plane) * host_stride(word) for place in pieces]
    runs = [i.external + (i.block_n - 1) * i.e_block + (i.run_n - 1) * i.e_run + i.word_n for i in moves(program)]
    return max([len(program.external), *tensors, *runs], default=0)


def filled_words(program: DeviceProgram, space: Space) -> int:
    """Words of one of the core's memories up to the last one that moves fill."""
    stride = host_stride(word_bytes(program.config, space))
    filled = (
        i.chip + (i.block_n - 1) * i.c_block + (i.run_n - 1) * i.c_run + i.word_n
        for i in moves(program) if i.space == space and not i.store
    )  # fmt: skip
    return -(-max(filled, default=0) // stride)


def external_record(programs: Iterable[DeviceProgram], config: HwConfig | None) -> dict[str, Any] | None:
    """For ``--json``: what the programs of a model take of external memory, which all of them share in turn; None
    without one."""
    found = list(programs)
    if config is None or config.external is None:
        return None
    return {
        "segments": sum(program.segments for program in found),
        "bytes": 4 * max(map(external_words, found), default=0),
        "bytes_available": config.external.size,
        "image_bytes": sum(program.external.nbytes for program in found),
        "moved_bytes": sum(map(moved_bytes, found)),
    }


def external_sentence(record: dict[str, Any]) -> str:
    """The same for people."""
    return (
        f"{record['segments']:,} segments run one after the other: {record['bytes']:,} of "
        f"{record['bytes_available']:,} bytes of external memory, {record['moved_bytes']:,} bytes moved in a run"
    )
