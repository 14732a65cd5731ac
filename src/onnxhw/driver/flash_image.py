"""The image in SPI flash from which a device loads a program at power-up (`onnxhw.isa.flash`)."""

import numpy as np

from ..isa.flash import HEADER, MAGIC
from ..isa.link import Command, Header, command_kind
from ..isa.memory import Space
from ..program.external_tensors import external_inputs, external_words
from ..program.model import DeviceProgram
from .framing import Frame
from .inferences import pieces
from .link import Request
from .load_requests import load_requests

SESSION = 1
"""Of the image's frames. A host that comes later begins one of its own."""


def flash_image(program: DeviceProgram) -> bytes:
    """The image of a program. Its frames write 0 to the inputs in external memory, too: the first run, at power-up,
    reads nothing that was never written."""
    requests = [*_zero_inputs(program), *load_requests(program, image=program.external.size > 0)]
    hello = Frame(Header(command_kind(Command.HELLO), 0, 0, 0, 0, SESSION)).encode()
    frames = b"".join([hello, *(_frame(request, number) for number, request in enumerate(requests))])
    return HEADER.pack(MAGIC, len(frames)) + frames


def _zero_inputs(program: DeviceProgram) -> list[Request]:
    shapes = {port.tensor: program.tensors[port.tensor].shape for port in program.inputs}
    found: list[Request] = []
    for name in external_inputs(program):
        zero = np.zeros(shapes[name], np.int8)
        for first, words in external_words(program.tensors[name], zero, program.config.word):
            found += pieces(Space.EXTERNAL_INPUT, first, words.astype("<u4").tobytes(), 1)
    return found


def _frame(request: Request, number: int) -> bytes:
    header = Header(
        command_kind(request.command), number % 256, request.space, request.address, request.count, SESSION
    )
    return Frame(header, request.payload).encode()
