"""`Runner`: a model executed sample by sample, with any of its values as results.

By onnxruntime if it is installed (one thread, no graph optimisation, so that the same data gives the same
statistics), otherwise by the host's numpy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from ..errors import OnnxhwError, UnsupportedError
from ..frontend.hostrun import Evaluator

Array = npt.NDArray[Any]


class Runner:
    """Runs `model`; `outputs` are the values that `run` returns (default: the model's outputs).

    `engine` is ``onnxruntime`` or ``numpy``. `UnsupportedError` E4703 if neither can run the model.
    """

    def __init__(self, model: onnx.ModelProto, outputs: Sequence[str] | None = None, where: str = "model") -> None:
        self.where = where
        self.names = list(outputs) if outputs is not None else [value.name for value in model.graph.output]
        exposed = onnx.ModelProto()
        exposed.CopyFrom(model)
        declared = {value.name for value in model.graph.output}
        exposed.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in self.names if n not in declared)
        self._session = _session(exposed)
        self.engine = "onnxruntime" if self._session is not None else "numpy"
        try:
            self._host = Evaluator(exposed) if self._session is None else None
        except OnnxhwError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The values of one inference by name."""
        try:
            if self._session is not None:
                found = self._session.run(self.names, dict(feeds))
            else:
                assert self._host is not None
                found = self._host.run(self.names, dict(feeds))
        except OnnxhwError:
            raise
        except Exception as error:  # whatever the libraries raise: the user must know which model
            raise self._failed(error) from error
        return {name: np.asarray(value) for name, value in zip(self.names, found, strict=True)}

    def _failed(self, error: Exception) -> UnsupportedError:
        text = " ".join(str(error).split())[:300]
        return UnsupportedError("E4703", f"the model cannot be run: {text}", where=self.where)


def _session(model: onnx.ModelProto) -> Any:
    """An onnxruntime session, or None where there is none or it refuses the model."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # an operator or a version that onnxruntime does not have; the host may
        return None
