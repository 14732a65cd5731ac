"""`Device`: results equal to the golden model's from any thread, and every fault told apart by its class."""

import dataclasses
import json
import termios
import threading

import numpy as np
import pytest

import onnxhw
from onnxhw import golden
from onnxhw.driver import connection, discover, transport
from onnxhw.driver.artifact import build_id, read
from onnxhw.driver.device import Device
from onnxhw.driver.discover import SerialPort
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.faults import (
    NoAnswerError,
    PortBusyError,
    SessionLostError,
    StaleBitstreamError,
    UnpluggedError,
    WrongBitstreamError,
    WrongProgramError,
)
from onnxhw.driver.transport import SerialTransport
from onnxhw.errors import LinkError, UsageError
from onnxhw.golden import host
from onnxhw.isa.link import SLOWER
from onnxhw.isa.memory import Control, Space
from onnxhw.presets import PRESETS, preset
from onnxhw.program import container
from onnxhw.program.parts import Program

DESIGN = "0123456789abcdef" + 48 * "5"


@pytest.fixture
def images(digits_test):
    return np.load(digits_test)["input"]


def expected(graph, x):
    return host.finish(graph, golden.run(graph, host.prepare(graph, {"input": x})))


def test_the_package_offers_it():
    assert onnxhw.Device is Device
    with pytest.raises(AttributeError, match="has no attribute 'Dervice'"):
        onnxhw.Dervice  # noqa: B018 - looking it up is the test


def test_batches_equal_the_golden_model(digits_graph, digits_program, images):
    with Device.open("emu:mini") as device:
        device.load(digits_program)
        found = device.run({"input": images[:3]})
        wanted = expected(digits_graph, images[:3])
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        assert np.array_equal(found[name], values)
        assert len(values) == 3


def test_what_lies_in_the_lanes_beside_an_input_does_not_matter(digits_graph, digits_program, images):
    """An input of few channels leaves the other host words of its words as they are."""
    random = np.random.default_rng(0)
    with Device.open("emu:mini") as device:
        device.load(digits_program)
        for image in (images[:1], images[1:2]):
            noise = random.integers(0, 1 << 32, device.info.sizes[0], dtype=np.uint32)
            device.client.write(Space.ACT, 0, noise)
            for name, values in expected(digits_graph, image).items():
                assert np.array_equal(device.run({"input": image})[name], values)


def test_results_bring_cycles_and_counters(digits_program, images):
    with Device.open("emu:mini") as device:
        device.load(digits_program)
        (result,) = device.infer({"input": images[:1]})
    assert result.cycles == digits_program.cycles
    assert result.counters["vector_done"] == len(digits_program.code["vector"])


def test_every_thread_gets_its_own_results(digits_graph, digits_program, selftest_graph, selftest_program, images):
    """Two programs take turns on one device."""
    random = np.random.default_rng(0)
    xs = [random.integers(-128, 128, (1, 3, 12, 12)).astype(np.int8) for _ in range(2)]
    jobs = [(digits_graph, digits_program, {"input": images[i : i + 1]}) for i in range(2)]
    jobs += [(selftest_graph, selftest_program, {"x": x}) for x in xs]
    found: dict[int, list] = {n: [] for n in range(len(jobs))}
    with Device.open("emu:mini") as device:

        def work(n):
            for _ in range(2):
                found[n].append(device.run(jobs[n][2], jobs[n][1]))

        threads = [threading.Thread(target=work, args=(n,)) for n in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for n, (graph, _, feeds) in enumerate(jobs):
        wanted = host.finish(graph, golden.run(graph, host.prepare(graph, feeds)))
        assert len(found[n]) == 2
        for result in found[n]:
            for name, values in wanted.items():
                assert np.array_equal(result[name], values)


def test_a_program_that_is_there_is_not_sent_again(board, opened, digits_program):
    model = board()
    sent = []
    with opened(model) as device:
        device.load(digits_program, progress=lambda done, total: sent.append((done, total)))
        assert sent[-1][0] == sent[-1][1] > 10
    with opened(model) as another:
        another.load(digits_program, progress=lambda done, total: sent.append(None))
        assert None not in sent
        another.load(digits_program, again=True, progress=lambda done, total: sent.append(None))
        assert None in sent


def test_a_directory_is_a_program(tmp_path, digits_program, images):
    container.save(Program.of(digits_program), tmp_path / "program.ohw")
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "design": DESIGN}))
    assert read(tmp_path)[1] == DESIGN
    with Device.open("emu:mini") as device:
        assert device.load(tmp_path).model == digits_program.model
        assert device.run({"input": images[:1]})
    for text in ("{", "[]", '{"schema": 1, "design": 5}', '{"schema": 1, "design": "xyz"}', '{"schema": 99}', "{}"):
        (tmp_path / "manifest.json").write_text(text)
        with Device.open("emu:mini") as device, pytest.raises(UsageError, match="E2552 "):
            device.load(tmp_path)


