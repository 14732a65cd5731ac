"""`Link`: commands in order over a line that loses and spoils bytes, several under way at a time (go-back-N)."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import LinkError
from ..isa.link import (
    ANSWER_WORDS,
    CREDIT_UNIT,
    FIFO_BYTES,
    REPLY,
    SEND_WINDOW,
    SHORTEST,
    Command,
    Header,
    Status,
    command_kind,
)
from ..isa.memory import Space
from .frame_batch import encode_frames
from .framing import Frame, FrameReader
from .transport import Transport

AHEAD = 4 * SEND_WINDOW
"""Frames that are encoded together."""
ATTEMPTS = 16
"""How often frames are sent without any progress before the link is given up."""
GREETINGS = 6
"""How often a handshake is tried."""
ALL_ANSWERS = SEND_WINDOW * (SHORTEST + 3) + 4 * ANSWER_WORDS
"""Bytes on the line of the answers that may be under way."""
Progress = Callable[[int, int], None]


@dataclass
class Counters:
    """What the link has met so far."""

    frames: int = 0
    retries: int = 0
    timeouts: int = 0
    refused: int = 0
    """Frames that the device found damaged or missing."""
    sessions: int = 0
    """Handshakes."""
    sent: int = 0
    """Bytes on the line."""
    received: int = 0


ANSWERED = (Command.READ, Command.POLL, Command.INFO)
"""Commands whose replies bring words."""


class Request(NamedTuple):
    """One command; `answer` is the number of words that its reply brings."""

    command: Command
    space: int = 0
    address: int = 0
    count: int = 0  # type: ignore[assignment]  # hides the method of tuples
    payload: bytes = b""
    step: int = 1
    """Host words from each word of a READ or WRITE to the next."""
    wait: float = 0.0
    """Seconds that it may have to wait for the run in progress."""

    @property
    def answer(self) -> int:
        return self.count if self.command in ANSWERED else 0


class Answer(NamedTuple):
    """The reply to a request; `address` is the request's, or the token that POLL returns."""

    address: int
    payload: bytes


