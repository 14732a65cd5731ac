"""`synth` around the bitstream flow: what it asks for, writes and refuses. The flow itself is tested in tests/build."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from synth_command import run

from onnxhw import board
from onnxhw.build import flow
from onnxhw.build.cache import Cache, family_sources
from onnxhw.cli import main
from onnxhw.cli.common import synthesis
from onnxhw.errors import DoesNotFitError, TimingError, ToolError, UsageError
from onnxhw.presets import preset
from onnxhw.program.container import load


def test_synth_writes_everything(built, digits, tmp_path, capsys):
    record = run(capsys, digits, "--preset", "mini", "--freq", "100", "-o", tmp_path / "out")
    assert built[0]["design"] == ("ulx3s-85f", "mini", 100_000_000, 3_000_000, False)
    assert (built[0]["options"].seeds, built[0]["options"].only_near) == (board.find("ulx3s").seeds, True)
    assert (record["cached"], record["timing_met"], record["fmax_mhz"], record["seed"]) == (True, True, 101.25, 3)
    assert record["resources"]["lut"] == {"used": 11203, "available": 83640}
    names = ["manifest.json", "placement.json", "program.ohw", "report.html", "top.bit", "trace.json"]
    assert sorted(record["artifacts"]) == names
    assert (tmp_path / "out" / "top.bit").read_bytes() == b"bits"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(names) - {"manifest.json"} <= set(manifest["files"])
    assert manifest["tools"]["yosys"] == "1"
    assert "101.25 MHz" in (tmp_path / "out" / "report.html").read_text()


def test_the_recipe_names_everything_that_decides_over_the_design(monkeypatch, tmp_path):
    """By it a bitstream is found without elaborating the design."""
    mini = synthesis.recipe(preset("mini"), 1, 9600)
    assert mini == synthesis.recipe(preset("mini"), 1, 9600)
    assert synthesis.recipe(preset("ulx3s-25f"), 1, 9600) != mini != synthesis.recipe(preset("mini"), 2, 9600)
    assert synthesis.recipe(preset("mini"), 1, 19200) != mini
    read = Path.read_bytes
    for path in (
        "rtl/fetch.py", "rtl/link/uart.py", "rtl/cells.py", "isa/instructions.py", "config.py", "isa/link.py",
    ):  # fmt: skip
        with monkeypatch.context() as change:
            end = f"onnxhw/{path}"
            change.setattr(Path, "read_bytes", lambda self, end=end: read(self) + b"#" * self.as_posix().endswith(end))
            assert synthesis.recipe(preset("mini"), 1, 9600) != mini, path
    family = family_sources("ecp5")  # the flow's own
    for path in ("cells.py", "pll.py", "map.v", "parts.py", "floorplan.py"):
        with monkeypatch.context() as change:
            end = f"onnxhw/devices/ecp5/{path}"
            change.setattr(Path, "read_bytes", lambda self, end=end: read(self) + b"#" * self.as_posix().endswith(end))
            assert family_sources("ecp5") != family, path


def test_the_board_says_the_clock(built, digits, tmp_path, capsys):
    run(capsys, digits, "--preset", "mini", "--board", "ulx3s-25f", "-o", tmp_path / "out")
    assert built[0]["clock_hz"] == board.find("ulx3s-25f").core_hz


def test_a_preset_of_a_board_can_have_a_clock_of_its_own(built, digits, tmp_path, capsys, monkeypatch):
    """Its memory's cycles, the rate of the line and what a placement is judged by follow."""
    file = Path(__file__).parents[2] / "boards" / "ulx3s-25f.toml"
    text = file.read_text(encoding="utf-8").replace("core_hz =", 'preset_hz = { "mini+sdram" = 75_000_000 }\ncore_hz =')
    (tmp_path / "quick.toml").write_text(text.replace('"ulx3s-25f"', '"quick"', 1), encoding="utf-8")
    words = [digits, "--board", tmp_path / "quick.toml", "-o", tmp_path / "out"]
    run(capsys, *words, "--preset", "mini+sdram")
    assert built[-1]["design"] == ("quick", "mini+sdram", 75_000_000, 3_000_000, False)
    program = load(tmp_path / "out" / "program.ohw")
    assert program.config.external == board.find("ulx3s-25f").external.external(75_000_000)
    for more, clock in ((["mini+sdram", "--freq", "50"], 50_000_000), (["mini"], 110_000_000)):
        run(capsys, *words, "--preset", *more)
        assert built[-1]["clock_hz"] == clock