def test_a_directory_of_a_camera_is_not_for_a_device_with_a_link(tmp_path, digits_program, images):
    """By address, open or loaded; what needs no device takes it, and so does everything the program alone."""
    container.save(Program.of(digits_program), tmp_path / "program.ohw")
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "design": DESIGN, "input": "camera-ov7670"}))
    message = r"E2589 .*takes the inputs from camera-ov7670, and has no link"
    with Device.open("emu:mini") as device:
        with pytest.raises(UsageError, match=message):
            device.load(tmp_path)
        with pytest.raises(UsageError, match=message):
            onnxhw.InferenceSession(tmp_path, device=device)
        assert device.load(tmp_path / "program.ohw").model == digits_program.model
    with pytest.raises(UsageError, match=message):
        onnxhw.InferenceSession(tmp_path, device="serial:/dev/nowhere")
    with onnxhw.InferenceSession(tmp_path, device="emulator") as session:
        assert session.run(None, {"input": images[:1]})


def test_wrong_bitstream(digits_program):
    message = r"E9107 .*emu:ulx3s-25f: .*'ulx3s-25f'.*needs 'mini'"
    with Device.open("emu:ulx3s-25f") as device, pytest.raises(WrongBitstreamError, match=message):
        device.load(digits_program)


def test_all_pairs_of_wrong_bitstream_and_program_are_refused(digits_program):
    """Every configuration on the board against programs of every configuration: only its own passes."""
    for there in PRESETS:
        with Device.open(f"emu:{there}") as device:
            for wanted, config in PRESETS.items():
                program = dataclasses.replace(digits_program, config=config)
                if wanted == there:
                    device.client.check(program.config)
                    continue
                with pytest.raises(WrongBitstreamError, match=f"E9107 .*'{there}'.*needs '{wanted}'"):
                    device.load(program)


def test_stale_bitstream(board, opened, digits_program):
    with opened(board(build_id=5)) as device:
        with pytest.raises(StaleBitstreamError, match=r"E9160 .*holds build 0000000000000005, .* 0123456789abcdef"):
            device.load(digits_program, design=DESIGN)
        assert issubclass(StaleBitstreamError, WrongBitstreamError)
    for there in (build_id(DESIGN), 0):
        with opened(board(build_id=there)) as device:
            device.load(digits_program, design=DESIGN)


def test_another_release_and_another_design(board, opened):
    model = board()
    model._description[1] = 99
    with opened(model) as device, pytest.raises(WrongBitstreamError, match=r"E9106 .*link protocol 99"):
        _ = device.head
    model = board()
    model._description[0] = 0
    with opened(model) as device, pytest.raises(WrongBitstreamError, match="E9105 "):
        _ = device.head


