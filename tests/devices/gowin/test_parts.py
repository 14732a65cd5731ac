"""Which Gowin parts are taken, and what is said of others."""

from dataclasses import replace

import pytest

from onnxhw.board import find
from onnxhw.devices.gowin.parts import boot_seconds, part_number
from onnxhw.errors import UsageError

NANO = find("tang-nano-20k")


def test_part_numbers_are_those_of_the_maker():
    assert part_number(NANO) == "GW2AR-LV18QN88C8/I7"
    assert part_number(find("tang-primer-20k")) == "GW2A-LV18PG256C8/I7"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device": "GW1N-9C"}, "device 'GW1N-9C' is not supported"),
        ({"package": "PG256"}, "package of a GW2AR-18C 'PG256' is not supported"),
        ({"speed": "6"}, "speed grade '6' is not supported"),
        ({"sysconfig": ("MCCLK_FREQ=38.8",)}, "platform.sysconfig: this family's tools know no such words"),
    ],
)
def test_another_part_is_refused_with_what_there_is(change, words):
    with pytest.raises(UsageError, match="E2371") as caught:
        part_number(replace(NANO, **change))
    assert words in caught.value.what
    assert caught.value.hint


def test_a_bitstream_is_read_a_bit_per_cycle():
    assert boot_seconds(5_000_000) == 2.0
