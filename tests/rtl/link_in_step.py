"""A loader and its model in Python side by side, with what a line may bring."""

import random

import numpy as np
from link_bench import CLOCK, DONE, INPUT_WORDS, Bench
from link_parts import MemoryPort

from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.framing import Frame, FrameReader, cobs_encode, crc32c
from onnxhw.isa.link import COMMIT_WORDS, REGISTERS, VERSION, Command, Header, Info
from onnxhw.isa.memory import ENDED, Control, Space
from onnxhw.presets import preset

INFO = Info.of(preset("mini"), clock_hz=CLOCK, baud=CLOCK, build_id=0x0123456789ABCDEF)
WITH_EXTERNAL = Info.of(preset("mini+sdram"), clock_hz=CLOCK, baud=CLOCK)
SESSION = 0x5A


def command(kind, seq=0, space=0, address=0, words=(), count=None, session=SESSION, version=VERSION):
    payload = np.array(words, "<u4").tobytes()
    header = Header(kind | version << 4, seq % 256, space, address, len(words) if count is None else count, session)
    return Frame(header, payload)


def hello(token=1):
    return command(Command.HELLO, address=token).encode()


class InStep:
    """A loader and its model side by side: the same bytes in, the same bytes out, the same memory."""

    def __init__(self, seed: int = 0, info: Info = INFO) -> None:
        self.rng, self.held = random.Random(seed), 0
        self.bench = Bench(info, run_cycles=1 << 30)
        self.port = MemoryPort(cycles=0, input_words=INPUT_WORDS)
        self.port.lasting = True
        self.port.memory |= {(0, Control.ARRAY_DONE): DONE, (0, Control.VECTOR_DONE): DONE}
        self.model = DeviceModel(info, self.port)
        self.statuses: set[int] = set()

    def send(self, items) -> bytes:
        """Frame after frame, each once the line is idle: what is answered to a bad frame depends on that."""
        items, got = list(items), b""
        while items:
            end = items.index(0) + 1 if 0 in items else len(items)
            got += self._send_frame(items[:end])
            items = items[end:]
        return got

    def _send_frame(self, items) -> bytes:
        wanted = self.model.feed(items)
        self.held += self.model.waits
        ends = self.model.waits and self.rng.random() < 0.5
        if ends:
            self.port.memory[0, Control.RUN] = ENDED
            wanted += self.model.feed(b"")
        self.statuses |= {frame.header.space for frame in FrameReader().feed(wanted)}
        got, waited = self.bench.line.exchange(items), 0
        self.bench.poke("stop", ends)
        # Answers take time; if there is none, the time of a short one shows it.
        while len(got) < len(wanted) or waited < 6 * len(items) + 400:
            got += self.bench.line.exchange(b"")
            waited += 100
            assert waited < 100_000
        self.bench.poke("stop", 0)
        assert got == wanted, (bytes(item & 255 for item in items).hex(), got.hex(), wanted.hex())
        return got

    def check_memory(self) -> None:
        contents = self.bench.contents()
        wanted = np.zeros_like(contents)
        for (space, address), word in self.port.memory.items():
            if (space, address) not in ((0, Control.RUN), (0, Control.CYCLES)):
                wanted[space, address] = word
        assert np.array_equal(contents, wanted)
        assert self.bench.peek("runs") == self.port.runs
        assert self.bench.peek("wild") == 0


def random_items(rng, model):
    """The bytes of something that a line may bring: most often the command that is due, or nearly."""
    kind = rng.choice([*Command, Command.WRITE, Command.READ, Command.WRITE, Command.RUN, rng.randrange(16)])
    seq = model.due + rng.choice((0, 0, 0, 0, 0, -1, -1, -2, -127, -128, 1, 2, 128, 100))
    space = rng.choice([*Space, REGISTERS, 1, 1, 2, 10, 15, *[Space.INPUT] * 4]) | rng.choice((0, 0, 0, 1, 3)) << 4
    count = rng.choice((0, 1, 1, 2, 6, 6, 9, 9, 129 if rng.random() < 0.1 else 3))
    follows = kind in (Command.WRITE, Command.COMMIT) or rng.random() < 0.03
    words = [rng.choice((0, rng.getrandbits(32))) for _ in range(count)] if follows else []
    if kind == Command.COMMIT and model.info.external and rng.random() < 0.8:
        space = rng.choice((Space.EXTERNAL, 0))
        words = [rng.choice((0, 1, rng.getrandbits(32))) for _ in range(1 if space else COMMIT_WORDS + 1)]
    if kind == Command.COMMIT and words and rng.random() < 0.7:
        words[0] = model.load_crc
    session = rng.choice((SESSION,) * 15 + (0, 7))
    version = rng.choice((VERSION,) * 15 + (1, 2, 8 + VERSION))
    address = rng.randrange(200) if kind != Command.RUN else rng.getrandbits(24)
    if space & 15 == Space.INPUT and rng.random() < 0.9:
        address = rng.choice((0, model._following))
    frame = command(kind, seq, space, address, words, count if not words else None, session, version)
    line = list(frame.encode())
    fault = rng.random()
    at = rng.randrange(len(line))
    if fault < 0.05:
        line[at] ^= 1 << rng.randrange(8)
    elif fault < 0.09:
        line.insert(at, 0x100)
    elif fault < 0.12:
        del line[at]
    elif fault < 0.14:
        line.insert(at, rng.randrange(256))
    elif fault < 0.16:
        line = [*rng.randbytes(rng.randrange(1, 40))]
    elif fault < 0.18:
        body = rng.randbytes(rng.choice((0, 4, 8, 5)))
        line = list(cobs_encode(body + crc32c(body).to_bytes(4, "little")))
    return [*line, 0]


def run_in_step(seed, frames, info=INFO):
    rng, both = random.Random(seed), InStep(seed, info)
    both.send(hello())
    for _ in range(frames):
        both.send(random_items(rng, both.model))
    both.check_memory()
    return both