def test_wrong_program(board, opened, digits_program, images):
    class Damaged(EmulatedCore):
        def _run(self):
            super()._run()
            self.memory[Space.CONTROL][Control.CYCLES] += 1

    with opened(board(Damaged(digits_program.config))) as device:
        device.load(digits_program)
        with pytest.raises(WrongProgramError, match=r"E9109 .*the test's board: the run took"):
            device.run({"input": images[:1]})


def test_a_restarted_device_is_loaded_anew(board, opened, digits_graph, digits_program, images):
    model = board()
    with opened(model) as device:
        device.run({"input": images[:1]}, digits_program)
        model.session, model.loaded = 0, False
        with pytest.raises(SessionLostError, match="E9120"):
            device.run({"input": images[:1]}, digits_program)
        found = device.run({"input": images[:1]}, digits_program)
    for name, values in expected(digits_graph, images[:1]).items():
        assert np.array_equal(found[name], values)


def test_misuse(digits_program, images):
    device = Device.open("emu:mini")
    with pytest.raises(UsageError, match=r"E2554 .*emu:mini: no program is loaded"):
        device.run({"input": images[:1]})
    with pytest.raises(UsageError, match="E2554"):
        device.run_int8({})
    device.load(digits_program)
    with pytest.raises(UsageError, match="E2203"):
        device.run({"inptu": images[:1]})
    with pytest.raises(UsageError, match=r"E2204 .*'input' is no array"):
        device.run({"input": [[1.0, 2.0], [3.0]]})
    device.close()
    device.close()
    with pytest.raises(UsageError, match="E2555"):
        device.run({"input": images[:1]})


@pytest.mark.parametrize("wrong", [{"baud": 0}, {"baud": -1}, *({"timeout_scale": x} for x in (0, -1, np.inf, np.nan))])
def test_waits_are_bounded(wrong):
    with pytest.raises(UsageError, match="E2556"):
        Device.open("emu:mini", **wrong)


def test_batches_of_different_sizes(selftest_program):
    from onnxhw.driver.artifact import samples

    with pytest.raises(UsageError, match=r"E2553 .*a 2, b 3"):
        samples({"a": np.zeros((2, 1, 1, 1), np.int8), "b": np.zeros((3, 1, 1, 1), np.int8)})


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "ttyUSB0", "usb:3", "serial", "serial:", "tcp", "tcp:5555", "tcp:host:", "tcp:host:99999"]
)
def test_what_is_no_address(text):
    with pytest.raises(UsageError, match="E2550"):
        Device.open(text)


def test_simulated_configurations():
    from onnxhw.driver.address import simulated_config

    tiny = dataclasses.replace(preset("mini"), name="tiny", act_depth=256)
    assert simulated_config("", None).name == "mini"
    assert simulated_config("", tiny) is tiny
    assert simulated_config("ulx3s", None) == preset("ulx3s-85f+sdram")
    assert simulated_config("ulx3s", preset("ulx3s-85f")).external is None
    assert simulated_config("ulx3s", preset("mini+sdram")) == preset("mini+sdram"), "its other presets have memory, too"
    assert simulated_config("ulx3s", preset("mini")).name == "mini"
    assert simulated_config("ulx3s-25f", preset("mini")).name == "ulx3s-25f", "a preset's name goes before a board's"
    with pytest.raises(UsageError, match=r"E2551 .*'nexys'"):
        simulated_config("nexys", None)


def test_through_a_serial_port(board, pty_board, digits_graph, digits_program, images):
    place = pty_board(board())
    with Device.open(f"serial:{place.path}") as device:
        device.load(digits_program)
        found = device.run({"input": images[:1]})
        with pytest.raises(PortBusyError, match="E9151"):
            Device.open(place.path)
    for name, values in expected(digits_graph, images[:1]).items():
        assert np.array_equal(found[name], values)
    with Device.open(place.path) as device:
        assert device.info.config == digits_program.config


