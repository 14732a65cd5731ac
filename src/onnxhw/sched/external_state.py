"""`ExternalState`: what external memory holds between the moves of a run, which come one after the other.

Its words are of four kinds, and stay it for the whole run, so that the next run finds what this one has found:

- *constants*: words of the image that moves bring to weights, parameters, tables or microcode. Nothing stores there;
- *inputs*: words of the pieces that the tensor table has of them. The host writes them, and nothing else;
- *states*: words that the run before has left, or the host. They are loaded before they are stored, never behind that,
  and in the end all of them are stored: so a run finds what the one before has made, and nothing of its own;
- *tensors*: all others. They are stored before they are loaded, into activation memory only, and loaded before
  something else is stored there.

Of a tensor each lane is known to hold something or not, as in activation memory.
"""

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..ir.states import State
from ..isa.memory import host_stride
from ..program.model import DeviceProgram, Entry, ExternalPiece

Words = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint8]
LANES = 0x0F
"""Bits of a word's bytes that hold something."""
STORED, INPUT, CONSTANT, READ, STATE = 0x10, 0x20, 0x40, 0x80, 0x100


class ExternalState:
    """The state of each word. What may not be done is a text, empty if it may."""

    def __init__(self, program: DeviceProgram) -> None:
        assert program.config.external is not None
        self.program, self.image = program, program.external
        self.words = program.config.external.host_words
        if len(self.image) > self.words:
            what = f"the image of external memory has {len(self.image)} words, the memory {self.words}"
            raise InternalError("E1203", what)
        self.state = np.zeros(self.words, np.uint16)
        pieces = [
            (*self._span(entry, piece), piece.storage) for name in dict.fromkeys(port.tensor for port in program.inputs)
            for entry in [program.tensors[name]] for piece in entry.external
        ]  # fmt: skip
        self._packed = sorted((first, end) for first, end, storage in pieces if storage is not None)
        for first, end, _ in pieces:
            self.state[first:end] |= INPUT | LANES
        self._needed = {state: self._begin(state) for state in program.states}

    def _begin(self, state: State) -> tuple[int, int, Lanes]:
        """The words of a state, and the lanes that hold something of it: as many as the end of a run has to leave."""
        entry, where = self.program.tensors[state.read], f"state {state.read!r}"
        if len(entry.external) != 1 or entry.external[0].storage or entry.external[0].place.shape != entry.shape:
            raise InternalError("E1211", "does not lie in external memory as it is", where=where)
        first, end = self._span(entry, entry.external[0])
        if (self.state[first:end] != 0).any():
            raise InternalError("E1211", "shares words with an input or another state", where=where)
        needed = self._lanes(entry, self.program.config.lanes)
        self.state[first:end] = needed | np.uint16(STATE)
        return first, end, needed

    def _span(self, entry: Entry, piece: ExternalPiece) -> tuple[int, int]:
        """The host words of a piece; `InternalError` E1211 if it has no proper place."""
        place, word = piece.place, self.program.config.word
        _, channels, height, width = place.shape
        dense = place.lane == 0 and (place.row, place.plane) == (width, height * width)
        stride = host_stride(word)
        first, count = place.base * stride, place.blocks(word) * height * width * stride
        if not dense or min(channels, height, width) < 1 or place.base < 0 or first + count > self.words:
            raise InternalError("E1211", f"has no place in external memory: {place}", where=f"tensor {entry.name!r}")
        return first, first + count

    def load_tensor(self, words: Words) -> tuple[str, Lanes]:
        """Load into activation memory; of words that may be, the lanes that hold something."""
        found = self.state[words]
        there, lanes = found & (STORED | INPUT | STATE) != 0, (found & LANES).astype(np.uint8)
        if not there.all():
            at = int(words[int(there.argmin())])
            return f"loads word {at} of external memory, which is of no input and was not stored", lanes
        late = found & (STORED | STATE) == STORED | STATE
        if late.any():
            at = int(words[int(late.argmax())])
            return f"loads word {at} of external memory, of a state, behind the store for the next run", lanes
        self.state[words] |= READ
        return "", lanes

    def packed(self, words: Words) -> Words:
        """Of each word the number of the packed input that it is of, or -1."""
        if not self._packed:
            return np.full(len(words), -1)
        firsts, ends = np.array(self._packed).T
        number = np.searchsorted(firsts, words, "right") - 1
        return np.where((number >= 0) & (words < ends[number]), number, -1)

    def load_constants(self, words: Words) -> str:
        """Load into another memory."""
        found = self.state[words]
        if int(words.max()) >= len(self.image):
            return f"loads word {int(words.max())} of external memory, whose image has {len(self.image)}"
        wrong = found & (STORED | INPUT | STATE) != 0
        if wrong.any():
            return f"loads word {int(words[int(wrong.argmax())])} of external memory, which is no constant"
        self.state[words] |= CONSTANT
        return ""

    def store(self, words: Words, lanes: Lanes) -> str:
        """Store from activation memory; `lanes`: those that hold something."""
        found = self.state[words]
        for bit, whose in ((INPUT, "of an input"), (CONSTANT, "a constant")):
            if (wrong := found & bit != 0).any():
                return f"stores over word {int(words[int(wrong.argmax())])} of external memory, which is {whose}"
        lost = found & (STORED | READ) == STORED
        if lost.any():
            return f"stores over word {int(words[int(lost.argmax())])} of external memory before it was loaded"
        self.state[words] = found & STATE | STORED | lanes
        return ""

    def check_end(self) -> None:
        """`InternalError` E1214 unless all outputs are there, all states are stored, and each word of the image that is
        not 0 was brought."""
        for name in dict.fromkeys(port.tensor for port in self.program.outputs):
            entry = self.program.tensors[name]
            if entry.external:
                self._output(entry)
        for state, (first, end, needed) in self._needed.items():
            self._require_stored(first, self.state[first:end], needed, STORED, f"state {state.read!r}")
        lost = np.flatnonzero((self.image != 0) & (self.state[: len(self.image)] & CONSTANT == 0))
        if len(lost):
            raise InternalError("E1214", f"no move brings word {int(lost[0])} of the image of external memory")

    def _output(self, entry: Entry) -> None:
        piece = entry.external[0]
        first, end = self._span(entry, piece)
        where = f"output {entry.name!r}"
        if piece.storage is not None or piece.place.shape != entry.shape:
            raise InternalError("E1211", "does not lie in external memory as it is", where=where)
        self._require_stored(first, self.state[first:end], self._lanes(entry, 1), STORED | INPUT, where)

    def _lanes(self, entry: Entry, group: int) -> Lanes:
        """Of each host word of a tensor the lanes of its channels, in whole groups of so many."""
        word = self.program.config.word
        lanes = np.zeros((entry.external[0].place.blocks(word), host_stride(word) * 4), bool)
        for channel in range(-(-entry.shape[1] // group) * group):
            lanes[channel // word, channel % word] = True
        bits = np.packbits(lanes.reshape(len(lanes), -1, 4), axis=2, bitorder="little")[..., 0]
        return np.repeat(bits[:, None, :], entry.shape[2] * entry.shape[3], axis=1).ravel()

    @staticmethod
    def _require_stored(first: int, found: npt.NDArray[np.uint16], needed: Lanes, kinds: int, where: str) -> None:
        missing = (found & needed != needed) | (found & kinds == 0)
        if missing.any():
            at = first + int(missing.argmax())
            raise InternalError("E1214", f"word {at} of external memory is not stored", where=where)
