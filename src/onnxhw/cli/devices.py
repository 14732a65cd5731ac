"""``onnxhw devices``."""

import contextlib
from typing import TYPE_CHECKING, Any

import click

from .common.options import BAUD, common, examples
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from ..isa.link import Info


@click.command(
    "devices",
    help="List serial ports, and what the boards behind them say.\n\n"
    + examples("""
  onnxhw devices
  onnxhw devices --device serial:/dev/ttyACM0 --device tcp:localhost:5555
  onnxhw devices --json
"""),
    epilog="Asked are the ports whose USB adapter is a known board's and the addresses of --device. Other ports are "
    "only listed, since what is behind them may mind being written to; so are the simulated boards of this machine "
    "(`onnxhw serve`), which serve one client at a time. Exit status 9 if an address of --device does not answer.",
)
@click.option("-d", "--device", "addresses", multiple=True, metavar="ADDRESS", help="Ask here, too; may be repeated.")
@click.option(
    "--baud", type=BAUD, metavar="N",
    help="Speed of the serial lines; default: tries the usual ones.",
)
@click.option("--no-ask", is_flag=True, help="List ports only.")
@common
@pass_output
def command(output: Output, addresses: tuple[str, ...], baud: int | None, no_ask: bool) -> None:
    from ..driver import discover, simulated_time
    from ..driver.address import parse

    rows: list[dict[str, Any]] = []
    for port in discover.ports():
        row = _row(port.address, port.product, port.usb, list(port.boards), port.hint)
        rows.append(row if no_ask or not port.boards else {**row, **_ask(port.address, baud)})
    for board in simulated_time.running():
        address = board.address if board.address.startswith("tcp:") else f"serial:{board.address}"
        row = _row(address, "simulated board", "", [board.board], "")
        says = {"state": "simulated", "preset": board.preset, "clock_mhz": board.clock_hz / 1e6, "baud": board.baud}
        rows.append({**row, **says})
    failed = None
    for address in addresses:
        parse(address)
        answer = _ask(address, baud)
        failed = failed or answer.pop("error")
        rows.append({**_row(address, "", "", [], ""), **answer})
    for row in rows:
        row.pop("error", None)
    if failed is None:
        output.data({"devices": rows})
    output.table(
        ("device", "what", "usb", "board", "says"),
        [
            (row["device"], row["product"], row["usb"] or None, ", ".join(row["boards"]) or None, _says(row))
            for row in rows
        ],
    )
    for row in rows:
        if row["hint"]:
            output.message(f"{row['device']}: {row['hint']}")
    if not rows:
        output.line("no serial ports; is a board plugged in? (`onnxhw serve` starts a simulated one)")
    if failed is not None:
        output.found = {"devices": rows}
        raise failed


def _row(address: str, product: str, usb: str, boards: list[str], hint: str) -> dict[str, Any]:
    """A port that has not been asked."""
    return {
        "device": address, "product": product, "usb": usb, "boards": boards, "hint": hint, "state": "not asked",
        "preset": None, "config": None, "clock_mhz": None, "baud": None, "link": None, "build_id": None, "baked": None,
    }  # fmt: skip


def _ask(address: str, baud: int | None) -> dict[str, Any]:
    """What the device says, or why it says nothing; `error` is the exception or None."""
    from ..driver.device import Device
    from ..errors import OnnxhwError

    try:
        with Device.open(address, baud=baud) as device:
            head = device.head
    except OnnxhwError as error:
        return {"state": error.what, "hint": error.hint, "error": error}
    build = f"{head.build_id:016x}" if head.build_id else None
    return {
        "state": "answers", "preset": _preset(head), "config": head.fingerprint, "clock_mhz": head.clock_hz / 1e6,
        "baud": head.baud, "link": "usb" if head.usb else "uart", "build_id": build, "baked": head.standalone,
        "error": None,
    }  # fmt: skip


def _preset(head: "Info") -> str | None:
    """The preset that a device has, also with the external memory of a board at its clock or the board's; None if it is
    none."""
    from ..board import boards
    from ..errors import UsageError
    from ..presets import PRESETS, SDRAM

    if name := next((name for name, config in PRESETS.items() if config.fingerprint == head.fingerprint), None):
        return name
    for board in (board for board in boards().values() if board.external):
        for name in (preset + SDRAM for preset in board.presets):
            for clock_hz in {head.clock_hz, board.core_hz_of(name)}:
                with contextlib.suppress(UsageError):  # the memory does not take that clock
                    if board.configuration(name, clock_hz).fingerprint == head.fingerprint:
                        return name
    return None


def _says(row: dict[str, Any]) -> str:
    """A row's last column."""
    if row["state"] not in ("answers", "simulated"):
        return str(row["state"])
    name = row["preset"] or f"configuration {row['config']}"
    baked = ", with a program baked in" if row["baked"] else ""
    line = "USB" if row["link"] == "usb" else f"{row['baud']:,} baud"
    return f"{name} at {row['clock_mhz']:g} MHz, {line}{baked}"
