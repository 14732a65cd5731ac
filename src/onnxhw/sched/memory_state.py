"""The memory-state check: whose value each lane of activation memory holds after each vector instruction."""

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..program.model import DeviceProgram

Words = npt.NDArray[np.int64]


class MemoryState:
    """The state of activation memory between vector instructions.

    A write at vector instruction v is for that tensor of the table which covers the word and is the
    next to become ready. `holder` is the tensor's number per word and lane group, `latest` that of the
    word's last write; -1: nothing yet.
    """

    def __init__(self, program: DeviceProgram) -> None:
        self.config = program.config
        self.names = list(program.tensors)
        self.ready = [entry.ready for entry in program.tensors.values()]
        self.words = [tensor_words(program, name) for name in self.names]
        size = program.config.act_words
        self.latest = np.full(size, -1, np.int64)
        self.holder = np.full((size, program.config.lane_groups), -1, np.int64)
        for port in program.inputs:
            number = self.names.index(port.tensor)
            self.latest[self.words[number]] = number
            self.holder[self.words[number]] = number
        self.next = np.full(size, -1, np.int64)
        self._find_next(0)

    def _find_next(self, count: int) -> None:
        self.next[:] = -1
        for number in sorted(range(len(self.names)), key=lambda number: -self.ready[number]):
            if self.ready[number] > count:
                self.next[self.words[number]] = number

    def stale(self, reads: Words, groups: npt.NDArray[np.bool_]) -> str:
        """Why these lane groups of these words must not be read; empty if they may."""
        if not len(reads):
            return ""
        holders, latest = self.holder[np.ix_(reads, np.flatnonzero(groups))], self.latest[reads]
        if (latest < 0).any():
            return f"may read word {int(reads[int(latest.argmin())])} before it is written"
        wrong = (holders != latest[:, None]).any(axis=1)
        if wrong.any():
            at = int(wrong.argmax())
            return f"may read word {int(reads[at])} before all its lanes hold tensor {self.names[int(latest[at])]!r}"
        return ""

    def write(self, index: int, words: Words, groups: npt.NDArray[np.bool_]) -> str:
        """Vector instruction `index` writes; why it must not, or empty."""
        if index in self.ready:
            self._find_next(index)
        owners = self.next[words]
        if (owners < 0).any():
            return f"writes word {int(words[int(owners.argmin())])}, which no tensor of the table is waiting for"
        self.latest[words] = owners
        self.holder[np.ix_(words, np.flatnonzero(groups))] = owners[:, None]
        return ""


def tensor_words(program: DeviceProgram, name: str) -> Words:
    """The activation words of a tensor; `InternalError` E1211 if it has no proper place."""
    if name not in program.tensors:
        raise InternalError("E1211", "is not in the tensor table", where=f"tensor {name!r}")
    words = program.tensors[name].place.addresses(program.config.word).ravel().astype(np.int64)
    if int(words.min()) < 0 or int(words.max()) >= program.config.act_words:
        raise InternalError("E1211", f"does not lie in {program.config.act_words} words", where=f"tensor {name!r}")
    return words


def lane_groups(program: DeviceProgram, name: str) -> npt.NDArray[np.bool_]:
    """``[blocks, lane groups]``: which lane groups of a tensor's words hold channels of it."""
    place, config = program.tensors[name].place, program.config
    lanes = np.zeros(place.blocks(config.word) * config.word, bool)
    lanes[place.lane : place.lane + place.shape[1]] = True
    return np.asarray(lanes.reshape(-1, config.lane_groups, config.lanes).any(axis=2))