def test_the_speed_is_found(board, pty_board, monkeypatch):
    monkeypatch.setattr(SerialTransport, "latency", 0.01)
    place = pty_board(board(), speed=termios.B3000000)
    with Device.open(place.path) as device:
        assert device.client.transport.baud == 3_000_000


def test_nothing_answers(pty_board, monkeypatch):
    monkeypatch.setattr(SerialTransport, "latency", 0.001)
    place = pty_board(None)
    with pytest.raises(NoAnswerError, match=r"E9155 .*nothing answers at 3,000,000, 1,000,000, .*onnxhw program DIR"):
        Device.open(place.path)
    SerialTransport(place.path).close()


def test_unplugged_during_a_session(board, pty_board, digits_program, images):
    place = pty_board(board())
    with Device.open(place.path) as device:
        device.load(digits_program)
        place.unplug()
        with pytest.raises(UnpluggedError, match=rf"E9102 .*{place.path}.*still plugged in"):
            for _ in range(3):
                device.run({"input": images[:1]})


def test_the_speeds_that_are_tried(pty_board, monkeypatch):
    """The likely one first, each once, then after breaks the slower ones of a device; one that is asked for, alone."""
    monkeypatch.setattr(SerialTransport, "latency", 0.001)
    monkeypatch.setattr(connection, "RATES", (3_000_000, 1_000_000))
    monkeypatch.setattr(transport, "BREAK", 0.001)
    silent, tried = pty_board(None), []
    set_baud = SerialTransport.set_baud
    monkeypatch.setattr(SerialTransport, "set_baud", lambda self, baud: (tried.append(baud), set_baud(self, baud)))
    for words, wanted in (
        ({}, "3,000,000, 1,000,000"),
        ({"likely_baud": 1_000_000}, "1,000,000, 3,000,000"),
        ({"likely_baud": 921_600}, "921,600, 3,000,000, 1,000,000"),
        ({"baud": 500_000, "likely_baud": 921_600}, "500,000"),
    ):
        tried.clear()
        with pytest.raises(NoAnswerError, match=rf"E9155 .*nothing answers at {wanted} baud .*--baud"):
            Device.open(silent.path, **words)
        others = wanted.split(", ")[1:]
        assert [f"{baud:,}" for baud in tried[: len(others)]] == others
        assert set(tried[len(others) :]) == (set() if "baud" in words else set(SLOWER))


def test_a_board_that_was_programmed_with_another_speed_is_found():
    """What `synth` has built for, and what it built before it had --baud, are among the speeds tried."""
    from onnxhw.board import boards

    assert {board.baud for board in boards().values() if board.baud} | {1_000_000} <= set(connection.RATES)


def test_auto(board, pty_board, monkeypatch):
    monkeypatch.setattr(SerialTransport, "latency", 0.001)
    monkeypatch.setattr(connection, "RATES", (1_000_000,))
    first, second, silent = pty_board(board()), pty_board(board()), pty_board(None)
    ports: list[SerialPort] = []
    monkeypatch.setattr(discover, "ports", lambda: ports)
    with pytest.raises(LinkError, match=r"E9156 .*no known board is connected Hint"):
        Device.open()
    ports.append(SerialPort(silent.path))
    with pytest.raises(LinkError, match=rf"E9156 .*other ports: {silent.path}"):
        Device.open("auto")
    ports[:] = [SerialPort(silent.path, boards=("ulx3s-85f",))]
    with pytest.raises(NoAnswerError, match=f"E9155 .*{silent.path}"):
        Device.open("auto")
    ports.append(SerialPort(first.path, boards=("ulx3s-85f",)))
    with Device.open("auto") as device:
        assert device.address == f"serial:{first.path}"
    ports.append(SerialPort(second.path, boards=("ulx3s-85f",)))
    with pytest.raises(LinkError, match=rf"E9157 .*2 boards answer: serial:{first.path}, serial:{second.path}"):
        Device.open("auto")
    SerialTransport(first.path).close()
