"""Which host words of activation or external memory hold a tensor, and which of their bytes are which elements."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..isa.link import MAX_STEP, SHORTEST
from ..isa.memory import host_stride
from .host_words import address_runs
from .layout import Place
from .model import DeviceProgram


@dataclass(frozen=True, eq=False)
class Span:
    """`count` host words at `address`, `address + step`, ... of ACT, or of external memory.

    `elements` says what the four bytes of each are: int64 ``[count, 4]``, an index into the tensor in C order, or
    its size where a lane belongs to no element.
    """

    address: int
    count: int
    step: int
    elements: npt.NDArray[np.int64]

    def gather(self, values: npt.NDArray[np.int8]) -> bytes:
        """The words of a tensor, little-endian, lanes without an element 0."""
        flat = np.append(values.reshape(-1), np.int8(0))
        return flat.take(self.elements).tobytes()

    def scatter(self, data: bytes, values: npt.NDArray[np.int8]) -> None:
        """Inverse of `gather`: put the elements in `data` where they belong in `values`, one longer than the tensor."""
        values[self.elements.reshape(-1)] = np.frombuffer(data, np.int8)


@lru_cache(maxsize=256)
def spans(place: Place, word: int, longest_step: int) -> tuple[Span, ...]:
    """The spans of a tensor with words of `word` lanes; together they hold each element once.

    Host words without a lane of the tensor are left out where that makes the transfer shorter, frames counted: an image
    of three channels is one host word in four of a memory of 16 lanes. Steps are at most `longest_step`.
    """
    stride, (_, channels, height, width) = host_stride(word), place.shape
    # Elements by act word (in the order of `addresses`), host word and byte.
    lanes = np.full((place.blocks(word) * word, height * width), channels * height * width)
    lanes[place.lane : place.lane + channels] = np.arange(channels * height * width).reshape(channels, -1)
    table = np.full((place.blocks(word), height * width, stride * 4), channels * height * width)
    table[:, :, :word] = lanes.reshape(-1, word, height * width).transpose(0, 2, 1)
    found: list[Span] = []
    for addresses, block in zip(place.addresses(word), table.reshape(*table.shape[:2], stride, 4), strict=True):
        used = [column for column in range(stride) if (block[:, column] < channels * height * width).any()]
        for address, first, count in address_runs(addresses.reshape(-1)):
            here = block[first : first + count]
            apart = len(used) * (SHORTEST + 4 * count) < SHORTEST + 4 * stride * count and stride <= longest_step
            if apart:
                found += [Span(address * stride + c, count, stride, here[:, c]) for c in used]
                continue
            elements = here.reshape(-1, 4)
            last = found[-1] if found else None
            if last and last.step == 1 and last.address + last.count == address * stride:
                found.pop()
                elements = np.concatenate([last.elements, elements])
                found.append(Span(last.address, len(elements), 1, elements))
            else:
                found.append(Span(address * stride, len(elements), 1, elements))
    return tuple(found)


def output_spans(program: DeviceProgram, name: str) -> tuple[Span, ...]:
    """The spans of an output, in external memory if it lies there."""
    entry = program.tensors[name]
    place = entry.external[0].place if entry.external else entry.place
    return spans(place, program.config.word, MAX_STEP)
