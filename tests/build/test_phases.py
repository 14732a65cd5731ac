"""What nextpnr is doing, from lines of its logs."""

import pytest

from onnxhw.build.phases import RouteLog

LOG = """\
Info: Packing carries...
> pack
Info: Running Static placer...
> place
Info: overlap: COMB=96.5%, FF=95.8%, RAM=78.4%, MUL=84.6%
> place: 96.5 % of the logic overlaps
Info: Creating initial analytic placement for 12083 cells, random placement wirelen = 1186211.
> place: 12083 cells
Info:     at iteration #4, type ALL: wirelen solved = 84361, spread = 137812, legal = 146005; time = 0.21s
> place: iteration 4
Info: Strict legalising 12083 cells...
> legalise: 12083 cells
Info: Running simulated annealing placer for refinement.
> refine
Info:   at iteration #5: temp = 0.000000, timing cost = 805, wirelen = 83603
> refine: iteration 5
Info: Routing globals...
> route: clocks
Info: Running router2...
> route
Info:     iter=3 wires=98740 overused=5430 overuse=600 tmgfail=0 archfail=NA
> route: iteration 3, 5430 wires used twice
Info:       1000 |       12        987 |   12   987 |     16014|       0.31       0.31|
> route: 16014 connections left
Info: Critical path report for clock '$glbnet$clk' (posedge -> posedge):
> time
"""


def test_each_line_of_a_log_is_a_phase(tmp_path):
    log = RouteLog(tmp_path / "log")
    assert log.look() == ""  # not there yet
    with (tmp_path / "log").open("w", buffering=1) as file:
        for line in LOG.splitlines():
            if line.startswith("> "):
                assert log.look() == line[2:]
            else:
                file.write(f"{line}\n")


def test_cells_of_which_there_are_too_few_are_told(tmp_path):
    log = RouteLog(tmp_path / "log")
    full = "Info: \t              DP16KD:      56/     56   100%\n"
    (tmp_path / "log").write_text(full)
    log.look()
    assert log.too_many == {}
    (tmp_path / "log").write_text(f"{full}Info: \t        TRELLIS_COMB:   24767/  24288   101%\n")
    log.look()
    assert log.too_many == {"TRELLIS_COMB": (24767, 24288)}


def test_iterations_of_the_router_are_told(tmp_path):
    log = RouteLog(tmp_path / "log")
    assert log.iterations == 0
    line = "Info:      {} |    57300      45699 |  490   510 |      5850|       4.60     439.47|\n"
    log.path.write_text("Info: Routing 28 arcs.\n" + line.format(1000) + line.format(103000))
    log.look()
    assert log.iterations == 103_000
    assert log.text == "route: 5850 connections left"


def test_steps_of_the_placer_are_told(tmp_path):
    log = RouteLog(tmp_path / "log")
    (tmp_path / "log").write_text(
        "Info: iter=598 steplen=1.9 a=7.0 penalty=[1.0]\nInfo: iter=599 steplen=1.9 a=7.0 penalty=[1.0]\n"
        "Info:     iter=3 wires=100 overused=7 overuse=9\n"
    )
    log.look()
    assert log.steps == 599


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_log_that_is_written_in_pieces_is_read_the_same(tmp_path, size):
    lines = "".join(f"{line}\n" for line in LOG.splitlines() if not line.startswith("> ")).encode()
    log, whole = RouteLog(tmp_path / "log"), []
    with (tmp_path / "log").open("wb", buffering=0) as file:
        for start in range(0, len(lines), size):
            file.write(lines[start : start + size])
            whole.append(log.look())
    assert whole[-1] == "time"
    phases = ["pack", "place", "legalise", "refine", "route", "time"]
    seen = list(dict.fromkeys(text.partition(":")[0] for text in whole if text))
    assert seen == (phases if size < 1000 else [phase for phase in phases if phase in seen])
