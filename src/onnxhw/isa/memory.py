"""Address spaces and the control registers.

The host sees every memory through 32-bit words. A memory whose words have n bytes gives each of them
``host_stride(n)`` host words (a power of two); byte i of a word is byte ``i % 4`` of host word
``i // 4``.
"""

from enum import IntEnum

from ..config import HwConfig


class Space(IntEnum):
    """Address spaces of the host port; 10 are the link's own registers.

    INPUT takes the words of the inputs' stream (`onnxhw.isa.input_port`), from address 0 on; INPUT_TABLE has its
    regions. EXTERNAL, MOVE_UCODE and EXTERNAL_INPUT are there if the configuration has external memory. The last is the
    same memory as EXTERNAL: through it the host writes inputs, through EXTERNAL what belongs to a program.
    """

    CONTROL = 0
    ACT = 1
    WEIGHT = 2
    PARAM = 3
    TABLE = 4
    LOAD_UCODE = 5
    ARRAY_UCODE = 6
    DEPTHWISE_UCODE = 7
    VECTOR_UCODE = 8
    EXTERNAL = 9
    INPUT = 11
    INPUT_TABLE = 12
    MOVE_UCODE = 13
    EXTERNAL_INPUT = 14


HOST_BYTES = 4
"""Bytes of a host word."""
PARAM_BITS = 64
"""Bits of one lane's entry of a parameter row."""


class Control(IntEnum):
    """Control registers (32 bits each)."""

    RUN = 0
    """Write: 1 starts a run, 0 aborts it. Read: bit 0 running, bit 1 ended, bit 2 stopped by the watchdog."""
    LOAD_COUNT = 1
    """Instructions of the load unit's program; ARRAY_COUNT, DEPTHWISE_COUNT and VECTOR_COUNT alike. A device without a
    depthwise unit keeps 0 there."""
    ARRAY_COUNT = 2
    DEPTHWISE_COUNT = 3
    VECTOR_COUNT = 4
    BUDGET = 5
    """Watchdog: a run of more cycles is stopped. 0: no limit."""
    INPUT_FREE = 6
    """Completed array (bits 15..0) and vector instructions (31..16) from which on a run leaves its inputs alone, so
    that the host may write the next ones. 0: not before its end."""
    CYCLES = 7
    """Read: cycles of the run so far, or of the last run."""
    LOAD_DONE = 8
    """Read: completed instructions; ARRAY_DONE, DEPTHWISE_DONE and VECTOR_DONE alike."""
    ARRAY_DONE = 9
    DEPTHWISE_DONE = 10
    VECTOR_DONE = 11
    STALL_ORDER_LOAD = 12
    """Read: cycles in which the unit had an instruction and waited for other units."""
    STALL_ORDER_ARRAY = 13
    STALL_ORDER_DEPTHWISE = 14
    STALL_ORDER_VECTOR = 15
    STALL_WEIGHTS_ARRAY = 16
    """Read: cycles in which the array waited for weights; STALL_WEIGHTS_DEPTHWISE alike."""
    STALL_WEIGHTS_DEPTHWISE = 17
    BUSY_ARRAY = 18
    """Read: cycles in which the array streamed a pixel; BUSY_DEPTHWISE alike."""
    BUSY_DEPTHWISE = 19
    BUSY_VECTOR = 20
    """Read: cycles in which the vector unit had an instruction."""
    LATENCY = 21
    """Read: cycles from the acceptance of the last frame of input to the end of the run; 0 if a run was in progress
    then. The link writes it, with anything, `ACCEPTED` cycles after a frame's CRC was found right. Of a run with moves
    whose inputs did not come through INPUT: from its start, the external memory's start sequence included."""
    FINGERPRINT_LOW = 22
    """Read: fingerprint of the configuration, low half; FINGERPRINT_HIGH its high half."""
    FINGERPRINT_HIGH = 23
    MOVE_COUNT = 25
    """Of configurations with external memory: instructions of the unit `move`. A run with such instructions begins with
    the external memory's start sequence."""
    MOVE_DONE = 26
    """Read: its completed instructions. STALL_ORDER_MOVE is as those of the other units."""
    STALL_ORDER_MOVE = 27
    BUSY_MOVE = 28
    """Read: cycles in which it had a move: of each those between its issue and its completion."""
    RING = 32
    """Read, 16 registers: the last issued instructions, newest at RING_HEAD - 1: unit (bits 30..28), index (15..0)."""
    RING_HEAD = 24
    """Read: number of instructions entered into the ring, modulo 16."""


RUNNING, ENDED, WATCHDOG = 1, 2, 4
"""Bits of Control.RUN when read."""
COUNTERS = tuple(register for register in Control if Control.LOAD_DONE <= register <= Control.BUSY_VECTOR)
"""Registers that describe a run, in the order of their addresses, which follow that of CYCLES."""
MOVE_COUNTERS = Control.MOVE_DONE, Control.STALL_ORDER_MOVE, Control.BUSY_MOVE
"""Those that a run with moves has besides."""
RING_SIZE = 16
ACCEPTED = 8
"""Cycles from a frame's CRC to the write of Control.LATENCY: the frame is judged meanwhile."""


def word_bytes(config: HwConfig, space: Space) -> int:
    """Bytes of one word of a memory."""
    return {
        Space.ACT: config.word,
        Space.WEIGHT: config.weight_word,
        Space.PARAM: PARAM_BITS // 8 * config.lanes,
        Space.TABLE: 1,
    }.get(space, 4)


def param_shape(config: HwConfig) -> tuple[int, int]:
    """Width in bits and depth of the parameter memory: a row of it in `HwConfig.param_reads` words."""
    size, reads = word_bytes(config, Space.PARAM), config.param_reads
    return (32 * host_stride(size) // reads if reads > 1 else 8 * size), config.param_depth * reads


def host_stride(size: int) -> int:
    """Host words per memory word of `size` bytes: the power of two that holds them."""
    words = -(-size // 4)
    return 1 << (words - 1).bit_length()
