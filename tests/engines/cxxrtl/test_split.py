"""The generated C++ of the core can be cut; text of another form is refused."""

import re
from pathlib import Path

import pytest

from onnxhw.build import tools
from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl.build import elaborate
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
    # Every register is declared once in the struct of registers, and none is left that holds both values.
    names = re.findall(r"\twire<\d+> (\w+);", generated[1])
    struct = pieces.header[pieces.header.index("struct registers {") : pieces.header.index("} now, next;")]
    assert sorted(re.findall(r"value<\d+> (\w+);", struct)) == sorted(names)
    assert len(names) > 300
    assert "wire<" not in pieces.header + pieces.cold + "".join(pieces.hot)
    # Nearly everything is in plain words, and the array's cells are in loops.
    wide = sum(len(re.findall(r"\.slice<|\.concat\(|_[us]{2}<", text)) for text in pieces.hot)
    assert wide < 300  # 243; most of them are the input port's
    assert sum(text.count("for (int i = 0;") for text in pieces.hot) > 20


def test_other_text_is_refused(generated: tuple[str, str]) -> None:
    source, header = generated
    with pytest.raises(SplitError):
        split(source.replace("::eval(performer", "::evaluate(performer"), header, "design.h")
    with pytest.raises(SplitError):
        split(source, header.replace("commit(observer)", "apply(observer)"), "design.h")
