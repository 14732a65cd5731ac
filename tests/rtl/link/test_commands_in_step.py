"""The loader and its model in Python in step: the same answers, the same memory."""


import numpy as np
import pytest
from link_bench import INPUT_WORDS
from link_in_step import INFO, WITH_EXTERNAL, InStep, command, hello, run_in_step

from onnxhw.driver.framing import FrameReader, crc32c
from onnxhw.isa.link import ARMED, COMPLETE, IMAGE, LOADED, REGISTERS, Command, Status, load_record
from onnxhw.isa.memory import Control, Space

pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("compiler")]


def test_loader_and_model_in_step_on_each_status():
    """One command after the other that brings each status, and what it leaves behind."""
    both = InStep()
    write = command(Command.WRITE, 0, Space.WEIGHT, 7, [1, 0, 3])
    both.send(write.encode())  # no session yet
    both.send(hello(0xABCDEF))
    both.send(write.encode())
    both.send(write.encode())  # acknowledged, not performed again
    crc = crc32c(load_record(Space.WEIGHT, 7, write.payload))
    both.send(command(Command.RUN, 1).encode())  # not loaded
    both.send(command(Command.COMMIT, 1, words=[crc ^ 1, 1, 2, 3, 4, 5, 6]).encode())
    both.send(command(Command.COMMIT, 1, words=[crc, 1, 2, 3, 4, 5, 0]).encode())
    both.send(command(Command.READ, 2, REGISTERS, count=2).encode())
    both.send(command(Command.WRITE, 3, Space.INPUT, 1, [1]).encode())  # nothing was begun
    both.send(command(Command.WRITE, 3, Space.INPUT, 0, [1, 2, 3, 4]).encode())
    both.send(command(Command.RUN, 4, address=0x123456).encode())  # waits for its inputs
    assert (both.port.runs, both.model.armed) == (0, True)
    both.send(command(Command.POLL, 5, count=6, address=1).encode())  # and nobody waits for it
    both.send(command(Command.READ, 6, REGISTERS, count=2).encode())
    both.send(command(Command.WRITE, 7, Space.INPUT, 0, [1]).encode())  # begun anew
    both.send(command(Command.WRITE, 8, Space.INPUT, 4, [5, 6]).encode())  # not the next one
    both.send(command(Command.WRITE, 8, Space.INPUT, 1, [2, 3, 4]).encode())
    both.send(command(Command.WRITE, 9, Space.INPUT, 4, [5, 6]).encode())
    assert (both.port.runs, both.model.armed) == (1, False)
    both.send(command(Command.POLL, 10, count=6).encode())
    both.send(command(Command.READ, 11, Space.ACT, 0, count=1).encode())  # busy
    both.send(command(Command.RUN, 4, address=0x123456).encode())  # repeated during the run
    both.send(command(Command.READ, 12, Space.CONTROL, 0, count=2).encode())  # ahead
    both.send(command(Command.READ, 13, Space.CONTROL, 0, count=2).encode())  # told already
    both.send(command(Command.RESET, 11).encode())
    both.send(command(Command.READ, 12, Space.ACT, 5, count=1).encode())
    both.send(write.encode()[:-3] + b"\0")
    both.send(command(Command.WRITE, 13, Space.CONTROL, 1, [1]).encode())  # bad command
    both.send(command(Command.RESET, 13, address=1).encode())
    both.send(command(Command.READ, 14, REGISTERS, count=2).encode())
    # What was answered comes again as it was, whatever has happened since.
    both.send(command(Command.WRITE, 15, Space.ACT, 5, [1, 2, 3]).encode())
    read = command(Command.READ, 16, Space.ACT, 5, count=3).encode()
    answer = both.send(read)
    both.send(command(Command.WRITE, 17, Space.ACT, 5, [4, 5, 6]).encode())
    both.send(command(Command.READ, 18, Space.ACT, 5, count=3).encode())
    assert both.send(read) == answer
    both.send(command(Command.POLL, 10, count=6).encode())
    both.check_memory()
    assert both.statuses == set(Status)
    assert both.port.runs == 1


def test_a_run_takes_inputs_that_are_complete():
    """RUN before or behind the last word of input; RESET, another program or host forget what was before."""
    both, numbers = InStep(), iter(range(100))

    def send(kind, *args, **kwargs):
        both.send(command(kind, next(numbers), *args, **kwargs).encode())

    def flags():
        send(Command.READ, REGISTERS, count=1)
        return both.model.loaded * LOADED | both.model.armed * ARMED | both.model.complete * COMPLETE

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6])
    words = list(range(1, INPUT_WORDS + 1))
    send(Command.WRITE, Space.INPUT, 0, [*words, 7, 8])  # what is too much does no harm
    assert flags() == LOADED | COMPLETE
    send(Command.RUN, address=7)
    assert (flags(), both.port.runs) == (LOADED, 1)
    send(Command.RESET)
    for forget in ("reset", "program", "session", "run"):
        send(Command.WRITE, Space.INPUT, 0, words[:3])
        send(Command.RUN, address=8)
        assert flags() == LOADED | ARMED
        if forget == "reset":
            send(Command.RESET)
        elif forget == "program":
            crc = crc32c(load_record(Space.WEIGHT, 7, bytes(4)), both.model.load_crc)
            send(Command.WRITE, Space.WEIGHT, 7, [0])
            assert flags() == 0
            send(Command.COMMIT, words=[crc, 1, 2, 3, 4, 5, 6])
        elif forget == "session":
            both.send(hello())
            assert flags() == LOADED | ARMED, "the same host again"
            both.send(command(Command.HELLO, session=7).encode())
            both.send(hello())
        assert flags() == LOADED | (ARMED if forget == "run" else 0)
    send(Command.WRITE, Space.INPUT, 0, words)
    assert (flags(), both.port.runs) == (LOADED, 2)
    both.check_memory()


