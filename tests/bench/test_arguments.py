"""Numbers on the benches' command lines: each wrong one is a sentence with the option's name, and status 2."""

import sys
from argparse import ArgumentTypeError

import external_faults
import faults
import large
import overlap
import pytest
import route
import usb_faults
from arguments import number, whole

NO_SCALES = ("nan", "inf", "0", "-1", "1e308", "x")
WRONG = (
    *((faults, "--scale", value) for value in NO_SCALES),
    *((faults, "--baud", value) for value in ("0", "-1", "nan", "9600", "12500001", "3e6")),
    (faults, "--case", "nosuch"),
    *((usb_faults, "--scale", value) for value in NO_SCALES),
    (usb_faults, "--case", "nosuch"),
    *((external_faults, "--count", value) for value in ("0", "-1", "nan", "1e3", "x")),
    *((external_faults, "--seed", value) for value in ("-1", "x")),
    (external_faults, "--case", "nosuch"),
    *((large, "--mhz", value) for value in ("nan", "inf", "0", "-3", "1e-9")),
    *((large, option, value) for option in ("--check", "--rtl") for value in ("0", "-1", "x")),
    *((overlap, "--clock", value) for value in ("nan", "inf", "0", "-5")),
    *((overlap, "--baud", value) for value in ("0", "-5", "299", "12000001")),
    (overlap, "--count", "0"),
    *((route, "--mhz", value) for value in ("nan", "inf", "-5", "0.001")),
    *((route, option, "0") for option in ("--seeds", "--workers")),
)


@pytest.mark.parametrize(("bench", "option", "value"), WRONG)
def test_a_wrong_argument_is_one_sentence(bench, option, value, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [bench.__name__, f"{option}={value}"])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert ended.value.code == 2
    assert f"error: argument {option}: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("kind", "good"), [(whole(2), ("2", "90")), (whole(2, 9), ("2", "9")), (number(2, 9), ("2", "2.5", "9"))]
)
def test_the_ends_of_a_range_are_in_it(kind, good):
    assert [kind(text) for text in good] == [float(text) for text in good]


@pytest.mark.parametrize("kind", [whole(2, 9, "so it is"), number(2, 9)])
@pytest.mark.parametrize("text", ["1", "1.9", "10", "nan", "", "x"])
def test_what_is_outside_is_told(kind, text):
    with pytest.raises(ArgumentTypeError, match=r"number from 2 to 9.*, not '"):
        kind(text)
