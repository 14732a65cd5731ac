"""`Runner`: a model executed sample by sample, with any of its values as results.

By the host's engine, node by node: with the guards and bounds that every run has, and the results that it has.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy

import numpy as np
import onnx
from onnx import helper

from ..errors import OnnxhwError, UnsupportedError
from ..hostops.evaluator import Evaluator
from .floatgraph import Array


class Runner:
    """Runs `model`; `outputs` are the values that `run` returns (default: the model's outputs).

    `UnsupportedError` E4703 if the model cannot be run, E4750 to E4756 if a node of it cannot.
    """

    def __init__(self, model: onnx.ModelProto, outputs: Sequence[str] | None = None, where: str = "model") -> None:
        self.where = where
        self.names = list(outputs) if outputs is not None else [value.name for value in model.graph.output]
        exposed = deepcopy(model)
        declared = {value.name for value in model.graph.output}
        exposed.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in self.names if n not in declared)
        try:
            self._host = Evaluator(exposed)
        except OnnxhwError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The values of one inference by name."""
        try:
            with np.errstate(all="ignore"):  # infinities and NaN are results like others
                found = self._host.run(self.names, dict(feeds))
        except OnnxhwError:
            raise
        except Exception as error:  # whatever the libraries raise: the user must know which model
            raise self._failed(error) from error
        return {name: np.asarray(value) for name, value in zip(self.names, found, strict=True)}

    def _failed(self, error: Exception) -> UnsupportedError:
        text = " ".join(str(error).split())[:300]
        return UnsupportedError("E4703", f"the model cannot be run: {text}", where=self.where)
