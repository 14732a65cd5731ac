"""Sessions and the backend on devices: results equal to the model's, from addresses, directories and threads."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pty_board import PtyBoard, count_idle_time
from session_net import Net, draw, mixed

import onnxhw
from onnxhw import backend, golden
from onnxhw.cli import main
from onnxhw.compiler import compile
from onnxhw.driver.client import Client
from onnxhw.driver.device import Device
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.faults import WrongBitstreamError
from onnxhw.errors import UsageError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.isa.link import Info
from onnxhw.presets import preset
from onnxhw.program import container
from onnxhw.runtime.session import InferenceSession

MINI = preset("mini")


def check(session: InferenceSession, samples: int = 1, seed: int = 0) -> None:
    x = draw([samples, 4, 4, 4], seed)
    found = session.run(None, {"x": x})
    for i in range(samples):
        wanted = evaluate(mixed(), {"x": x[i : i + 1]})
        for value, got in zip(session.get_outputs(), found, strict=True):
            np.testing.assert_array_equal(got[i : i + 1], wanted[value.name])


def test_the_package_offers_it() -> None:
    assert onnxhw.InferenceSession is InferenceSession


def test_an_emulated_device_takes_the_parts_in_turn_once_per_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    real = Client.load

    def load(self: Client, program: Any, progress: Any = None) -> None:
        loads.append(program.model)
        real(self, program, progress)

    monkeypatch.setattr(Client, "load", load)
    with InferenceSession(mixed(), device="emu:", config=MINI) as session:
        assert len(session.program.programs) == 2
        assert len(loads) == 1
        check(session, 3)
        assert session.cycles == 3 * session.program.cycles
        assert len(loads) == 2, "the second part after all samples of the first"
        check(session, 2, seed=1)
        assert len(loads) == 4


def test_the_layers_of_all_parts_add_up() -> None:
    with InferenceSession(mixed(), device="emu:mini") as session:
        assert session.config == MINI
        assert sum(row.cycles for row in session.profile()) == session.program.cycles
        assert {row.kind for row in session.profile()} == {"Conv", "Add"}
    with pytest.raises(UsageError, match="E2505"):
        InferenceSession(mixed()).profile()


@pytest.mark.slow
@pytest.mark.rtl
def test_the_simulated_gateware() -> None:
    with InferenceSession(mixed(), device="sim:", config=MINI) as session:
        check(session)


def test_a_serial_port_says_what_to_compile_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("serial")
    board = PtyBoard(DeviceModel(Info.of(MINI, clock_hz=100_000_000, baud=1_000_000), EmulatedCore(MINI)))
    count_idle_time(monkeypatch, [board])
    try:
        with InferenceSession(mixed(), device=f"serial:{board.path}") as session:
            assert session.config == MINI, "the board's own, not the default's"
            check(session, 2)
        with pytest.raises(WrongBitstreamError, match="E9107"):
            InferenceSession(mixed(), device=board.path, config=preset("ulx3s-25f"))
        with InferenceSession(mixed(), device=board.path) as session:  # the refusal has released the port
            check(session)
    finally:
        board.unplug()


@pytest.mark.parametrize("device", ["emulator", "emu:mini"])
def test_closing_waits_for_the_run_of_another_thread(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled RTL is memory that must not go while it runs; and a closed session opens nothing again."""
    running, closing, order = threading.Event(), threading.Event(), []
    finish = golden.host.finish

    def slowly(*arguments: Any) -> Any:
        running.set()
        closing.wait(10)
        time.sleep(0.05)
        order.append("run")
        return finish(*arguments)

    monkeypatch.setattr(golden.host, "finish", slowly)
    session = InferenceSession(mixed(), device=device, config=MINI)
    thread = threading.Thread(target=check, args=(session,))
    thread.start()
    running.wait(10)
    closing.set()
    session.close()
    order.append("closed")
    thread.join()
    assert set(order[:-1]) == {"run"}
    assert order[-1] == "closed"
    for _ in range(2):
        with pytest.raises(UsageError, match="E2507"):
            session.run(None, {"x": draw()})
        session.close()


def test_an_open_device_stays_open() -> None:
    with Device.open("emu:mini") as device:
        for seed in range(2):
            with InferenceSession(mixed(), device=device) as session:
                check(session, seed=seed)
        assert device.head.fingerprint == MINI.fingerprint
        with pytest.raises(UsageError, match="E2507"):
            session.run(None, {"x": draw()})
        session = InferenceSession(mixed(), device=device)
    with pytest.raises(UsageError, match="E2555"):
        session.run(None, {"x": draw()})


