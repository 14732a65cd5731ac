"""What `compile` writes is taken when it is read."""

from pathlib import Path

import artifact_mutants
import gate_models
import pytest

from onnxhw.compiler import compile
from onnxhw.presets import preset
from onnxhw.program import container
from onnxhw.runtime import loading


@pytest.mark.parametrize("name", gate_models.MODELS)
def test_every_program_that_is_compiled_loads(name: str, tmp_path: Path) -> None:
    program = compile(gate_models.MODELS[name](), preset("mini"), prefer="hardware")
    container.save(program, tmp_path / "program.ohw")
    assert len(loading.load(tmp_path / "program.ohw").parts) == len(program.parts)


def test_the_programs_that_mutants_are_made_of_load(tmp_path: Path) -> None:
    for data in set(artifact_mutants.bases().programs):
        (tmp_path / "program.ohw").write_bytes(data)
        loading.load(tmp_path / "program.ohw")
