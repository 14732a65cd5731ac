"""`DeviceModel`: the device's end of the link in Python, answer by answer what `onnxhw.rtl.link.commands` does."""

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..isa.link import (
    ANSWER_WORDS,
    ARMED,
    COMMIT_WORDS,
    COMPLETE,
    CRC_BYTES,
    HEADER_BYTES,
    IMAGE,
    LOADED,
    MAX_WORDS,
    RECENT,
    REGISTERS,
    REPLY,
    SEND_WINDOW,
    VERSION,
    WITH_EXTERNAL,
    WRITABLE,
    Command,
    Header,
    Info,
    Status,
    commit_words,
    load_record,
)
from ..isa.memory import RUNNING, WATCHDOG, Control, Space
from .framing import Frame, cobs_decode, crc32c

LONGEST_WORDS = 255
"""A frame of more words is dropped."""
FULL_CREDIT = 255
INPUT_SPACES = Space.ACT, Space.INPUT, Space.EXTERNAL_INPUT
"""Where a WRITE waits until a run has done with its inputs."""
PORTION = 64
"""Byte times that pass while the host only listens."""


class CoreAccess(Protocol):
    """What the device has behind the link: the memories and control registers of a core, and its input port."""

    @property
    def input_over(self) -> bool:
        """The words that were written to INPUT are all that belong to the inputs, and in their places."""

    def write(self, space: int, address: int, words: npt.ArrayLike, step: int = 1, /) -> None:
        """Write host words at `address`, `address + step`, ..."""

    def read(self, space: int, address: int, count: int, step: int = 1, /) -> Any:
        """Read `count` host words from there."""


