"""``onnxhw selftest``."""

from typing import Any

import click

from .common.options import common, device_options, examples
from .common.output import Output, pass_output

RUNS = 3


@click.command(
    "selftest",
    help="Test a board: its link, its memories and a network of every instruction.\n\n"
    + examples("""
  onnxhw selftest
  onnxhw selftest --device serial:/dev/ttyUSB0 --json
"""),
    epilog="The network is compiled for the configuration that the board reports, so nothing but a bitstream is "
    "needed. A program that was loaded is forgotten. Exit status 9 if a test fails.",
)
@device_options
@common
@pass_output
def command(output: Output, device: str, baud: int | None, timeout_scale: float) -> None:
    from ..driver.selftest import findings
    from ..errors import LinkError
    from .common.device import open_device

    tests: list[dict[str, Any]] = []
    with open_device(output, device, baud, timeout_scale) as opened:
        for finding in findings(opened, output.detail):
            tests.append({"test": finding.name, "ok": finding.ok, "found": finding.found})
        config = opened.info.config
        if config is not None and all(test["ok"] for test in tests):
            tests.append(_network(opened, output))
        record = {"device": opened.address, "clock_mhz": opened.head.clock_hz / 1e6, "tests": tests}
    failed = [test["test"] for test in tests if not test["ok"]]
    output.table(("test", "result", "found"),
                 [(test["test"], "ok" if test["ok"] else "FAILED", test["found"]) for test in tests])  # fmt: skip
    if failed:
        output.found = record
        hint = "program the board again; if it stays, try a lower clock (`synth --freq`) or another board"
        raise LinkError("E9170", f"the self-test failed: {', '.join(failed)}", where=opened.address, hint=hint)
    output.data(record)


def _network(device: Any, output: Output) -> dict[str, Any]:
    """Run the network of `selftest_network` and compare every output with the golden model."""
    import numpy as np

    from .. import golden
    from ..compiler import compile_graph
    from .common.selftest_network import network

    graph = network()
    program = compile_graph(graph, device.info.config)
    device.load(program, again=True)
    random = np.random.default_rng(1)
    wrong = total = 0
    for _ in range(RUNS):
        x = random.integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)
        wanted = golden.run(graph, {"x": x})
        got = device.run_int8({"x": x}).outputs
        wrong += sum(int((got[name] != wanted[name]).sum()) for name in got)
        total += sum(values.size for values in got.values())
    found = f"{RUNS} runs of {program.cycles:,} cycles, {total - wrong:,} of {total:,} values equal"
    return {"test": "network", "ok": not wrong, "found": found}