def test_threads_get_their_own_results() -> None:
    failures: list[BaseException] = []

    def work(session: InferenceSession, seed: int) -> None:
        try:
            for _ in range(2):
                check(session, 2, seed)
        except BaseException as error:
            failures.append(error)

    with InferenceSession(mixed(), device="emu:mini") as session:
        threads = [threading.Thread(target=work, args=(session, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


@pytest.mark.parametrize("device", ["emu:", "emulator"])
def test_what_compile_has_written(tmp_path: Path, device: str) -> None:
    program = compile(mixed(), MINI)
    container.save(program, tmp_path / "program.ohw")
    for model in (tmp_path, tmp_path / "program.ohw"):
        with InferenceSession(model, device=device) as session:
            assert session.config == MINI
            check(session, 2)
    for wrong in ({"config": MINI}, {"shapes": {"n": 1}}, {"prefer": "speed"}):
        with pytest.raises(UsageError, match="E2504"):
            InferenceSession(tmp_path, device=device, **wrong)
    with pytest.raises(UsageError, match="E2506"):
        InferenceSession(tmp_path)


def test_a_program_that_is_the_whole_model(tmp_path: Path) -> None:
    net = Net()
    model = net.model(net.conv(net.grid("x")))
    program = compile(model, MINI)
    assert len(program.parts) == 1
    container.save(program, tmp_path / "program.ohw")
    x = draw([3, 4, 4, 4])
    (wanted,) = InferenceSession(model).run(None, {"x": x})
    with InferenceSession(tmp_path, device="emu:") as session:
        (value,) = session.get_inputs()
        assert (value.name, value.shape, value.dtype) == ("x", [1, 4, 4, 4], "float32")
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)


def test_a_device_and_an_engine_have_one_program(digits: Path) -> None:
    """Its line decides where a part runs, and not how."""
    found = []
    for device in ("emu:", "emulator"):
        with InferenceSession(digits, device=device, config=MINI) as session:
            found.append(container.dumps(session.program))
    assert found[0] == found[1]


def test_a_directory_whose_samples_may_meet_takes_one(tmp_path: Path) -> None:
    net = Net(["N", 4, 4, 4])
    model = net.model(net.node("ReduceMax", net.conv(net.grid("x")), axes=[0], keepdims=1))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    onnxhw_compile = ["compile", str(tmp_path / "model.onnx"), "--board", "ulx3s", "--preset", "mini"]
    assert main([*onnxhw_compile, "-o", str(tmp_path / "out"), "-q"]) == 0
    with InferenceSession(tmp_path / "out", device="emu:") as session:
        x = draw([1, 4, 4, 4])
        (value,), (got,) = session.get_outputs(), session.run(None, {"x": x})
        np.testing.assert_array_equal(got, evaluate(model, {"x": x})[value.name])
        with pytest.raises(UsageError, match="E2506"):
            session.run(None, {"x": draw([2, 4, 4, 4])})
    manifest = tmp_path / "out" / "manifest.json"
    noted = json.loads(manifest.read_text())
    for wrong in ({"shapes": 3}, {"shapes": ["x"]}, {"shapes": [1]}, {"limits": None}):
        manifest.write_text(json.dumps({**noted, **wrong}))
        with pytest.raises(UsageError, match=r"E2552 .*manifest.json"):
            InferenceSession(tmp_path / "out", device="emu:")


@pytest.mark.parametrize(
    ("device", "code"), [("gpu", "E2500"), (None, "E2500"), ("usb:3", "E2550"), ("emu:nexys", "E2551")]
)
def test_no_such_device(device: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        InferenceSession(mixed(), device=device)
    assert caught.value.code == code


def test_the_backend_on_a_device() -> None:
    x = draw()
    with backend.prepare(mixed(), "emu:mini") as prepared:
        assert prepared.where == "mixed"
        got = prepared.run([x])
    for found, wanted in zip(got, evaluate(mixed(), {"x": x}).values(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert all(backend.supports_device(name) for name in ("emulator", "auto", "serial:/dev/ttyUSB0", "/dev/ttyUSB0"))
    assert not backend.supports_device("usb:3")
    assert backend.is_compatible(mixed(), "emu:mini")
    with pytest.raises(UsageError, match="E2710"):
        backend.prepare(mixed(), "gpu")


def test_the_backend_opens_a_device_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = Device.open

    def count(address: str, **others: Any) -> Device:
        opened.append(address)
        return real(address, **others)

    monkeypatch.setattr(Device, "open", count)
    net = Net(["N", 4, 4, 4])
    model = net.model(net.conv(net.grid("x")))
    with backend.prepare(model, "emu:mini") as prepared:
        for size in (1, 2):
            x = draw([size, 4, 4, 4])
            np.testing.assert_array_equal(prepared.run([x])[0], backend.run_model(model, [x])[0])
    assert opened == ["emu:mini"]