class DeviceModel:
    """Bytes in, bytes out; a `ByteLine`, on a clock that counts the bytes of the line at the description's baud rate.

    Differs from the gateware in time only: a command takes none, so the input never fills and the credit is always
    the full one. A bad frame is answered only while the reply line is idle, as in the gateware.
    """

    def __init__(self, info: Info, core: CoreAccess) -> None:
        self.info, self.core = info, core
        words = info.to_words()
        self._description = words + [0] * ((1 << (len(words) - 1).bit_length()) - len(words))
        self.session = 0
        self.due = 0
        self.loaded = info.standalone
        self.load_crc = 0
        self.image = False
        """External memory holds a complete image, with `image_crc`."""
        self.image_crc = 0
        self.token = 0
        self.armed = self.complete = False
        """A RUN waits for its inputs; they are complete, and no run has taken them."""
        self._following = 0
        self.dropped = 0
        self._gap = False
        self._kept, self._keep = np.zeros(ANSWER_WORDS, "<u4"), 0
        self._answers = [(0, 0)] * SEND_WINDOW
        """Of the last numbers: the token, and where the answer's words are kept."""
        self._held: deque[tuple[Header, bytes, int] | None] = deque()
        """Frames behind one that waits for the run; None is a bad one."""
        self._piece, self._spoiled = bytearray(), False
        self._byte = 10 / info.baud
        self._time = self._line_free = 0.0
        self._sending: deque[tuple[float, bytes]] = deque()

    # -- the line ------------------------------------------------------------------------------

    def exchange(self, data: Iterable[int]) -> bytes:
        """Take the bytes (0x100: a framing error) at line speed; the replies that were whole by then."""
        chunks = _chunks(data)
        if not chunks:
            self._time += PORTION * self._byte
            self._send(self.feed(b"", idle=self._time >= self._line_free))
        for chunk in chunks:
            self._time += len(chunk) * self._byte
            self._send(self.feed(chunk, idle=self._time >= self._line_free))
        out = b""
        while self._sending and self._sending[0][0] <= self._time:
            out += self._sending.popleft()[1]
        return out

    def seconds(self) -> float:
        """Time on the line's clock."""
        return self._time

    def _send(self, reply: bytes) -> None:
        if reply:
            self._line_free = max(self._line_free, self._time) + len(reply) * self._byte
            self._sending.append((self._line_free, reply))

    # -- frames --------------------------------------------------------------------------------

    def feed(self, items: Iterable[int], *, idle: bool = True) -> bytes:
        """Answers to the frames that these items complete, or that have waited; `idle`: nothing is being sent."""
        out = self._work(idle=idle)
        for chunk in _chunks(items):
            self._spoiled |= not isinstance(chunk, bytes) and max(chunk) > 0xFF
            whole = chunk if isinstance(chunk, bytes) else bytes(item & 0xFF for item in chunk)
            self._piece += whole.rstrip(b"\0")
            if not chunk[-1]:
                piece, spoiled = bytes(self._piece), self._spoiled
                self._piece, self._spoiled = bytearray(), False
                # A single byte is a code without anything behind it.
                if len(piece) > 1:
                    self._held.append(_intact(None if spoiled else cobs_decode(piece)))
                    out += self._work(idle=idle)
        return out

    @property
    def waits(self) -> bool:
        """The next frame, and all behind it, wait for the run in progress."""
        if not self._held or self._held[0] is None:
            return False
        header, _, words = self._held[0]
        if not self._formed(header, words) or header.session != self.session or header.seq != self.due:
            return False
        registers = [int(word) for word in self.core.read(Space.CONTROL, Control.RUN, Control.VECTOR_DONE + 1)]
        array, vector = (registers[Control.INPUT_FREE] >> shift & 0xFFFF for shift in (0, 16))
        done = registers[Control.ARRAY_DONE] >= array and registers[Control.VECTOR_DONE] >= vector
        free = done and registers[Control.INPUT_FREE] != 0
        of_input = header.kind & 15 == Command.WRITE and _where(header)[0] in INPUT_SPACES and not free
        of_end = header.kind & 15 == Command.POLL and bool(header.address & 1)
        return bool(registers[Control.RUN] & RUNNING) and (of_input or of_end)

    def _work(self, *, idle: bool) -> bytes:
        """Answers to the frames that need not wait."""
        out = b""
        while self._held and not self.waits:
            frame = self._held.popleft()
            out += self._bad(idle=idle and not out) if frame is None else self._perform(*frame)
        return out

    def _bad(self, *, idle: bool) -> bytes:
        self.dropped = (self.dropped + 1) % 0x10000
        if not idle:
            return b""
        self._gap = True
        return self._answer(Header(0, self.due, Status.BAD_FRAME, 0, 0))

    def _answer(self, header: Header, payload: bytes = b"") -> bytes:
        count = len(payload) // 4
        reply = Header(header.kind | REPLY, header.seq, header.space, header.address, count, FULL_CREDIT)
        return Frame(reply, payload).encode()

    def _refuse(self, header: Header, status: Status) -> bytes:
        return self._answer(Header(header.kind, header.seq, status, header.address, 0))

    def _perform(self, header: Header, payload: bytes, words: int) -> bytes:
        command = header.kind & 15
        if not self._formed(header, words):
            return self._refuse(header, Status.BAD_COMMAND)
        if command == Command.HELLO:
            if header.session != self.session or not self.session:
                self._forget_inputs()
            self.session, self._gap = header.session, False
            return self._answer(Header(header.kind, self.due, Status.OK, header.address, 0))
        if command == Command.INFO:
            size = len(self._description)
            found = [self._description[(header.address + at) % size] for at in range(header.count)]
            return self._done(header, struct.pack(f"<{len(found)}I", *found))
        if header.session != self.session or not self.session:
            return self._refuse(header, Status.NO_SESSION)
        behind = (self.due - header.seq) % 256
        reads = command in (Command.READ, Command.POLL)
        if behind > RECENT:
            if self._gap:
                return b""
            self._gap = True
            return self._answer(Header(0, self.due, Status.SEQUENCE, 0, 0))
        if behind:
            return self._again(header) if reads else self._done(header)
        running = bool(int(self.core.read(Space.CONTROL, Control.RUN, 1)[0]) & RUNNING)
        reads_act = command == Command.READ and header.space & 15 == Space.ACT
        to_input = command == Command.WRITE and header.space & 15 == Space.INPUT
        writes_data = command == Command.WRITE and (to_input or self._is_data(header.space & 15))
        touches = reads_act or not (writes_data or command in (Command.READ, Command.RESET, Command.POLL))
        if to_input and header.address not in (0, self._following):
            return self._refuse(header, Status.BAD_COMMAND)
        if running and touches:
            return self._refuse(header, Status.BUSY)
        if (to_input or command == Command.RUN) and not self.loaded:
            return self._refuse(header, Status.NOT_LOADED)
        if command == Command.COMMIT and struct.unpack_from("<I", payload)[0] != self.load_crc:
            return self._refuse(header, Status.BAD_LOAD)
        self.due, self._gap = (self.due + 1) % 256, False
        if reads:
            return self._done(header, self._keep_answer(header, self._read(header)))
        self._change(header, payload)
        return self._done(header)

    def _keep_answer(self, header: Header, payload: bytes) -> bytes:
        words = np.frombuffer(payload, "<u4")
        self._answers[header.seq % SEND_WINDOW] = self.token, self._keep
        self._kept[(self._keep + np.arange(len(words))) % ANSWER_WORDS] = words
        self._keep = (self._keep + len(words)) % ANSWER_WORDS
        return payload

    def _again(self, header: Header) -> bytes:
        """The answer of a READ or POLL that was performed before, as long as it is kept."""
        token, start = self._answers[header.seq % SEND_WINDOW]
        address = token if header.kind & 15 == Command.POLL else header.address
        words = self._kept[(start + np.arange(header.count)) % ANSWER_WORDS]
        return self._answer(Header(header.kind, header.seq, Status.OK, address, 0), words.tobytes())

    def _done(self, header: Header, payload: bytes = b"") -> bytes:
        address = self.token if header.kind & 15 == Command.POLL else header.address
        return self._answer(Header(header.kind, header.seq, Status.OK, address, 0), payload)

    def _formed(self, header: Header, words: int) -> bool:
        command, count, space = header.kind & 15, header.count, header.space & 15
        follow = count if command in (Command.WRITE, Command.COMMIT) else 0
        if words != HEADER_BYTES // 4 + follow + 1 or count > MAX_WORDS:
            return False
        if command == Command.INFO:
            return header.kind < REPLY
        to_read, to_write = ((Space.EXTERNAL,), WITH_EXTERNAL) if self.info.external else ((), ())
        of_image = self.info.external and space == Space.EXTERNAL
        known = {
            Command.READ: space in (Space.CONTROL, Space.ACT, REGISTERS, *to_read),
            Command.WRITE: space in (*WRITABLE, *to_write) and count > 0,
            Command.COMMIT: count == (1 if of_image else commit_words(self.info.external)),
        }
        return header.kind >> 4 == VERSION and command in set(Command) and known.get(Command(command), True)

    def _read(self, header: Header) -> bytes:
        space, step = _where(header)
        if header.kind & 15 == Command.POLL:
            words = self.core.read(Space.CONTROL, Control.RUN, header.count)
        elif space == REGISTERS:
            flags = self.loaded * LOADED | self.armed * ARMED | self.complete * COMPLETE | self.image * IMAGE
            registers = [flags | self.dropped << 16, self.load_crc]
            if self.info.external:
                registers += [self.image_crc, 0]
            words = [registers[(header.address + at * step) % len(registers)] for at in range(header.count)]
        else:
            words = self.core.read(space, header.address, header.count, step)
        return np.asarray(words, "<u4").tobytes()

    def _change(self, header: Header, payload: bytes) -> None:
        """Perform a command that changes something; it is the one that is due."""
        command, words = header.kind & 15, np.frombuffer(payload, "<u4")
        if command == Command.WRITE:
            space, step = _where(header)
            self.core.write(space, header.address, words, 1 if space == Space.INPUT else step)
            if space == Space.INPUT:
                self._input(header.address + len(words))
            elif not self._is_data(space):
                self.loaded = False
                self.image &= space != Space.EXTERNAL
                self._forget_inputs()
                self.load_crc = crc32c(load_record(header.space, header.address, payload), self.load_crc)
        elif command == Command.COMMIT:
            self._commit(header.space & 15, words)
        elif command == Command.RUN:
            begins = self.complete or bool(self.info.external and header.count & 1)
            self.token, self.armed = header.address, not begins
            self.complete = False
            if begins:
                self._start()
        else:
            self._forget_inputs()
            self._stop()
            if header.address & 1:
                self.loaded, self.load_crc = False, 0
            if self.info.external and header.address & 2:
                self.loaded = self.image = False

    def _is_data(self, space: int) -> bool:
        """A WRITE there changes nothing of what the device holds: inputs, or there is a program without an image."""
        known = (Space.ACT, Space.EXTERNAL_INPUT)
        return space in known or (space == Space.EXTERNAL and self.loaded and not self.image)

    def _commit(self, space: int, words: npt.NDArray[np.uint32]) -> None:
        """The image of external memory is complete, or the program."""
        if self.info.external and space == Space.EXTERNAL:
            self.image, self.image_crc = True, self.load_crc
            self.loaded, self.load_crc = False, 0
            return
        self.core.write(Space.CONTROL, Control.LOAD_COUNT, words[1:COMMIT_WORDS])
        if self.info.external:
            self.core.write(Space.CONTROL, Control.MOVE_COUNT, words[COMMIT_WORDS:])
        self.loaded = True

    def _stop(self) -> None:
        """Abort a run; one with moves that is in progress leaves no program."""
        before = int(self.core.read(Space.CONTROL, Control.RUN, 1)[0])
        self.core.write(Space.CONTROL, Control.RUN, [0])
        if before & RUNNING:
            self._forget_changed()

    def _forget_changed(self) -> None:
        """A run was stopped: moves have changed the memories that hold the program."""
        if self.info.external and int(self.core.read(Space.CONTROL, Control.MOVE_COUNT, 1)[0]):
            self.loaded = False

    def _input(self, following: int) -> None:
        """Words of input up to that one have been written."""
        over = self.core.input_over
        self._following, self.complete = 0 if over else following % (1 << 24), over
        if over and self.armed:
            self._start()

    def _start(self) -> None:
        self.armed = self.complete = False
        self.core.write(Space.CONTROL, Control.RUN, [1])
        if int(self.core.read(Space.CONTROL, Control.RUN, 1)[0]) & WATCHDOG:
            self._forget_changed()

    def _forget_inputs(self) -> None:
        self._following, self.armed, self.complete = 0, False, False


def _chunks(items: Iterable[int]) -> list[Sequence[int]]:
    """The items up to and with each zero, and what follows the last."""
    rest = items if isinstance(items, bytes) else list(items)
    ends = [at + 1 for at, item in enumerate(rest) if not item]
    if not ends or ends[-1] < len(rest):
        ends.append(len(rest))
    return [rest[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start]


def _intact(body: bytes | None) -> tuple[Header, bytes, int] | None:
    """Header, payload and number of words of a decoded frame, None if it is damaged."""
    whole = body is not None and len(body) % 4 == 0 and CRC_BYTES <= len(body) <= 4 * LONGEST_WORDS
    if body is None or not whole or crc32c(body[:-CRC_BYTES]) != struct.unpack("<I", body[-CRC_BYTES:])[0]:
        return None
    header = Header.unpack(body.ljust(HEADER_BYTES, b"\0") if len(body) > CRC_BYTES else body + bytes(4))
    return header, body[HEADER_BYTES:-CRC_BYTES], len(body) // 4


def _where(header: Header) -> tuple[int, int]:
    """Address space and step of a READ or WRITE."""
    return header.space & 15, (header.space >> 4) + 1