class Link:
    """The host's end of the protocol of `onnxhw.isa.link` over a transport.

    `perform` sends commands in order, as many at a time as window, credit and the device's memory of answers allow; the
    device performs each once, so an answer that was lost comes again as it was. Every wait is bounded: a timeout is
    twice the time on the line of everything under way, plus the longest of the runs that it waits for and the
    transport's latency; after `ATTEMPTS` without progress the link is given up with E9103.

    Errors: `LinkError` E9103 no answer, E9104 a command refused, E9106 another protocol, E9111 a run is in
    progress, E9120 the session is lost, E9121 no complete program, E9122 the program arrived damaged. After any of
    them the next `perform` begins with a handshake, which also discards answers that are still on their way.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.counters = Counters()
        self.session = random.randrange(1, 256)
        self._reader = FrameReader()
        self._due = 0
        self._credit = FIFO_BYTES - CREDIT_UNIT
        self.met = False
        """Whether the device and we agree on the session and the number that is due."""

    @property
    def damaged(self) -> int:
        """Answers that were no frames."""
        return self._reader.damaged

    def perform(self, requests: Sequence[Request], progress: Progress | None = None) -> list[Answer]:
        """Send commands in order until each is performed; their answers in the same order.

        INFO, which uses up no sequence number, comes in batches of its own. `progress` is told how many are
        performed, of how many.
        """
        if not self.met:
            self._meet()
        self.met = False
        answers = _Batch(self, requests, self._due).run(progress)
        self._due = (self._due + sum(request.command is not Command.INFO for request in requests)) % 256
        self.met = True
        return answers

    # -- what a batch needs --------------------------------------------------------------------

    def frame(self, request: Request, seq: int) -> Frame:
        """The frame of a request."""
        kind = command_kind(request.command)
        space = request.space | request.step - 1 << 4
        return Frame(Header(kind, seq, space, request.address, request.count, self.session), request.payload)

    def send(self, data: bytes, frames: int) -> None:
        """Put frames on the line."""
        self.counters.frames += frames
        self.counters.sent += len(data)
        self.transport.write(data)

    def receive(self, deadline: float) -> list[Frame]:
        """Replies that have arrived; waits until `deadline` for bytes, and returns nothing after it."""
        left = deadline - self.transport.now()
        if left <= 0:
            return []
        data = self.transport.read(left)
        self.counters.received += len(data)
        frames = list(self._reader.feed(data))
        for frame in frames:
            self._credit = CREDIT_UNIT * frame.header.session
        return frames

    def deadline(self, size: int, run: float = 0.0) -> float:
        """When the next answer to frames of `size` bytes with their replies, which wait `run` seconds, is late."""
        wait = 2 * 10 * (size + 2 * SHORTEST) / self.transport.baud + self.transport.latency
        return self.transport.now() + wait + run

    def has_credit(self, under_way: int, size: int) -> bool:
        """Whether the device has credit for a frame of `size` bytes beside those under way."""
        return not under_way or under_way + size <= self._credit

    def give_up(self, what: str, attempts: int) -> LinkError:
        """The error after too many attempts."""
        seen = self.counters
        return LinkError(
            "E9103",
            f"no valid answer to {what} in {attempts} attempts ({seen.timeouts} timeouts, "
            f"{seen.refused} damaged frames, {self.damaged} damaged answers in this session)",
            hint=f"is an onnxhw bitstream on the board, and its line at {self.transport.baud} baud?",
        )

    def _meet(self) -> None:
        """The handshake: which sequence number is due. The token tells the reply from those to earlier sessions."""
        self.counters.sessions += 1
        token = random.randrange(1 << 24)
        kind = command_kind(Command.HELLO)
        # Two delimiters end whatever a session before has left unfinished on the line.
        hello = b"\0\0" + Frame(Header(kind, 0, 0, token, 0, self.session)).encode()
        # Answers that an earlier session asked for come first.
        size = len(hello) + ALL_ANSWERS
        for attempt in range(GREETINGS):
            self.counters.retries += attempt > 0
            self.send(hello, 1)
            deadline = self.deadline(size if attempt < 2 else len(hello))
            while self.transport.now() < deadline and not self.met:
                for frame in self.receive(deadline):
                    got = frame.header
                    if got.kind & 15 != Command.HELLO or got.address != token:
                        continue
                    if (got.kind, got.space) == (kind | REPLY, Status.OK):
                        self._due, self.met = got.seq, True
                    elif got.space == Status.BAD_COMMAND:
                        raise LinkError(
                            "E9106",
                            "the device speaks another version of the link's protocol than this release",
                            hint="build and program the bitstream again with this release",
                        )
            if self.met:
                return
            self.counters.timeouts += 1
        raise self.give_up(Command.HELLO.name, GREETINGS)


class _Batch:
    """The commands of one `Link.perform`, from the first that is not yet performed to the last that was sent."""

    def __init__(self, link: Link, requests: Sequence[Request], due: int) -> None:
        self.link, self.requests, self.due = link, requests, due
        self.frames: dict[int, bytes] = {}
        self.ready: dict[int, bytes] = {}
        self.answers: list[Answer | None] = [None] * len(requests)
        self.first = self.next = self.sent = self.attempts = self.done = 0

    def run(self, progress: Progress | None) -> list[Answer]:
        link, lost = self.link, False
        while self.first < len(self.requests):
            self._send(lost)
            deadline, done, lost = self._deadline(), self.done, False
            while self.done == done and not lost:
                frames = link.receive(deadline)
                for frame in frames:
                    lost |= self._forget(self._take(frame.header, frame.payload))
                if frames:
                    deadline = self._deadline()
                elif link.transport.now() >= deadline:
                    link.counters.timeouts += 1
                    lost = self._forget(self.sent)
            if self.done != done:
                self.attempts = 0
                if progress:
                    progress(self.done, len(self.requests))
            self.attempts += lost
            if self.attempts >= ATTEMPTS:
                raise link.give_up(self.requests[self.first].command.name, ATTEMPTS)
        return [answer for answer in self.answers if answer is not None]

    def _seq(self, index: int) -> int:
        return (self.due + index) % 256

    def _encoded(self, index: int) -> bytes:
        """A frame as bytes for the line; it and those behind it are encoded together."""
        if index not in self.ready:
            ahead = range(index, min(index + AHEAD, len(self.requests)))
            frames = [self.link.frame(self.requests[number], self._seq(number)) for number in ahead]
            self.ready = dict(zip(ahead, encode_frames(frames), strict=True))
        return self.ready[index]

    def _under_way(self, *, replies: bool = False) -> int:
        """Bytes of the frames sent and not yet performed, and of their replies if wanted."""
        size = sum(map(len, self.frames.values()))
        if replies:
            size += sum(SHORTEST + 4 * self.requests[index].answer for index in self.frames)
        return size

    def _deadline(self) -> float:
        longest = max((self.requests[index].wait for index in self.frames), default=0.0)
        return self.link.deadline(self._under_way(replies=True), longest)

    def _send(self, again: bool) -> None:
        """As much as window, credit and answers allow, as one piece; after a fault behind a delimiter of its own.

        The device keeps the answers to what it has performed since the first command that is not answered.
        """
        data, count = bytearray(b"\0" if again else b""), 0
        size = self._under_way()
        words = sum(request.answer for request in self.requests[self.first : self.next])
        while self.next < len(self.requests) and self.next - self.first < SEND_WINDOW:
            words += self.requests[self.next].answer
            if words > ANSWER_WORDS:
                break
            if self.answers[self.next] is None and self.next not in self.frames:
                frame = self._encoded(self.next)
                if not self.link.has_credit(size, len(frame)):
                    break
                self.frames[self.next] = frame
                data += frame
                size += len(frame)
                count += 1
            self.next += 1
            self.sent = max(self.sent, self.next)
        if count:
            self.link.send(bytes(data), count)

    def _forget(self, end: int) -> bool:
        """Send frames before `end` again that are still under way: they, or their answers, are lost."""
        lost = [index for index in self.frames if index < end]
        for index in lost:
            del self.frames[index]
        self.link.counters.retries += len(lost)
        if lost:
            self.next = self.first
        return bool(lost)

    def _take(self, header: Header, payload: bytes) -> int:
        """One reply; the index before which nothing else will be answered."""
        if header.kind == REPLY and header.space in (Status.BAD_FRAME, Status.SEQUENCE):
            self.link.counters.refused += 1
            ahead = (header.seq - self._seq(self.first)) % 256
            if self.first + ahead <= self.sent:
                self._acknowledge(self.first + ahead)
            return self.sent
        index = self.first + (header.seq - self._seq(self.first)) % 256
        if index not in self.frames or header.kind != command_kind(self.requests[index].command) | REPLY:
            return 0
        request = self.requests[index]
        if header.space != Status.OK:
            raise _refusal(request, header.space)
        if request.command is not Command.POLL and header.address != request.address:
            return 0
        if len(payload) != 4 * request.answer:
            return 0
        self._finish(index, Answer(header.address, payload))
        self._acknowledge(index)
        return index

    def _finish(self, index: int, answer: Answer) -> None:
        self.answers[index] = answer
        self.done += 1
        del self.frames[index]

    def _acknowledge(self, end: int) -> None:
        """All before `end` are performed."""
        for index in range(self.first, end):
            if index in self.frames and not self.requests[index].answer:
                self._finish(index, Answer(self.requests[index].address, b""))
        while self.first < len(self.requests) and self.answers[self.first] is not None:
            self.first += 1


REFUSALS: dict[int, tuple[str, str, str]] = {
    Status.BUSY: ("E9111", "a run is in progress: {} is not possible", "wait until it has ended, or reset the device"),
    Status.NO_SESSION: (
        "E9120", "the device does not know this session: it was restarted, or another program has taken the line",
        "connect again, and load the program again",
    ),
    Status.NOT_LOADED: ("E9121", "the device holds no complete program", "call load(program) first"),
    Status.BAD_LOAD: ("E9122", "what the device has received is not what was sent", "load the program again"),
}  # fmt: skip
"""By status why the device did not perform a command: code, what to say of it, and a hint."""
REFUSED = ("E9104", "the device refuses {}", "driver and bitstream do not fit together")
"""Of any other."""


def _refusal(request: Request, status: int) -> LinkError:
    code, what, hint = REFUSALS.get(status, REFUSED)
    return LinkError(code, what.format(_target(request)), hint=hint)


def _target(request: Request) -> str:
    if request.command not in (Command.READ, Command.WRITE):
        return request.command.name
    space = Space(request.space).name if request.space in list(Space) else f"space {request.space}"
    return f"{request.command.name} of {request.count} words at {request.address} of {space}"
