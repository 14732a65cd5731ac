"""onnx's backend test suite through `onnxhw.backend`: no wrong answer, and at least 99 % of the cases pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from onnxhw import conformance, golden
from onnxhw.cli.app import app
from onnxhw.cli.common.output import Output
from onnxhw.cluster import SerialPool
from onnxhw.conformance import Verdict, runner
from onnxhw.conformance.cases import SuiteCase
from onnxhw.conformance.compare import difference, implausible
from onnxhw.errors import UsageError
from onnxhw.ir.graph import Graph

FAST = "^test_(q|dequant|conv|matmul|dynamicq|loop|if|scan_|opt|seq|soft|max|aver|batch|lstm|gru|rnn|top|slice|pad)"


@pytest.fixture(scope="module")
def verdict_of() -> Callable[[SuiteCase], Verdict]:
    """`conformance.run`, once for each case."""
    found: dict[tuple[str, str], Verdict] = {}

    def run(case: SuiteCase) -> Verdict:
        if (key := (case.kind, case.name)) not in found:
            found[key] = conformance.run(case)
        return found[key]

    return run


@pytest.fixture(scope="module")
def fast(verdict_of: Callable[[SuiteCase], Verdict]) -> list[Verdict]:
    return [verdict_of(case) for case in conformance.select(FAST)]


def test_a_part_of_the_suite_has_no_wrong_answer(fast: list[Verdict]) -> None:
    assert len(fast) > 300
    assert [verdict for verdict in fast if verdict.status == "failed"] == []


def test_a_part_of_the_suite_passes(fast: list[Verdict]) -> None:
    assert [verdict for verdict in fast if verdict.kind in conformance.SUITE and verdict.status != "passed"] == []


def test_constant_operands_bring_nodes_to_the_hardware(fast: list[Verdict]) -> None:
    assert {verdict.where for verdict in fast if verdict.kind == "constants"} >= {"hardware", "host"}


def test_quantized_operators_are_equal_on_the_hardware(verdict_of: Callable[[SuiteCase], Verdict]) -> None:
    """Golden integers of the QDQ form against the host's evaluation of it: every element."""
    verdicts = [verdict_of(case) for case in conformance.select("_quantized$")]
    assert [verdict for verdict in verdicts if verdict.status != "passed"] == []
    placed = {verdict.operator for verdict in verdicts if verdict.where == "hardware"}
    assert placed >= {
        "Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "AveragePool", "Add", "Mul", "Relu", "Sigmoid", "Resize",
        "Split", "DepthToSpace", "BatchNormalization", "Max", "Clip",
    }  # fmt: skip
    assert sum(verdict.where == "hardware" for verdict in verdicts) > 150


@pytest.mark.parametrize("name", ["conv_with_strides_padding", "maxpool_2d_pads", "add", "gemm_default_vector_bias"])
def test_a_wrong_integer_of_the_hardware_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = golden.run

    def wrong(graph: Graph, inputs: Any) -> Any:
        tensors = right(graph, inputs)
        last = graph.outputs[0].tensor
        return tensors | {last: np.where(tensors[last] > 0, tensors[last] - 1, tensors[last] + 1).astype(np.int8)}

    monkeypatch.setattr("onnxhw.golden.stateful.run", wrong)
    (verdict,) = map(conformance.run, conformance.select(f"^test_{name}_quantized$"))
    assert (verdict.status, verdict.where) == ("failed", "hardware")


@pytest.mark.slow
def test_the_whole_suite(verdict_of: Callable[[SuiteCase], Verdict]) -> None:
    verdicts = [verdict_of(case) for case in conformance.all_cases()]
    assert [verdict for verdict in verdicts if verdict.status == "failed"] == []
    assert all(verdict.reason for verdict in verdicts if verdict.status != "passed")
    (total,) = [row for row in conformance.score(verdicts) if row.kind == "all"]
    assert total.total == sum(case.kind in conformance.SUITE for case in conformance.all_cases())
    assert total.share >= 99
    own = [verdict for verdict in verdicts if verdict.kind in conformance.SUITE]
    ran = [verdict for verdict in own if verdict.where in ("hardware", "mixed")]
    assert total.on_hardware == len(ran)
    assert f"{len(ran):,} of {total.total:,} cases" in conformance.on_hardware(verdicts)
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    if f"release {onnx.__version__} " in page:
        assert conformance.board(verdicts) == page, "run: onnxhw conformance --write docs/conformance.md"


def test_a_wrong_value_is_a_difference() -> None:
    ones = np.ones(3, np.float32)
    assert difference([ones], [ones * np.float32(1.0005)], 1e-3, 0) == ""
    assert "first at [1]" in difference([ones], [ones + np.float32([0, 0.01, 0])], 1e-3, 0)
    assert "nan" in difference([ones], [ones * np.float32(np.nan)], 1e-3, 0)
    assert difference([ones * np.nan], [ones * np.nan], 1e-3, 0) == ""


def test_another_type_shape_or_length_is_a_difference() -> None:
    ones = np.ones(3, np.float32)
    assert "float64" in difference([ones], [ones.astype(np.float64)], 1e-3, 0)
    assert "[3, 1]" in difference([ones], [ones[:, None]], 1e-3, 0)
    assert "sequence of 1" in difference([[ones]], [[ones, ones]], 1e-3, 0)
    assert "sequence of 1" in difference([[ones]], [ones], 1e-3, 0)
    assert "expected None" in difference([None], [ones], 1e-3, 0)
    assert "strings" in difference([np.array(["a"], object)], [np.array(["b"], object)], 0, 0)
    assert "expected {'a': 1}" in difference([{"a": 1}], [{"a": 2}], 0, 0)


def test_random_outputs_must_be_plausible() -> None:
    wanted = np.array([0.0, 1.0, 1.0])
    assert implausible([wanted], [1 - wanted]) == ""
    assert "0.5" in implausible([wanted], [np.array([0.5, 0, 1])])
    assert "float32" in implausible([wanted], [wanted.astype(np.float32)])


def test_a_wrong_answer_is_counted_and_is_exit_status_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "difference", lambda *_: "wrong on purpose")
    (verdict,) = map(conformance.run, [case for case in conformance.select("^test_relu$") if case.kind == "node"])
    assert (verdict.status, verdict.reason) == ("failed", "wrong on purpose")
    result = CliRunner().invoke(app, ["conformance", "--filter", "^test_relu$"], obj=Output(), standalone_mode=False)
    assert result.return_value == 8


def test_an_unsupported_case_is_refused_by_name() -> None:
    (verdict,) = map(conformance.run, conformance.select("^test_gradient_of_add$"))
    assert verdict.status == "refused"
    assert "Gradient" in verdict.reason


def test_the_board_is_deterministic() -> None:
    chosen = conformance.select("bernoulli$|^test_gradient|^test_relu$")
    first, second = (conformance.board(list(conformance.run_all(chosen))) for _ in range(2))
    assert first == second
    assert "| all | 4 | 1 | 0 | 2 | 1 | 0 | 25.00 |" in first


@pytest.mark.parametrize(("pattern", "code"), [("(", "E2720"), ("no_such_case", "E2721")])
def test_a_filter_that_selects_nothing(pattern: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        conformance.select(pattern)
    assert caught.value.code == code


def test_a_pool_gives_the_same_verdicts():
    chosen = conformance.select("^test_(and|or|xor)2d")
    assert len(chosen) > 2
    wanted = [verdict.record() for verdict in conformance.run_all(chosen)]
    assert [verdict.record() for verdict in conformance.run_on(SerialPool(), chosen)] == wanted
