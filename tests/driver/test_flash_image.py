"""The image that a device loads its program from at power-up, as the device's model hears it."""

import numpy as np
from linked_program import LINKED, program
from small_networks import NETWORKS

from onnxhw.compiler import compile_graph
from onnxhw.driver.flash_image import flash_image
from onnxhw.driver.framing import FrameReader
from onnxhw.driver.load_requests import image_writes, load_requests, program_writes
from onnxhw.isa.flash import HEADER, HEADER_BYTES, MAGIC
from onnxhw.isa.link import Command
from onnxhw.isa.memory import Space
from onnxhw.presets import PRESETS


def commands(image: bytes) -> list[tuple[int, int, int]]:
    """Command, space and sequence number of each frame."""
    frames = list(FrameReader().feed(image[HEADER_BYTES:]))
    return [(frame.header.kind & 15, frame.header.space, frame.header.seq) for frame in frames]


def test_it_is_what_a_host_sends() -> None:
    image = flash_image(program())
    assert HEADER.unpack(image[:HEADER_BYTES]) == (MAGIC, len(image) - HEADER_BYTES)
    first, *rest = commands(image)
    assert first[0] == Command.HELLO
    assert [seq for *_, seq in rest] == [number % 256 for number in range(len(rest))]
    kinds = [(command, space) for command, space, _ in rest]
    inputs = kinds.index((Command.RESET, 0))
    assert inputs > 0
    assert set(kinds[:inputs]) == {(Command.WRITE, Space.EXTERNAL_INPUT)}
    requests = load_requests(program(), image=True)
    assert kinds[inputs:] == [(request.command, request.space) for request in requests]
    assert kinds[-1] == (Command.COMMIT, 0)


def test_of_a_program_on_the_chip_there_is_no_external_memory() -> None:
    made = compile_graph(NETWORKS["residual"](), PRESETS["mini"])
    spaces = {space for command, space, _ in commands(flash_image(made)) if command == Command.WRITE}
    assert spaces == {request.space for request in program_writes(made)}
    assert not spaces & {Space.EXTERNAL, Space.EXTERNAL_INPUT}


def test_the_image_of_external_memory_is_in_it_whole() -> None:
    sent = b"".join(request.payload for request in image_writes(program()))
    assert np.array_equal(np.frombuffer(sent, "<u4"), program().external)
    assert LINKED.external is not None
