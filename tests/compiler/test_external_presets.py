"""Which presets with external memory are proposed for what is larger than the chip."""

from onnxhw.compiler.external_presets import external_presets
from onnxhw.presets import preset


def test_boards_that_offer_the_configuration_are_told_and_else_all() -> None:
    assert external_presets(preset("ulx3s-85f")) == "preset ulx3s-85f+sdram on ulx3s-85f"
    assert "preset ulx3s-85f+sdram on ulx3s-85f" in external_presets(preset("virtual"))
    assert "preset ulx3s-25f-dense+sdram on " in external_presets(preset("ulx3s-25f"))
    assert external_presets(preset("mini+sdram")) == ""
