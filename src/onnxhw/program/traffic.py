"""What a program's inferences and its loading put on the serial line, in bytes, and how long a person waits for them.

Frames are counted at their least: a stuffed frame is two bytes longer than its content, and one or two more if it has
254 bytes without a zero in a row, which depends on the data. A frame that is sent again counts once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.graph import Graph
from ..isa.link import (
    MAX_STEP,
    MAX_WORDS,
    MOVE_RESULT_WORDS,
    RESULT_WORDS,
    SHORTEST,
    STREAM_RESULT_WORDS,
    USB_BAUD,
    commit_words,
)
from .external_tensors import external_inputs, state_words, word_runs
from .host_words import memories
from .input_regions import inputs, shape_words, travelling_words
from .layout import Place
from .model import DeviceProgram
from .spans import output_spans, spans

BITS = 10
"""Of a byte on the line: start, eight of data, stop."""


@dataclass(frozen=True)
class Rates:
    """A line of `baud` bits per second, and a core whose clock has `clock_hz`."""

    baud: int
    clock_hz: int

    def line_ms(self, size: int) -> float:
        """Milliseconds of so many bytes, one after the other."""
        return 1e3 * BITS * size / self.baud

    def both_ms(self, sent: int, received: int) -> float:
        """Milliseconds of bytes that pass at the same time: those of the busier direction; over USB, whose directions
        share the line, of both."""
        return self.line_ms(sent + received if self.baud == USB_BAUD else max(sent, received))

    def core_ms(self, cycles: int) -> float:
        """Milliseconds of so many cycles."""
        return 1e3 * cycles / self.clock_hz


@dataclass(frozen=True)
class Traffic:
    """Bytes of one inference: from the host, from the device, and those of both that pass one after the other.

    The others of the two pass at the same time: answers to what is still being sent, and requests for what is already
    coming. `streamed` are those from the device for an inference behind another one.
    """

    sent: int
    received: int
    alone: int
    streamed: int


def frames_bytes(words: int) -> int:
    """Bytes of the frames that carry so many 32-bit words, at least one frame."""
    return 4 * words + SHORTEST * max(1, -(-words // MAX_WORDS))


def external_traffic(writes: Sequence[int], outputs: Sequence[Place], word: int) -> Traffic:
    """Of an inference whose inputs go to external memory, in pieces of so many words, and whose outputs lie there."""
    reads = [span.count for place in outputs for span in spans(place, word, MAX_STEP)]
    return _of_runs(writes, reads, MOVE_RESULT_WORDS)


def traffic(words: int, outputs: Sequence[Place], word: int) -> Traffic:
    """Of an inference with so many words of input, whose outputs lie there, in a memory of `word` lanes."""
    return _of_runs([words], [span.count for place in outputs for span in spans(place, word, MAX_STEP)], RESULT_WORDS)


def _of_runs(writes: Sequence[int], reads: Sequence[int], result: int) -> Traffic:
    """Of an inference that writes and reads runs of so many words, and `result` words that describe it."""
    written, answers = sum(map(frames_bytes, writes)), frames_bytes(result) + sum(map(frames_bytes, reads))
    requests, replies = sum(map(_frames, reads)), sum(map(_frames, writes))
    run_and_poll = 2 * SHORTEST
    received = SHORTEST * (replies + 1) + answers
    return Traffic(
        written + run_and_poll + SHORTEST * requests,
        received,
        written + run_and_poll + answers,
        received - frames_bytes(result) + frames_bytes(STREAM_RESULT_WORDS),
    )


def _frames(words: int) -> int:
    return -(-words // MAX_WORDS)


def traffic_of(program: DeviceProgram) -> Traffic:
    """Of an inference of a program. To external memory whole words travel, in the pieces that the program says."""
    word, tensors = program.config.word, program.tensors
    words = sum(travelling_words(tensors[name]) for name in inputs(program))
    if not program.in_segments:
        return traffic(words, [tensors[port.tensor].place for port in program.outputs], word)
    writes = [count for name in external_inputs(program) for _, count in word_runs(tensors[name], word)]
    reads = [span.count for port in program.outputs for span in output_spans(program, port.tensor)]
    return _of_runs([*writes, *([words] if words else [])], reads, MOVE_RESULT_WORDS)


def plain_traffic(graph: Graph, word: int) -> Traffic:
    """Of an inference of a graph whose inputs and outputs lie as they are, each tensor in one piece."""
    names = dict.fromkeys(port.tensor for port in graph.inputs)
    return traffic(sum(shape_words(graph.tensors[name].shape) for name in names), plain_outputs(graph), word)


def plain_outputs(graph: Graph) -> list[Place]:
    """Where outputs lie that are as they are."""
    shapes = [graph.tensors[port.tensor].shape for port in graph.outputs]
    return [Place(0, shape[2] * shape[3], shape[3], shape) for shape in shapes]


def load_bytes(program: DeviceProgram) -> int:
    """Bytes from the host that load a program: its image of external memory, if it has one, with a COMMIT, and its
    memories, between a RESET and a COMMIT."""
    return image_bytes(program) + core_bytes(program)


def image_bytes(program: DeviceProgram) -> int:
    """Of the image and its COMMIT; 0 without one. A device that has this image takes the rest alone."""
    size = program.external.size
    return frames_bytes(size) + frames_bytes(1) if size else 0


def core_bytes(program: DeviceProgram) -> int:
    """Of the memories and the states' initial values, with RESET and COMMIT."""
    words = sum(frames_bytes(len(found)) for _, found in state_words(program))
    words += sum(frames_bytes(image.size) for _, image in memories(program))
    return SHORTEST + words + frames_bytes(commit_words(program.config.external is not None))
