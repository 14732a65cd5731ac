"""The command: a real client, pyserial included, through the pins of the simulated RTL."""

import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxhw import golden
from onnxhw.compiler import compile_graph
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.simulated_time import find, follow, running
from onnxhw.driver.transport import SerialTransport, Transport
from onnxhw.errors import LinkError
from onnxhw.golden.host import prepare
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.serve.tcp import REFUSAL

pytest.importorskip("serial", reason="needs pyserial (pip install onnxhw[host])")
pytestmark = [pytest.mark.rtl, pytest.mark.slow]

Start = Callable[..., Any]
ENDED = (0, 130)
"""Of a command that a signal ends: 130 if it took longer than its supervisor waits, as on a busy machine."""


def line(path: Path | str, baud: int = 1_000_000) -> Transport:
    return follow(SerialTransport(str(path), baud), str(path))


def images(digits_test: Path, count: int) -> np.ndarray:
    with np.load(digits_test) as data:
        return np.asarray(data["input"][:count])


def test_digits_through_a_pseudo_terminal_equal_the_golden_model(
    served: Start, digits: Path, digits_test: Path, tmp_path: Path
) -> None:
    """Program, images and results: every byte goes through the serial pins."""
    link = tmp_path / "board"
    graph = load(digits)
    program = compile_graph(graph, preset("mini"))
    board = served("--link", str(link))
    assert board.record["device"] == f"serial:{link}"
    with Client(line(link)) as client:
        assert client.info().config == program.config
        client.load(program)
        batch = [prepare(graph, {"input": x[None]}) for x in images(digits_test, 3)]
        for inputs, got in zip(batch, client.run_all(batch), strict=True):
            wanted = golden.run(graph, inputs)
            for name, values in got.outputs.items():
                assert np.array_equal(values, wanted[name])
            assert got.cycles == program.cycles
    # A client that dies in the middle of a load; the next one finds a board that works.
    with Client(line(link)) as client, pytest.raises(ZeroDivisionError):
        client.transport.write = _breaks_after(client.transport.write, 2)  # type: ignore[method-assign]  # the death
        client.load(program)
    with Device.open(f"serial:{link}") as device:
        device.load(program)
        got = device.client.run(inputs, program)  # which may be there still, and is then not loaded
        assert all(np.array_equal(values, wanted[name]) for name, values in got.outputs.items())
    status, words = board.end(signal.SIGINT)
    assert status in ENDED
    assert "client 1 is here" in words
    assert "switched off" in words
    assert not link.is_symlink()


def _breaks_after(write: Callable[[bytes], None], count: int) -> Callable[[bytes], None]:
    left = [count]

    def wrapped(data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            write(data[: len(data) // 2])
            raise ZeroDivisionError
        write(data)

    return wrapped


def test_tcp_serves_one_client_and_tells_the_second(served: Start) -> None:
    board = served("--tcp", "0")
    address = board.record["device"]
    port = int(address.rpartition(":")[2])
    with Device.open(address) as device:
        assert device.client.head().fingerprint == preset("mini").fingerprint
        with socket.create_connection(("localhost", port)) as second:
            second.sendall(b"\0\0")
            second.settimeout(300)
            words = b""
            while more := second.recv(100):
                words += more
            assert words == REFUSAL
        assert device.client.head().clock_hz == board.record["clock_hz"]
    with Device.open(address) as device:
        assert device.client.head().fingerprint == preset("mini").fingerprint
    assert board.end(signal.SIGTERM)[0] in ENDED
    with pytest.raises(LinkError, match="E9153"):
        Device.open(address)


def test_a_wrong_speed_gets_no_answer_and_the_right_one_does(served: Start) -> None:
    board = served()
    path = board.record["address"]
    with pytest.raises(LinkError, match="E9103"), Client(line(path, 115_200)) as client:
        client.head()
    with Client(line(path)) as client:
        assert client.head().baud == 1_000_000


def test_the_second_client_of_a_terminal_is_refused_by_the_lock(served: Start) -> None:
    board = served()
    with Client(line(board.record["address"])) as client:
        with pytest.raises(LinkError, match=r"E9151 .*another program"):
            line(board.record["address"])
        assert client.head().baud == 1_000_000


def test_a_stopped_simulation_times_out_only_when_it_has_stood_for_long(served: Start) -> None:
    """Half a minute's pause of the simulating process costs no retry as long as it goes on in time."""
    board = served()
    with Client(line(board.record["address"])) as client:
        client.head()
        board.stop(5)
        start = time.monotonic()
        assert client.status() == 0
        assert time.monotonic() - start > 4
        assert client.counters.retries == 0


def test_a_killed_board_leaves_nothing_that_counts(served: Start, tmp_path: Path) -> None:
    link = tmp_path / "board"
    board = served("--link", str(link))
    address = board.record["address"]
    assert find(str(link)) is not None
    client = Client(line(link))
    client.head()
    board.end(signal.SIGKILL)
    with pytest.raises(LinkError, match="E9102"):
        client.status()
    assert find(address) is None
    assert address not in {entry.address for entry in running()}
    again = served("--link", str(link))
    with Client(line(link)) as client:
        assert client.head().baud == again.record["baud"]


def test_resnet8_on_a_cifar_image_equals_the_golden_model(
    served: Start, reference_models: Path, reference_data: Path
) -> None:
    """The 85F's own preset, program (83 KB of it) and image through the pins."""
    graph = load(reference_models / "ic_resnet8_int8_qdq.onnx")
    with np.load(reference_data / "cifar10_test1000_jpeg_nhwc_u8.npz") as data:
        x = data["x"][:1].transpose(0, 3, 1, 2).astype(np.float32)
    inputs = prepare(graph, {graph.inputs[0].name: x})
    board = served("--preset", "ulx3s-85f", "--tcp", "0")
    with Device.open(board.record["device"]) as device:
        config = device.info.config
        assert config == preset("ulx3s-85f")
        program = device.load(compile_graph(graph, config))
        got = device.run_int8(inputs)
    wanted = golden.run(graph, inputs)
    assert got.cycles == program.cycles
    assert all(np.array_equal(values, wanted[name]) for name, values in got.outputs.items())
