"""`UsbBus`: frames and transactions of a USB host at full speed (USB 2.0, chapters 5, 7.1 and 8)."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from onnxhw.driver.faults import UnpluggedError

from .model import DRIVEN, PULLUP, TICK_HZ, UsbModel
from .packets import BIT_HZ, TICKS, Packet, Pid, WireError, data, handshake, read, token, waveform

FRAME = TICK_HZ / 1000
"""Ticks from one start of frame to the next, 1 ms of the host."""
PACKET = 64
"""Most bytes of a bulk packet (5.8.3)."""
BULK = 19
"""Most bulk transactions of 64 bytes in a frame, in both directions together (5.8.4, table 5-9)."""
TIMEOUT = 18
"""Bits after which a host no longer waits for an answer (7.1.19.1: 16 to 18)."""
ANSWER = (2.0, 13.0)
"""Bits from the end of the host's packet to the device's answer. A device may take 6.5 (7.1.18.1), but what a host,
which waits for 16 at least (7.1.19.1), needs is that cables and hubs have some of them: luna's packets take up to
12."""
GAP = 3
"""Bits from the end of the device's packet to the host's next; at least 2 (7.1.18.1)."""
AROUND = 120
"""Most bits of a transaction but for the bytes of its data: token, SYNC, id, CRC, ends, handshake and what lies
between."""


class ProtocolError(Exception):
    """The device does what USB 2.0 does not allow."""


@dataclass
class Counters:
    """What has happened on the bus. `answer` are the shortest and longest times to an answer, in bits."""

    frames: int = 0
    transactions: int = 0
    naks: int = 0
    errors: int = 0
    """Transactions without a valid answer."""
    faults: int = 0
    """Packets that were damaged on purpose."""
    most_bulk: int = 0
    """Most bulk transactions of 64 bytes in one frame."""
    answer: list[float] = field(default_factory=lambda: [99.0, 0.0])


class UsbBus:
    """A root port with one device.

    Every millisecond begins with a start of frame, and no transaction begins that might not end before the next one.

    Parameters
    ----------
    model : the device.
    damage : called with the packets of host and device (levels, tick by tick) before they arrive; returns them, or
        others: faults of the cable. None: a good cable.

    Members: `plugged`, `counters`.
    """

    def __init__(self, model: UsbModel, damage: Callable[[bytes], bytes] | None = None) -> None:
        self.model, self.damage = model, damage
        self.counters = Counters()
        self.plugged = True
        self.unplug_at: float | None = None
        """Tick in which the cable is pulled off."""
        self._frame_end = 0.0
        self._number = 0
        self._bulk = 0

    @property
    def now(self) -> int:
        """Ticks since the start."""
        return self.model.ticks

    def _run(self, levels: bytes = b"", ticks: int = 0, *, rest: int = 0, listen: bool = False) -> bytes:
        """As `UsbModel.run`, while the cable is there; `UnpluggedError` E9102 when it is not."""
        if self.unplug_at is not None and self.now + len(levels) + ticks > self.unplug_at:
            room = max(0, int(self.unplug_at) - self.now)
            self.model.run(levels[:room], max(0, room - len(levels)), rest=rest, listen=listen)
            self.plugged, self.unplug_at = False, None
        if not self.plugged:
            raise UnpluggedError("E9102", "the port failed: the USB device was disconnected", hint="plug it in again")
        return self.model.run(levels, ticks, rest=rest, listen=listen)

    # -- time ------------------------------------------------------------------------------------

    def attach(self, debounce: float, patience: float) -> None:
        """Wait for the device's pull-up: present without a break for `debounce` seconds, within `patience` seconds.

        `UnpluggedError` if it does not come.
        """
        self.plugged = True
        until, since = self.now + patience * TICK_HZ, self.now
        while self.now - since < debounce * TICK_HZ:
            if not self._run(ticks=round(FRAME / 4))[-1] & PULLUP:
                since = self.now
            if self.now > until:
                raise UnpluggedError("E9102", "no device shows itself on the bus", hint="is a design with USB loaded?")

    def reset(self, seconds: float, recovery: float) -> None:
        """SE0 for so long, then frames for the time of recovery."""
        self._run(ticks=round(seconds * TICK_HZ), rest=DRIVEN)
        self._frame_end = 0.0
        self.idle(recovery)

    def idle(self, seconds: float) -> None:
        """Frames without transactions for so long."""
        until = self.now + seconds * TICK_HZ
        while self.now < until:
            if self.now >= self._frame_end:
                self._start_frame()
            self._run(ticks=max(1, min(round(until), round(self._frame_end)) - self.now))

    def _start_frame(self) -> None:
        late = self.now - self._frame_end
        begin = self._frame_end if late < FRAME else float(self.now)
        self._send(token(Pid.SOF, self._number))
        self._run(ticks=round(GAP * TICKS))
        self._frame_end, self._number, self._bulk = begin + FRAME, (self._number + 1) % 2048, 0
        self.counters.frames += 1

    def _room(self, bits: int) -> None:
        """Make sure that `bits` fit before the end of the frame: wait for the next one, or begin it."""
        if self.now + bits * TICKS > self._frame_end:
            if self._frame_end > self.now:
                self._run(ticks=round(self._frame_end) - self.now)
            self._start_frame()

    # -- packets ---------------------------------------------------------------------------------

    def _levels(self, packet: bytes) -> bytes:
        levels = waveform(packet)
        if self.damage is not None and (other := self.damage(levels)) != levels:
            self.counters.faults += 1
            return other
        return levels

    def _send(self, packet: bytes) -> None:
        self._run(self._levels(packet))

    def _ask(self, packet: bytes) -> Packet | None:
        """The device's answer to a packet; None if there is none that can be read.

        `ProtocolError` if it comes too early or too late.
        """
        levels = self._levels(packet)
        intact = levels == waveform(packet)
        trace = self._run(levels, round(TIMEOUT * TICKS), listen=True)[len(levels) :]
        quiet = next((i for i, level in enumerate(trace) if level & DRIVEN), None)
        if quiet is None:
            self.counters.errors += 1
            return None
        # Counted from the end of SE0: the host's own J lasts a bit.
        bits = quiet / TICKS + 1
        if intact:
            low, high = self.counters.answer
            self.counters.answer = [min(low, bits), max(high, bits)]
            if not ANSWER[0] <= bits <= ANSWER[1]:
                raise ProtocolError(f"an answer after {bits:.2f} bits")
        if self.damage is not None and (other := self.damage(trace)) != trace:
            self.counters.faults += 1
            trace = other
        try:
            packet_found = read(trace)[1]
        except WireError as error:
            if self.damage is None:
                raise ProtocolError(str(error)) from error
            self.counters.errors += 1
            packet_found = None
        self._run(ticks=round(GAP * TICKS))
        return packet_found

    # -- transactions ----------------------------------------------------------------------------

    def send(self, address: int, endpoint: int, pid: Pid, toggle: int, content: bytes) -> Pid | None:
        """An OUT or SETUP transaction: the device's handshake, None if there was none."""
        self._begin(content, endpoint)
        self._send(token(pid, address | endpoint << 7))
        self._run(ticks=round(GAP * TICKS))
        answer = self._ask(data(Pid.DATA1 if toggle else Pid.DATA0, content))
        self._count(endpoint, content)
        if answer is not None and answer.pid in (Pid.DATA0, Pid.DATA1):
            raise ProtocolError(f"{answer.pid.name} for an answer to data")
        return self._note(answer)

    def receive(self, address: int, endpoint: int, most: int = PACKET) -> Packet | None:
        """An IN transaction: data (acknowledged), NAK or STALL, None if there was no answer."""
        self._begin(bytes(most), endpoint)
        answer = self._ask(token(Pid.IN, address | endpoint << 7))
        if answer is not None and answer.pid in (Pid.DATA0, Pid.DATA1):
            if len(answer.data) > most:
                raise ProtocolError(f"{len(answer.data)} bytes in a packet, at most {most} are allowed")
            self._count(endpoint, answer.data)
            self._send(handshake(Pid.ACK))
            self._run(ticks=round(GAP * TICKS))
        elif answer is not None and answer.pid is Pid.ACK:
            raise ProtocolError("ACK for an answer to IN")
        self._note(answer)
        return answer

    def _begin(self, content: bytes, endpoint: int) -> None:
        """Room for a transaction in this frame, or the next frame."""
        full = endpoint != 0 and len(content) == PACKET and self._bulk >= BULK
        self._room(BIT_HZ // 1000 if full else AROUND + round(7 / 6 * 8 * len(content)))
        self.counters.transactions += 1

    def _count(self, endpoint: int, content: bytes) -> None:
        self._bulk += int(endpoint != 0 and len(content) == PACKET)
        self.counters.most_bulk = max(self.counters.most_bulk, self._bulk)

    def _note(self, answer: Packet | None) -> Pid | None:
        self.counters.naks += int(answer is not None and answer.pid is Pid.NAK)
        return None if answer is None else answer.pid


def noise(seed: int, rate: float) -> Callable[[bytes], bytes]:
    """Damage for `UsbBus`: of each packet with the probability `rate` a few neighbouring ticks are inverted, or all
    from one on are missing."""
    rng = random.Random(seed)

    def damage(levels: bytes) -> bytes:
        if rng.random() >= rate:
            return levels
        at, length = rng.randrange(len(levels)), rng.choice((1, 4, 8, 40, 10_000))
        hit = bytes(level ^ 3 if level & DRIVEN else level for level in levels[at : at + length])
        if rng.random() < 0.2:
            hit = bytes(level & ~DRIVEN for level in hit)
        return levels[:at] + hit + levels[at + length :]

    return damage
