"""Corrupted programs: single bits of the microcode flipped on the device, and whether it can still be reached.

    python bench/microcode.py                 1,000 flips, through the serial pins of the simulated gateware
    python bench/microcode.py --flips 50 --seed 3

The flip is written and committed like any program, with its right CRC, so the device does run it. It must answer, and
the watchdog must end a run that does not end by itself. Then the word is put right, and the next inference must be
right.
"""

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.framing import crc32c
from onnxhw.driver.link import Request
from onnxhw.emu import run as emulate
from onnxhw.errors import LinkError
from onnxhw.isa import Unit
from onnxhw.isa.link import COMMIT_WORDS, Command, load_record
from onnxhw.isa.memory import Control, Space
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.program.host_words import memories

NETWORK = Path(__file__).parent.parent / "examples" / "digits.onnx"
DETECTED = {"E9108": "stopped by the watchdog", "E9109": "another number of cycles", "E9110": "not ended"}
UNHARMED, WRONG, LOST = "result right", "result wrong, cycles right", "unreachable"


def campaign(
    client: Client, program: DeviceProgram, inputs: dict[str, npt.NDArray[np.int8]], flips: int, seed: int
) -> Counter[str]:
    """What `flips` flips led to, by name; `LOST`: the device did not answer, or gave a wrong result afterwards."""
    rng, found = random.Random(seed), Counter[str]()
    wanted = emulate(program, inputs).outputs
    images = {space: image for space, image in memories(program) if space in {unit.microcode for unit in Unit}}
    client.load(program)
    counts = client.read(Space.CONTROL, Control.LOAD_COUNT, COMMIT_WORDS - 1).astype("<u4").tobytes()

    def right() -> bool:
        outputs = client.run(inputs, program).outputs
        return all(np.array_equal(outputs[name], values) for name, values in wanted.items())

    for _ in range(flips):
        space = rng.choice(sorted(images))
        at, bit = rng.randrange(len(images[space])), rng.randrange(32)
        word = int(images[space][at])
        try:
            commit(client, space, at, word ^ 1 << bit, counts)
            try:
                outcome = UNHARMED if right() else WRONG
            except LinkError as error:
                outcome = DETECTED.get(error.code, LOST)
            commit(client, space, at, word, counts)
            outcome = outcome if right() else LOST
        except LinkError:
            outcome = LOST
        found[outcome] += 1
    return found


def commit(client: Client, space: int, at: int, word: int, counts: bytes) -> None:
    """Make a program of what the device holds, with one word replaced."""
    payload = word.to_bytes(4, "little")
    crc = crc32c(load_record(space, at, payload)).to_bytes(4, "little")
    client.link.perform([
        Request(Command.RESET, address=1),
        Request(Command.WRITE, space, at, 1, payload),
        Request(Command.COMMIT, count=COMMIT_WORDS, payload=crc + counts),
    ])  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    program = compile_graph(load(NETWORK), preset("mini"))
    (port,) = program.inputs
    shape = program.tensors[port.tensor].shape
    values = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    with Device.open("sim:mini") as device:
        found = campaign(device.client, program, {port.tensor: values}, arguments.flips, arguments.seed)
    for name in (UNHARMED, WRONG, *DETECTED.values(), LOST):
        print(f"{found[name]:6,} {name}")
    return bool(found[LOST])


if __name__ == "__main__":
    sys.exit(main())
