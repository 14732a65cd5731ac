"""The example network, compiled."""

import pytest

from onnxhw.cli import main


@pytest.fixture(scope="module")
def compiled(digits, tmp_path_factory):
    """The output directory of `compile` for the preset `mini`."""
    folder = tmp_path_factory.mktemp("compiled") / "out"
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(folder), "-q"]) == 0
    return folder