@pytest.mark.parametrize(("link", "clock"), [("uart", 125_000_000), ("usb", 100_000_000)])
def test_a_preset_s_own_clock_is_of_the_board_s_link(built, digits, tmp_path, capsys, monkeypatch, link, clock):
    """With another one it is another design, which has not been seen to meet it."""
    monkeypatch.setattr(synthesis, "finished", lambda made, *_, **__: made)
    run(capsys, digits, "--link", link, "-o", tmp_path / "out")
    assert built[-1]["clock_hz"] == clock
    program = load(tmp_path / "out" / "program.ohw")
    assert program.config.external == board.find("ulx3s-85f").external.external(clock)


def test_options_reach_the_flow(built, digits, tmp_path, capsys):
    run(capsys, digits, "--preset", "mini", "--seeds", "7", "--freq", "62.5", "--no-cache", "-o", tmp_path / "out")
    assert built[0]["clock_hz"] == 62_500_000
    assert built[0]["options"].seeds == (1, 2, 3, 4, 5, 6, 7)
    assert built[0]["use_cache"] is False


@pytest.mark.parametrize(
    "error",
    [
        TimingError("E6101", "reaches 80 MHz, not 100 MHz"),
        DoesNotFitError("E5201", "needs 300 block RAMs"),
        ToolError("E7101", "nextpnr-ecp5 is not installed"),
        KeyboardInterrupt(),
    ],
)
def test_a_flow_that_fails_leaves_nothing(error, built, digits, tmp_path):
    built.append({"raises": error})
    status = getattr(error, "exit_status", 130)
    assert main(["synth", str(digits), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]) == status
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_does_not_fit_is_refused_before_the_flow(built, tmp_path, capsys):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 512, 4, 4])
    weights = np.random.default_rng(5).integers(-8, 8, (512, 64, 1, 1)).astype(np.int8)
    constants = {"s": np.float32(0.125), "z": np.int8(0), "w": weights}
    nodes = [
        helper.make_node(kind, [*inputs.split()], [output])
        for kind, inputs, output in (
            ("QuantizeLinear", "x s z", "xq"), ("DequantizeLinear", "xq s z", "xd"),
            ("DequantizeLinear", "w s z", "wd"), ("Conv", "xd wd", "c"),
            ("QuantizeLinear", "c s z", "cq"), ("DequantizeLinear", "cq s z", "y"),
        )
    ]  # fmt: skip
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    proto = helper.make_model(
        helper.make_graph(nodes, "large", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    model = tmp_path / "large.onnx"
    onnx.save(proto, model)
    record = run(capsys, model, "--preset", "mini", "-o", tmp_path / "out", status=5)
    assert record["error"]["code"] == "E5102"
    assert built == []


def test_progress_goes_to_stderr(built, digits, tmp_path, capsys):
    assert main(["synth", str(digits), "--preset", "mini", "--freq", "100", "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert "yosys" in captured.err
    assert "yosys" not in captured.out
    assert "clock 100.00 MHz met (Fmax 101.25 MHz)" in captured.out
    assert ", cached bitstream" in captured.out


def test_a_route_is_looked_up_only_where_a_bitstream_of_the_preset_is_kept(monkeypatch, tmp_path):
    """Looking it up may mean to elaborate the design; labels of others name the board, and presets begin alike."""
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    looked = []
    monkeypatch.setattr(synthesis, "top", lambda board, config, *_: looked.append((board.name, config.name)))
    monkeypatch.setattr(flow, "cached", lambda design, board, *, clock_hz, options, recipe: None)
    for label in ("mini on ulx3s-85f at 75 MHz", "ulx3s-85f-dense on ulx3s-85f at 60 MHz"):
        Cache("bitstream").store(label.encode().hex(), {"top.bit": b""}, label=label)
    for name in ("ulx3s-85f", "mini", "ulx3s-45f"):
        assert synthesis.cached_route(preset(name)) is None
    assert looked == [("ulx3s-85f", "mini")]


# -- the line's speed -------------------------------------------------------------------------------


def test_the_line_is_as_fast_as_the_adapter_and_the_clock_allow(built, digits, tmp_path, capsys):
    """The manifest has it; 8 cycles per bit are the least that the receiver needs."""
    for words, wanted in (
        ((), 3_000_000),
        (("--freq", "24"), 3_000_000),
        (("--freq", "20"), 1_500_000),
        (("--freq", "5"), 600_000),
        (("--baud", "115200"), 115_200),
    ):
        run(capsys, digits, "--preset", "mini", *words, "-o", tmp_path / "out")
        assert built[-1]["design"][3] == wanted
        assert json.loads((tmp_path / "out" / "manifest.json").read_text())["baud"] == wanted


def test_a_board_file_may_be_named_by_its_path(built, digits, tmp_path, capsys):
    text = (Path(board.__file__).parents[2] / "boards" / "ulx3s-25f.toml").read_text()
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace('name = "ulx3s-25f"', 'name = "mine"', 1).replace("3_000_000", "2_000_000"))
    record = run(capsys, digits, "--board", mine, "--preset", "mini", "-o", tmp_path / "out")
    assert record["board"] == "mine"
    assert built[-1]["design"] == ("mine", "mini", board.find("ulx3s-25f").core_hz, 2_000_000, False)
    for command in ("program", "program --flash"):
        assert main([*command.split(), str(tmp_path / "out"), "--board", "ulx3s"]) == 2
        assert "E2372" in capsys.readouterr().err
    missing = run(capsys, digits, "--board", tmp_path / "none.toml", status=2)["error"]
    assert missing["code"] == "E2301"
    named = run(capsys, digits, "--board", "mine", status=2)["error"]
    assert named["code"] == "E2305"
    assert "ONNXHW_BOARDS" in named["hint"]


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ('"LFE5U-25F"', '"LFE5UM6-25F"', "E2371", ["device.name: device 'LFE5UM6-25F'", "LFE5UM5G-45F"]),
        ('"BG381"', '"BG999"', "E2371", ["device.package: package 'BG999'", "BG554"]),
        ('"6"', '"9"', "E2371", ["device.speed: speed grade of an LFE5U '9'", "6, 7, 8"]),
        ('"LFE5U-25F"', '"LFE5U-85F"', "E2371", ["device.idcode is 0x41111043, an LFE5U-85F answers 0x41113043"]),
        ('"ULX3S_25F_Platform"', '"ULX3S_85F_Platform"', "E2303", ["is for device 'LFE5U-85F', not 'LFE5U-25F'"]),
        ('"clk25"', '"clk26"', "E2370", ["has no clock 'clk26'", "clk25"]),
        ('"ULX3S_25F_Platform"', '"Nothing"', "E2303", ["has no Nothing"]),
        ('"amaranth_boards.ulx3s"', '"amaranth_boards.ulx4s"', "E2303", ["platform.module cannot be imported"]),
        ('"amaranth_boards.ulx3s"', '"my_boards.ulx4s"', "E2303", ["platform.module cannot be imported"]),
    ],
)
def test_a_board_of_which_no_bitstream_can_be_made_is_refused_first(
    built, old, new, code, words, digits, tmp_path, capsys
):
    path = tmp_path / "mine.toml"
    text = (Path(board.__file__).parents[2] / "boards" / "ulx3s-25f.toml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    error = run(capsys, digits, "--board", path, "--preset", "mini", status=2)["error"]
    assert error["code"] == code
    for word in words:
        assert word in error["what"] + error["hint"]
    assert not built


def test_a_board_without_a_serial_line_is_refused(built, monkeypatch, digits, capsys):
    from amaranth_boards.ulx3s import ULX3S_85F_Platform

    others = [resource for resource in ULX3S_85F_Platform.resources if resource.name != "uart"]
    monkeypatch.setattr(ULX3S_85F_Platform, "resources", others)
    error = run(capsys, digits, "--preset", "mini", status=2)["error"]
    assert error["code"] == "E2370"
    assert "has no serial line 'uart'" in error["what"]
    assert not built


@pytest.mark.parametrize("part", ["LFE5U-12F", "LFE5UM-45F", "LFE5UM5G-45F", "LFE5UM5G-85F"])
def test_every_part_of_the_family_has_a_name_in_nextpnr(part):
    from onnxhw.devices.ecp5.parts import part_options

    speed = "8" if "5G" in part else "6"
    chosen = dataclasses.replace(board.find("ulx3s"), device=part, speed=speed)
    names = {"LFE5U-12F": "12k", "LFE5UM-45F": "um-45k", "LFE5UM5G-45F": "um5g-45k", "LFE5UM5G-85F": "um5g-85k"}
    assert part_options(chosen)[0] == f"--{names[part]}"


@pytest.mark.parametrize(("word", "says"), [
    ("FOO=1", "no word 'FOO' is known"), ("CONFIG_IOVOLTAGE=9.9", "CONFIG_IOVOLTAGE '9.9' is not supported"),
    ("MCCLK_FREQ=39", "MCCLK_FREQ '39' is not supported"), ("COMPRESS_CONFIG=MAYBE", "COMPRESS_CONFIG 'MAYBE'"),
])  # fmt: skip
def test_a_setting_that_the_tools_refuse_is_refused_before_them(word, says):
    from onnxhw.devices.ecp5.parts import part_options

    chosen = board.find("ulx3s")
    assert part_options(dataclasses.replace(chosen, sysconfig=("MCCLK_FREQ=62", "DONE_EX=OFF")))
    with pytest.raises(UsageError, match=says) as caught:
        part_options(dataclasses.replace(chosen, sysconfig=(*chosen.sysconfig, word)))
    assert caught.value.code == "E2371"