def test_inputs_are_those_of_the_session_that_has_sent_them():
    """The next RUN of another host must not take them, nor its words follow them."""
    both, numbers = InStep(), iter(range(100))

    def send(kind, *args, **kwargs):
        return both.send(command(kind, next(numbers), *args, **kwargs).encode())

    def flags():
        (frame,) = FrameReader().feed(send(Command.READ, REGISTERS, count=1))
        return int.from_bytes(frame.payload, "little")

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6])
    words = list(range(1, INPUT_WORDS + 1))
    send(Command.WRITE, Space.INPUT, 0, words)
    both.send(hello())
    assert flags() == LOADED | COMPLETE, "the same host again"
    both.send(command(Command.HELLO, session=7).encode())
    both.send(hello())
    assert flags() == LOADED
    send(Command.RUN, address=8)
    assert (flags(), both.port.runs) == (LOADED | ARMED, 0)
    # Half of them, and another host's other half.
    send(Command.WRITE, Space.INPUT, 0, words[:3])
    both.send(command(Command.HELLO, session=7).encode())
    both.send(hello())
    follows = command(Command.WRITE, next(numbers), Space.INPUT, 3, words[3:])
    (answer,) = FrameReader().feed(both.send(follows.encode()))
    assert answer.header.space == Status.BAD_COMMAND
    both.check_memory()


def test_external_memory_is_the_hosts_during_a_run_too():
    """It holds no part of a program without an image; no other memory of the core is touched."""
    both, numbers = InStep(info=WITH_EXTERNAL), iter(range(100))

    def send(kind, *args, **kwargs):
        both.send(command(kind, next(numbers), *args, **kwargs).encode())

    both.send(hello())
    send(Command.COMMIT, words=[0, 1, 2, 3, 4, 5, 6, 0])
    send(Command.WRITE, Space.EXTERNAL, 9, [1, 2, 3])
    send(Command.WRITE, Space.INPUT, 0, list(range(INPUT_WORDS)))
    send(Command.RUN, address=7)
    send(Command.WRITE, Space.EXTERNAL | 1 << 4, 10, [4, 5])
    send(Command.READ, Space.EXTERNAL, 9, count=4)
    assert both.statuses == {Status.OK}
    assert (both.port.runs, both.model.loaded, both.model.load_crc) == (1, True, 0)
    assert [both.port.memory[Space.EXTERNAL, 9 + i] for i in range(4)] == [1, 4, 3, 5]
    both.check_memory()


def test_an_image_of_external_memory():
    """It has a CRC of its own and outlives programs; a write to it ends both, a stopped run the program only."""
    both = InStep(info=WITH_EXTERNAL)

    def send(kind, *args, status=Status.OK, **kwargs):
        (answer,) = FrameReader().feed(both.send(command(kind, both.model.due, *args, **kwargs).encode()))
        assert answer.header.space == status

    def flags():
        send(Command.READ, REGISTERS, count=4)
        return both.model.loaded * LOADED | both.model.image * IMAGE

    both.send(hello())
    image, code = [1, 2, 3], [4, 5]
    crc = crc32c(load_record(Space.EXTERNAL, 9, np.array(image, "<u4").tobytes()))
    of_code = crc32c(load_record(Space.MOVE_UCODE, 0, np.array(code, "<u4").tobytes()))
    counts = [1, 2, 3, 4, 5, 6, 7]
    send(Command.RESET, address=3)
    send(Command.WRITE, Space.EXTERNAL, 9, image)
    send(Command.COMMIT, Space.EXTERNAL, words=[crc ^ 1], status=Status.BAD_LOAD)
    send(Command.COMMIT, Space.EXTERNAL, words=[crc])
    assert (flags(), both.model.image_crc) == (IMAGE, crc)
    send(Command.WRITE, Space.MOVE_UCODE, 0, code)
    send(Command.COMMIT, words=[of_code, *counts])
    assert both.port.memory[Space.CONTROL, Control.MOVE_COUNT] == 7
    # Inputs are no part of it, before and in a run, which begins at once if it is told to.
    send(Command.WRITE, Space.EXTERNAL_INPUT, 20, [8, 9])
    send(Command.RUN, address=5, count=1)
    assert both.port.runs == 1
    send(Command.WRITE, Space.EXTERNAL_INPUT, 22, [10])
    send(Command.WRITE, Space.EXTERNAL, 20, [8], status=Status.BUSY)
    assert flags() == LOADED | IMAGE
    send(Command.RESET)
    assert flags() == IMAGE, "moves have changed the memories that held the program"
    send(Command.RESET, address=1)
    send(Command.WRITE, Space.MOVE_UCODE, 0, code)
    send(Command.COMMIT, words=[of_code, *counts])
    assert flags() == LOADED | IMAGE
    send(Command.WRITE, Space.EXTERNAL, 20, [8])
    assert flags() == 0
    send(Command.RESET, address=1)
    send(Command.COMMIT, Space.EXTERNAL, words=[0])
    send(Command.COMMIT, words=[0, *counts])
    send(Command.RESET, address=2)
    assert flags() == 0
    both.check_memory()


def test_loader_and_model_in_step_with_external_memory():
    run_in_step(7, 20, WITH_EXTERNAL)


@pytest.mark.parametrize("seed", [1])
def test_loader_and_model_in_step(seed):
    run_in_step(seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "info"), [(2, INFO), (3, INFO), (4, INFO), (5, INFO), (6, WITH_EXTERNAL)])
def test_loader_and_model_in_step_for_long(seed, info):
    both = run_in_step(seed, 200, info)
    assert {Status.OK, Status.BAD_FRAME, Status.BAD_COMMAND} <= both.statuses
