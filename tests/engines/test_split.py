"""The generated C++ of the core can be cut; text of another form is refused."""

from pathlib import Path

import pytest

from onnxhw.build import tools
from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl import elaborate
from onnxhw.engines.cxxrtl.split import SplitError, split
from onnxhw.rtl.core import Core

pytestmark = [pytest.mark.rtl]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory, small: HwConfig) -> tuple[str, str]:
    folder: Path = tmp_path_factory.mktemp("cxxrtl")
    (folder / "top.il").write_text(elaborate(Core(small)))
    tools.run("yosys", ["-q", "-p", "read_rtlil top.il; write_cxxrtl -header -g2 design.cc"], folder)
    return (folder / "design.cc").read_text(), (folder / "design.h").read_text()


def test_the_core_is_cut_into_pieces_of_the_size_asked(generated: tuple[str, str]) -> None:
    pieces = split(*generated, "design.h", 8_000, 100_000)
    assert len(pieces.hot) >= 3
    assert max(map(len, pieces.hot)) < 130_000
    assert "::eval(performer *performer) {" not in pieces.cold
    # One evaluation is enough per cycle: the design has no combinational feedback.
    assert not any("converged = false" in text for text in pieces.hot)
    # Every register is latched by the loops over wires, none is lost or declared twice.
    before, after = (text.count("\twire<") for text in (generated[1], pieces.header))
    assert before == after > 300


def test_other_text_is_refused(generated: tuple[str, str]) -> None:
    source, header = generated
    with pytest.raises(SplitError):
        split(source.replace("::eval(performer", "::evaluate(performer"), header, "design.h")
    with pytest.raises(SplitError):
        split(source, header.replace("commit(observer)", "apply(observer)"), "design.h")
