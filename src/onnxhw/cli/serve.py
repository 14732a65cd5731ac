"""``onnxhw serve``."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import click

from .common.options import Frequency, board_option, common, examples, preset_option
from .common.output import Output, pass_output


@click.command(
    "serve",
    help="A simulated board: the complete RTL behind a pseudo-terminal or a TCP port.\n\n"
    + examples("""
  onnxhw serve --preset mini --link /tmp/board      then: --device serial:/tmp/board
  onnxhw serve --board ulx3s --tcp 5555             then: --device tcp:localhost:5555
"""),
    epilog="Every byte goes through the serial pins of the gateware that a bitstream would hold, simulated cycle by "
    "cycle, some hundred times slower than a board; drivers on this machine count their timeouts in simulated time. "
    "One client at a time; it may go and come again. Ctrl-C or SIGTERM ends it. See docs/simulated-board.md.",
)
@board_option
@preset_option
@click.option("--tcp", "tcp", metavar="[HOST:]PORT", help="Listen on a TCP port, 0 for a free one; HOST: this machine.")
@click.option("--pty", "pty", is_flag=True, help="Open a pseudo-terminal (the default).")
@click.option(
    "--link", type=click.Path(path_type=Path), metavar="PATH", help="Symbolic link to the pseudo-terminal, made anew."
)
@click.option("--baud", type=click.IntRange(min=1), metavar="N", help="Speed of the serial line; default: 1,000,000.")
@click.option(
    "--freq",
    type=Frequency(min=0.001),
    metavar="MHZ",
    help="The device's clock; default: the slowest that the line allows, to simulate fewer cycles.",
)
@common
@pass_output
def command(
    output: Output, board: str, preset: str | None, tcp: str | None, pty: bool, link: Path | None, baud: int | None,
    freq: float | None,
) -> int:  # fmt: skip
    from ..errors import UsageError

    if os.name != "posix":
        raise UsageError("E2586", "the simulated board needs Linux, macOS or another POSIX system")
    from ..driver.simulated_time import RunningBoard
    from ..serve import SimulatedBoard, serve
    from ..serve.board import BAUD
    from ..serve.clock import ClockFile
    from ..serve.endpoint import Endpoint, PtyEndpoint
    from ..serve.tcp import TcpEndpoint
    from .common.pipeline import target

    if tcp is not None and (pty or link):
        raise UsageError("E2908", "--tcp excludes --pty and --link")
    chosen = target(board, preset)
    speed = baud or BAUD
    endpoint: Endpoint = PtyEndpoint(link) if tcp is None else TcpEndpoint(*_host_and_port(tcp))
    with contextlib.closing(endpoint):
        with output.stage(f"prepare {chosen.config.name}"):
            clock_hz = round(freq * 1e6) if freq else None
            simulated = SimulatedBoard(chosen.config, baud=speed, clock_hz=clock_hz, progress=output.detail)
        what = RunningBoard(
            endpoint.address, chosen.board.name, chosen.config.name, simulated.clock_hz, simulated.baud, os.getpid()
        )
        with simulated, ClockFile(what) as clock:
            place = f"serial:{link or endpoint.address}" if tcp is None else endpoint.address
            output.data({**vars(what), "device": place})
            output.line(f"{what.board} with {what.preset} at {place}")
            output.line(f"{what.baud:,} baud, clock {what.clock_hz / 1e6:g} MHz, simulated; Ctrl-C ends it")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                serve(simulated, endpoint, clock, output.message)
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second Ctrl-C would leave files behind
    signal.signal(signal.SIGINT, before)
    output.message("the simulated board has been switched off")
    return 0


def _host_and_port(text: str) -> tuple[str, int]:
    from ..errors import UsageError

    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError("E2587", f"--tcp takes PORT or HOST:PORT, not {text!r}", hint="--tcp 5555")
    return host.strip("[]") or "127.0.0.1", int(port)
